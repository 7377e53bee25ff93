"""A circuit breaker around a reader: after one search waited too long for the engine, the next ones fail at once."""

import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import ParamSpec, TypeVar, cast

from chunksink.sinks.capabilities import SupportsFamilies, SupportsPatterns, capability, required
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Document, Vectors
from chunksink.sinks.errors import NotConfirmed, SinkError, Unreachable
from chunksink.sinks.reader import (
    FacetValue,
    FamiliesOf,
    Filter,
    Hit,
    HybridReader,
    KeywordReader,
    Piece,
    Reader,
    Sort,
    VectorReader,
    unknown,
)

C = TypeVar("C")
P = ParamSpec("P")
T = TypeVar("T")

OPEN_SECONDS = 10.0
_LONG_SECONDS = 1.0
"""A failure that took longer opens the breaker. Refused connections fail sooner."""


class CircuitBreaker:
    """Forwards the calls and capabilities of another reader.

    After a call that failed slowly, all calls fail at once with the same error. After `seconds`, one call tries the
    engine; if it succeeds, all calls go through again.
    """

    def __init__(self, reader: Reader, seconds: float = OPEN_SECONDS) -> None:
        self._reader = reader
        self._seconds = seconds
        self._lock = threading.Lock()
        self._failure: SinkError | None = None
        self._until = 0.0
        self._refresh_is_due = False

    def capability(self, kind: type[C]) -> C | None:
        return cast(C, self) if capability(self._reader, kind) is not None else None

    def marker(self) -> Marker | None:
        return self._call(self._reader.marker)

    def get(self, ids: Sequence[str]) -> list[Document]:
        return self._call(self._reader.get, ids)

    def search(
        self,
        query: str,
        limit: int = 10,
        filters: Sequence[Filter] = (),
        *,
        every: bool = False,
        sort: Sort | None = None,
    ) -> list[Hit]:
        search = required(self._reader, KeywordReader).search
        if sort is None:
            return self._call(search, query, limit, filters, every=every)
        return self._call(search, query, limit, filters, every=every, sort=sort)

    def sources(self, filters: Sequence[Filter], limit: int) -> list[str]:
        return self._call(required(self._reader, SupportsPatterns).sources, filters, limit)

    def snippets(self, query: str, ids: Sequence[str], filters: Sequence[Filter] = ()) -> dict[str, tuple[Piece, ...]]:
        return self._call(required(self._reader, KeywordReader).snippets, query, ids, filters)

    def most_score(self, query: str, filters: Sequence[Filter] = ()) -> float | None:
        return self._call(required(self._reader, KeywordReader).most_score, query, filters)

    def corrections(self, query: str, filters: Sequence[Filter] = ()) -> dict[str, str]:
        return self._call(required(self._reader, KeywordReader).corrections, query, filters)

    def facets(
        self,
        query: str,
        fields: Sequence[str],
        filters: Sequence[Filter] = (),
        limit: int = 100,
        among: Sequence[str] | None = None,
    ) -> dict[str, list[FacetValue]]:
        return self._call(required(self._reader, KeywordReader).facets, query, fields, filters, limit, among)

    def families(self, ids: Sequence[str]) -> Mapping[str, str]:
        return self._call(required(self._reader, SupportsFamilies).families, ids)

    def query(
        self, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), families: FamiliesOf = unknown
    ) -> list[Hit]:
        return self._call(required(self._reader, VectorReader).query, vector, limit, filters, families)

    def similarities(self, vector: Vectors, ids: Sequence[str]) -> dict[str, float]:
        return self._call(required(self._reader, VectorReader).similarities, vector, ids)

    def hybrid(
        self, query: str, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), *, every: bool = False
    ) -> list[Hit]:
        return self._call(required(self._reader, HybridReader).hybrid, query, vector, limit, filters, every=every)

    def refresh(self) -> None:
        """Postponed while the breaker is open: a refresh may succeed without the engine, and would close it."""
        if self._failure is None:
            self._call(self._reader.refresh)
        else:
            self._refresh_is_due = True

    def close(self) -> None:
        self._reader.close()

    def _call(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._require_closed()
        began = monotonic()
        try:
            if self._refresh_is_due:
                self._refresh_is_due = False  # first: another refresh may be requested meanwhile
                self._refresh()
            answer = call(*args, **kwargs)
        except SinkError as error:
            self._until = monotonic() + self._seconds
            self._failure = error if _has_waited(error, monotonic() - began) else None
            raise
        self._failure = None
        return answer

    def _refresh(self) -> None:
        try:
            self._reader.refresh()
        except BaseException:
            self._refresh_is_due = True
            raise

    def _require_closed(self) -> None:
        with self._lock:
            failure, now = self._failure, monotonic()
            if failure is None:
                return
            if now >= self._until:
                self._until = now + self._seconds  # this call tries the engine
                return
        raise type(failure)(*failure.args)


def _has_waited(error: SinkError, seconds: float) -> bool:
    return isinstance(error, NotConfirmed) or (isinstance(error, Unreachable) and seconds > _LONG_SECONDS)
