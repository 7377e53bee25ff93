"""The `KeywordReader` methods for FTS5 and PostgreSQL: each call is answered by one `Search`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from chunksink.sinks.fts.query import Query, identifiers_of, parse
from chunksink.sinks.reader import FacetValue, Filter, Hit, Piece, Sort, require_facets


class Search(Protocol):
    """Answers about the documents that pass some filters."""

    def unranked(self, query: Query | None, sort: Sort | None, limit: int) -> list[Hit]: ...
    def best(self, query: Query, limit: int) -> list[Hit]: ...
    def snippets(self, query: Query, ids: Sequence[str]) -> dict[str, tuple[Piece, ...]]: ...
    def highest_score(self, query: Query) -> float | None: ...
    def corrections(self, query: Query) -> dict[str, str]: ...
    def finds(self, query: Query) -> bool: ...
    def facets(self, query: Query | None, fields: Sequence[str], limit: int) -> dict[str, list[FacetValue]]: ...
    def sources(self, limit: int) -> list[str]: ...


class KeywordMethods(ABC):
    @abstractmethod
    def _searching(self, filters: Sequence[Filter]) -> AbstractContextManager[Search]:
        """A search, which can be used until the block ends."""

    def search(
        self,
        query: str,
        limit: int = 10,
        filters: Sequence[Filter] = (),
        *,
        every: bool = False,
        sort: Sort | None = None,
    ) -> list[Hit]:
        del every  # hits are never grouped by family here
        parsed = _parsed(query)
        with self._searching(filters) as search:
            if sort is not None or parsed is None:
                return search.unranked(parsed, sort, limit)
            return search.best(parsed, limit)

    def snippets(self, query: str, ids: Sequence[str], filters: Sequence[Filter] = ()) -> dict[str, tuple[Piece, ...]]:
        with self._searching(filters) as search:
            return search.snippets(parse(query), ids)

    def max_score(self, query: str, filters: Sequence[Filter] = ()) -> float | None:
        with self._searching(filters) as search:
            return search.highest_score(parse(query))

    def corrections(self, query: str, filters: Sequence[Filter] = ()) -> dict[str, str]:
        with self._searching(filters) as search:
            return search.corrections(parse(query))

    def missing_identifiers(self, query: str, filters: Sequence[Filter] = ()) -> list[str]:
        parsed = parse(query)
        if not (identifiers := identifiers_of(parsed)):
            return []
        with self._searching(filters) as search:
            queries = {one: Query((one,), (), prefix=one if one == parsed.prefix else "") for one in identifiers}
            return [one for one, query in queries.items() if not search.finds(query)]

    def facets(
        self,
        query: str,
        fields: Sequence[str],
        filters: Sequence[Filter] = (),
        limit: int = 100,
        among: Sequence[str] | None = None,
    ) -> dict[str, list[FacetValue]]:
        require_facets(fields)
        if among is not None:
            filters = [*filters, Filter("parent_id", any_of=tuple(among))]
        with self._searching(filters) as search:
            return search.facets(_parsed(query), fields, limit)

    def sources(self, filters: Sequence[Filter], limit: int) -> list[str]:
        with self._searching(filters) as search:
            return search.sources(limit)


def _parsed(query: str) -> Query | None:
    return parse(query) if query.strip() else None
