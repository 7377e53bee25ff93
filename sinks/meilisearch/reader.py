"""Asking a Meilisearch build for documents: for every one, though the index shows others each family once."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sinks.document import Document, Vectors
from sinks.errors import InvalidFilter
from sinks.fields import FILTERS
from sinks.meilisearch import rows
from sinks.meilisearch.builds import EMBEDDER, PRIMARY_KEY, marker_in
from sinks.meilisearch.connection import Connection
from sinks.reader import FacetValue, Filter, Hit, Piece, Value
from sinks.sink import Marker

# Around what matched: from the private use area, which no text of ours holds on purpose.
_OPEN, _CLOSE = "\ue000", "\ue001"
_SNIPPET_WORDS = 40
_STRATEGY = "frequency"  # where not all words are found, the most frequent ones are left out first
_MOST_HITS = 2**32  # more than the settings let Meilisearch find, and not too large a number for it
_DEEPER = 4
_MOST_FACETS = 100  # what the settings let Meilisearch count


class MeilisearchReader:
    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._path = f"/indexes/{name}"

    def marker(self) -> Marker | None:
        return marker_in(self._connection.get(f"{self._path}/settings/synonyms"))

    def get(self, ids: Sequence[str]) -> list[Document]:
        asked = rows.possible(ids)
        if not asked:
            return []
        answer = self._connection.send(f"{self._path}/documents/fetch", {"ids": asked, "limit": len(asked)})
        found = {held["id"]: Document.if_ours(held) for held in answer["results"]}
        return [document for id in ids if (document := found.get(id)) is not None]

    def search(self, query: str, limit: int = 10, filters: Sequence[Filter] = ()) -> list[Hit]:
        return self._hits(query, limit, filters, showRankingScoreDetails=True)

    def hybrid(self, query: str, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = ()) -> list[Hit]:
        by_meaning = {"hybrid": {"embedder": EMBEDDER, "semanticRatio": 0.5}, "vector": np.asarray(vector).tolist()}
        return self._hits(query, limit, filters, **by_meaning)

    def _hits(self, query: str, limit: int, filters: Sequence[Filter], **more: Any) -> list[Hit]:
        if limit < 1 or _holds_nothing(query):
            return []
        limit = asked = min(limit, _MOST_HITS)
        while True:
            answer = self._ask(
                query,
                filters,
                limit=asked,
                attributesToRetrieve=["id", "parent_id", *{one.field for one in filters}],
                showRankingScore=True,
                distinct=PRIMARY_KEY,  # every document; null would leave the index's own attribute in force
                **more,
            )
            # A document without such a `parent_id` is somebody else's; the next scan finds it.
            ours = (hit for hit in answer["hits"] if isinstance(hit.get("parent_id"), str))
            held = [hit for hit in ours if rows.meets(hit, filters)]
            if len(held) >= limit or len(answer["hits"]) < asked or asked == _MOST_HITS:
                return [Hit(hit["id"], hit["parent_id"], _score(hit)) for hit in held[:limit]]
            asked = min(asked * _DEEPER, _MOST_HITS)

    def snippets(self, query: str, ids: Sequence[str]) -> dict[str, tuple[Piece, ...]]:
        asked = rows.possible(ids)
        if not asked or _holds_nothing(query):
            return {}
        answer = self._connection.send(
            f"{self._path}/search",
            {
                "q": rows.sendable(query),
                "filter": f"{PRIMARY_KEY} IN {rows.listed(asked)}",
                "distinct": PRIMARY_KEY,
                "limit": len(asked),
                "matchingStrategy": _STRATEGY,
                "attributesToRetrieve": [PRIMARY_KEY],
                "attributesToCrop": ["text"],
                "cropLength": _SNIPPET_WORDS,
                "attributesToHighlight": ["text"],
                "highlightPreTag": _OPEN,
                "highlightPostTag": _CLOSE,
            },
        )
        shown = {hit[PRIMARY_KEY]: tuple(_pieces(hit["_formatted"].get("text", ""))) for hit in answer["hits"]}
        return {id: pieces for id, pieces in shown.items() if any(piece.match for piece in pieces)}

    def most_score(self, query: str) -> float | None:
        del query
        return 1.0

    def facets(
        self, query: str, fields: Sequence[str], filters: Sequence[Filter] = (), limit: int = _MOST_FACETS
    ) -> dict[str, list[FacetValue]]:
        unknown = [name for name in fields if name not in FILTERS]
        if unknown:
            raise InvalidFilter(f"no facets of {', '.join(unknown)}; these have: {', '.join(sorted(FILTERS))}")
        if _holds_nothing(query):
            return {name: [] for name in fields}
        # Pages instead of a limit: only then are families counted, and not their documents.
        answer = self._ask(query, filters, page=1, hitsPerPage=1, attributesToRetrieve=["id"], facets=list(fields))
        found = answer.get("facetDistribution", {})
        return {name: _counted(name, found.get(name, {}))[: max(0, limit)] for name in fields}

    def refresh(self) -> None:
        """A server always knows what it holds."""

    def close(self) -> None:
        """The connection is the sink's."""

    def _ask(self, query: str, filters: Sequence[Filter], **more: Any) -> Any:
        asked = {"q": rows.sendable(query), "filter": rows.conditions(filters), "matchingStrategy": _STRATEGY, **more}
        return self._connection.send(f"{self._path}/search", asked)


def _score(hit: Mapping[str, Any]) -> float:
    """Meilisearch's own, times the square of the share of words that it did not leave out: by its own score a document
    with two words of ten is nearly as good as one with all of them, and would outdo what is near in meaning."""
    words = hit.get("_rankingScoreDetails", {}).get("words")
    share = words["matchingWords"] / words["maxMatchingWords"] if words else 1.0
    return float(hit["_rankingScore"] * share**2)


def _holds_nothing(query: str) -> bool:
    """Whether something was typed, but nothing to look for: the server would find everything."""
    return bool(query.strip()) and not rows.is_searchable(rows.sendable(query))


def _pieces(marked: str) -> Iterator[Piece]:
    """The runs of a snippet between the marks."""
    for number, part in enumerate(marked.split(_OPEN)):
        inside, closed, after = part.partition(_CLOSE)
        if number and closed:
            yield Piece(inside, match=True)
            inside = after
        if inside:
            yield Piece(inside)


def _counted(field: str, counts: dict[str, int]) -> list[FacetValue]:
    values = [FacetValue(_value(field, value), families) for value, families in counts.items()]
    return sorted(values, key=lambda one: (-one.families, one.value))


def _value(field: str, told: str) -> Value:
    """Meilisearch tells all facet values as strings."""
    if field == "content_truncated":
        return told == "true"
    return int(float(told)) if FILTERS[field] == "range" else told
