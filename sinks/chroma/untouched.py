"""An embedded build that need not be opened to say what it is: to import Chroma and open it takes most of a second,
which is most of a sync that has nothing to do.

Its seal says it, as long as the files are those that were sealed and SQLite has counted no change (ADR 0020). That is
looked at with each question; anything else opens it.
"""

from collections.abc import Callable, Iterator, Sequence

from chunksink.sinks.chroma.reader import marker_of
from chunksink.sinks.chroma.seal import Untouched
from chunksink.sinks.contract import Build, Marker, RefusedDocument, Stored
from chunksink.sinks.document import Family


class UntouchedBuild:
    """A build as it was closed, or from the first call that needs it, open."""

    def __init__(self, look: Callable[[], Untouched | None], open_: Callable[[], Build]) -> None:
        self._look = look
        self._open = open_
        self._build: Build | None = None

    def marker(self) -> Marker | None:
        seen = self._seen()
        return self._opened().marker() if seen is None else marker_of(seen.metadata)

    def count(self) -> int:
        seen = self._seen()
        return self._opened().count() if seen is None else seen.documents

    def sign(self, marker: Marker) -> None:
        self._opened().sign(marker)

    def replace(self, families: Sequence[Family]) -> None:
        self._opened().replace(families)

    def delete(self, parent_ids: Sequence[str]) -> None:
        self._opened().delete(parent_ids)

    def flush(self) -> list[RefusedDocument]:
        return [] if self._build is None else self._build.flush()

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        return self._opened().scan(content=content, vectors=vectors)

    def close(self) -> None:
        if self._build is not None:
            self._build.close()

    def _seen(self) -> Untouched | None:
        return self._look() if self._build is None else None

    def _opened(self) -> Build:
        if self._build is None:
            self._build = self._open()
        return self._build
