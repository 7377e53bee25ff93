"""Asking a Meilisearch build for documents. Where not every document is asked for, each family answers
once, by its best: `parent_id` is the index's distinct attribute."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Document, Vectors
from chunksink.sinks.fields import VALUE_TYPES
from chunksink.sinks.meilisearch import rows, words
from chunksink.sinks.meilisearch.connection import Connection
from chunksink.sinks.meilisearch.indexes import EMBEDDER, PRIMARY_KEY, marker_in
from chunksink.sinks.meilisearch.words import Step
from chunksink.sinks.reader import FacetValue, Filter, Hit, Piece, Value, require_facets

# Around what matched: from the private use area, which no text of ours holds on purpose.
_OPEN, _CLOSE = "\ue000", "\ue001"
_SNIPPET_WORDS = 40
_CANDIDATES = ((20_000, 1600), (80_000, 3200), (math.inf, 6400))
"""Up to so many documents. Meilisearch looks at more vectors the more hits it is asked for (ADR 0040)."""
_DEEPER = 4
_MOST_FACETS = 100  # what the settings let Meilisearch count
_AT_ONCE = 25  # values counted in one request
_ONE_PAGE = {"page": 1, "hitsPerPage": 1, "attributesToRetrieve": [PRIMARY_KEY]}
"""Pages instead of a limit: only then are families counted, and not their documents."""
_OF_SOURCES = frozenset(
    (
        *("parent_id", "tenant_key", "source_type", "file_type", "mime_type"),
        *("extension", "source_folder", "size_bytes", "modified_at_epoch"),
    )
)
"""The same in all documents of a family, so that it does not matter which of them stands for it."""


class MeilisearchReader:
    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._path = f"/indexes/{name}"
        self._documents: int | None = None  # known when it was first needed

    def marker(self) -> Marker | None:
        return marker_in(self._connection.get(f"{self._path}/settings/synonyms"))

    def get(self, ids: Sequence[str]) -> list[Document]:
        asked = rows.possible(ids)
        if not asked:
            return []
        answer = self._connection.send(f"{self._path}/documents/fetch", {"ids": asked, "limit": len(asked)})
        found = {held["id"]: Document.if_ours(held) for held in answer["results"]}
        return [document for id in ids if (document := found.get(id)) is not None]

    def search(self, query: str, limit: int = 10, filters: Sequence[Filter] = (), *, every: bool = False) -> list[Hit]:
        if _holds_nothing(query):
            return []
        return self._hits(self._steps(query, filters), limit, filters, every, showRankingScoreDetails=True)

    def hybrid(
        self, query: str, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), *, every: bool = False
    ) -> list[Hit]:
        if _holds_nothing(query):
            return []
        step, *_ = self._steps(query, filters) or [Step(query)]
        step = Step(step.query, strategy="frequency" if step.strategy == "frequency" else "last")
        return self._hits([step], limit, filters, every, self._candidates(), **_by_meaning(vector, 0.5))

    def nearest(self, vector: Vectors, limit: int) -> list[str]:
        hits = self._hits([Step("")], limit, (), True, self._candidates(), **_by_meaning(vector, 1.0))
        return [hit.id for hit in hits]

    def index_size(self) -> None:
        """Meilisearch removes what is deleted."""

    def _candidates(self) -> int:
        """How many hits to ask for, of which the best count."""
        if self._documents is None:
            self._documents = int(self._connection.get(f"{self._path}/stats")["numberOfDocuments"])
        return next(least for most, least in _CANDIDATES if self._documents <= most)

    def _hits(
        self,
        steps: Sequence[Step],
        limit: int,
        filters: Sequence[Filter],
        every: bool,
        least: int = 0,
        **more: Any,
    ) -> list[Hit]:
        """What the first step finds, then what the next one finds besides, and so on; `least` hits are asked for."""
        asked = max(limit, least)
        while True:
            same = {
                "limit": asked,
                "attributesToRetrieve": ["id", "parent_id", *{one.field for one in filters}],
                "showRankingScore": True,
                # Null would leave the index's own attribute in force.
                **({"distinct": PRIMARY_KEY} if every else {}),
                **more,
            }
            answers = self._ask([_question(step, filters) | same for step in steps])
            found: dict[str, Hit] = {}
            exact = True
            for step, answer in zip(steps, answers, strict=True):
                # A document without such a `parent_id` is somebody else's; the next scan finds it.
                hits = answer["hits"]
                right = [isinstance(hit.get("parent_id"), str) and rows.meets(hit, filters) for hit in hits]
                exact = exact and all(right[:limit])
                for hit, is_right in zip(hits, right, strict=True):
                    if is_right:
                        one = Hit(hit["id"], hit["parent_id"], step.score(_score(hit)))
                        found.setdefault(one.id if every else one.parent_id, one)
            ended = all(len(answer["hits"]) < asked for answer in answers)
            if exact or (every and (len(found) >= limit or ended)):
                return list(found.values())[:limit]
            # Of a family another document may meet the filters; and so many more are to be looked through.
            every, asked = True, asked * _DEEPER

    def _steps(self, query: str, filters: Sequence[Filter]) -> list[Step]:
        """How the query is asked for, so that a filter does not hide what passes it; nothing where nothing has it."""
        query = rows.sendable(query)
        tenant = [one for one in filters if one.field == "tenant_key"]
        steps = self._counted(query, tenant) if tenant else [Step(query, strategy="frequency")]
        if len(tenant) == len(filters) or not query.strip() or not steps or self._totals(steps[-1:], filters) != [0]:
            return steps
        return self._counted(query, filters)

    def _counted(self, query: str, filters: Sequence[Filter]) -> list[Step]:
        return words.steps(query, lambda queries: self._totals(list(map(Step, queries)), filters))

    def _totals(self, steps: Sequence[Step], filters: Sequence[Filter]) -> list[int]:
        """How many documents pass the filters and have all words of each step."""
        asked = [_question(step, filters) | _ONE_PAGE | {"distinct": PRIMARY_KEY} for step in steps]
        return [answer["totalHits"] for answer in self._ask(asked)]

    def snippets(self, query: str, ids: Sequence[str], filters: Sequence[Filter] = ()) -> dict[str, tuple[Piece, ...]]:
        del filters  # these documents alone are looked at
        asked = rows.possible(ids)
        if not asked or _holds_nothing(query):
            return {}
        same = {
            "filter": f"{PRIMARY_KEY} IN {rows.listed(asked)}",
            "distinct": PRIMARY_KEY,
            "limit": len(asked),
            "matchingStrategy": "last",
            "attributesToRetrieve": [PRIMARY_KEY],
            "attributesToCrop": ["text"],
            "cropLength": _SNIPPET_WORDS,
            "attributesToHighlight": ["text"],
            "highlightPreTag": _OPEN,
            "highlightPostTag": _CLOSE,
        }
        queries = words.beginning_with_each(rows.sendable(query))
        shown: dict[str, tuple[Piece, ...]] = {}
        for answer in self._ask([{"q": rows.sendable(one)} | same for one in queries]):
            for hit in answer["hits"]:
                pieces = tuple(_pieces(hit.get("_formatted", {}).get("text", "")))
                if any(piece.match for piece in pieces):
                    shown.setdefault(hit[PRIMARY_KEY], pieces)
        return shown

    def most_score(self, query: str, filters: Sequence[Filter] = ()) -> float | None:
        del query, filters
        return 1.0

    def corrections(self, query: str, filters: Sequence[Filter] = ()) -> dict[str, str]:
        del query, filters  # typos are found anyway
        return {}

    def facets(
        self,
        query: str,
        fields: Sequence[str],
        filters: Sequence[Filter] = (),
        limit: int = _MOST_FACETS,
        among: Sequence[str] | None = None,
    ) -> dict[str, list[FacetValue]]:
        require_facets(fields)
        if _holds_nothing(query) or not (steps := self._steps(query, filters)):
            return {name: [] for name in fields}
        of_families = [] if among is None else [Filter("parent_id", any_of=tuple(among))]
        widest = _question(steps[-1], [*filters, *of_families])
        alike = [name for name in fields if name in _OF_SOURCES]
        other = [name for name in fields if name not in _OF_SOURCES]
        found: dict[str, list[FacetValue]] = {}
        if alike:
            [answer] = self._ask([widest | _ONE_PAGE | {"facets": alike}])
            counts = answer.get("facetDistribution", {})
            found |= {name: _sorted(name, counts.get(name, {})) for name in alike}
        if other:
            [answer] = self._ask([widest | _ONE_PAGE | {"distinct": PRIMARY_KEY, "facets": other}])
            counts = answer.get("facetDistribution", {})
            found |= {name: self._by_families(widest, name, counts.get(name, {}), limit) for name in other}
        return {name: found[name][:limit] for name in fields}

    def _by_families(
        self, question: Mapping[str, Any], field: str, documents: Mapping[str, int], limit: int
    ) -> list[FacetValue]:
        """Meilisearch tells how many documents have a value, or how many families have it in the one document that
        stands for each. So each value is asked for alone, until none can have as many families as those that are found.
        """
        ranked = sorted(documents, key=lambda value: -documents[value])
        found: dict[str, int] = {}
        for start in range(0, len(ranked), _AT_ONCE):
            best = sorted(found.values(), reverse=True)
            if len(best) >= limit and (limit == 0 or best[limit - 1] > documents[ranked[start]]):
                break
            some = ranked[start : start + _AT_ONCE]
            found |= {value: 1 for value in some if documents[value] == 1}
            found |= self._families_with(question, field, [value for value in some if documents[value] > 1])
        return _sorted(field, found)

    def _families_with(self, question: Mapping[str, Any], field: str, values: Sequence[str]) -> dict[str, int]:
        if not values:
            return {}
        same = {**question, **_ONE_PAGE, "facets": [field]}
        having = (rows.conditions([_having(field, value)]) for value in values)
        answers = self._ask([same | {"filter": [*question["filter"], *one]} for one in having])
        # At least one: a value that is too long for a filter is not found by it. Their total has a limit, a facet none.
        return {
            value: max(1, answer.get("facetDistribution", {}).get(field, {}).get(value, answer["totalHits"]))
            for value, answer in zip(values, answers, strict=True)
        }

    def refresh(self) -> None:
        """A server always knows what it holds."""
        self._documents = None

    def close(self) -> None:
        """The connection is the sink's."""

    def _ask(self, questions: Sequence[Mapping[str, Any]]) -> list[Any]:
        if not questions:
            return []
        if len(questions) == 1:
            return [self._connection.send(f"{self._path}/search", dict(questions[0]))]
        asked = [{"indexUid": self._name, **question} for question in questions]
        answers: list[Any] = self._connection.send("/multi-search", {"queries": asked})["results"]
        return answers


def _question(step: Step, filters: Sequence[Filter]) -> dict[str, Any]:
    strategy = {"matchingStrategy": step.strategy}
    return {"q": rows.sendable(step.query), "filter": rows.conditions(filters), **strategy}


def _by_meaning(vector: Vectors, share: float) -> dict[str, Any]:
    return {"hybrid": {"embedder": EMBEDDER, "semanticRatio": share}, "vector": np.asarray(vector).tolist()}


def _having(field: str, value: str) -> Filter:
    return Filter(field, any_of=(_value(field, value),))


def _score(hit: Mapping[str, Any]) -> float:
    """Meilisearch's own, times the square of the share of words that it did not leave out: see `Step.score`."""
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


def _sorted(field: str, counts: Mapping[str, int]) -> list[FacetValue]:
    values = [FacetValue(_value(field, value), families) for value, families in counts.items()]
    return sorted(values, key=lambda one: (-one.families, one.value))


def _value(field: str, value: str) -> Value:
    """Meilisearch tells all facet values as strings."""
    kind = VALUE_TYPES[field]
    if kind is bool:
        return value == "true"
    return int(float(value)) if kind is int else value
