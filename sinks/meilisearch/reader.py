"""Search in a Meilisearch build. Without `every`, each family appears once, with its best document: `parent_id` is the
index's distinct attribute."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Document, Vectors
from chunksink.sinks.fields import VALUE_TYPES
from chunksink.sinks.fts.query import identifiers_of, parse
from chunksink.sinks.meilisearch import query_words, rows
from chunksink.sinks.meilisearch.connection import Connection
from chunksink.sinks.meilisearch.indexes import EMBEDDER, PRIMARY_KEY, marker_in
from chunksink.sinks.reader import FacetValue, Filter, Hit, Piece, Sort, Value, require_facets

# Marks around matches, from Unicode's private use area.
_OPEN, _CLOSE = "\ue000", "\ue001"
_SNIPPET_WORDS = 40
_CANDIDATES = ((20_000, 1600), (80_000, 3200), (math.inf, 6400))
"""Pairs: up to this many documents, this many hits are requested. With more hits, Meilisearch compares more vectors
(ADR 0040)."""
_DEEPER = 4  # if there are too few hits, the next request asks for this many times as many
_HITS_OF_WORD = 100
"""At least this many hits are requested for each word. Documents beyond them count as if they did not have the word."""
_WEIGHT_OF_ALL = 0.25
"""The weight of the whole query beside that of its words."""
_MAX_FACETS = 100  # the limit in the index settings
_AT_ONCE = 25  # values counted in one request
_ONE_PAGE = {"page": 1, "hitsPerPage": 1, "attributesToRetrieve": [PRIMARY_KEY]}
"""Pages instead of a limit: only with pages does Meilisearch count families instead of documents."""
_SOURCE_FIELDS = frozenset(
    ("parent_id", "tenant_key", "source_type", "file_type", "mime_type", "extension", "source_folder", "size_bytes")
)
"""Fields with one value in all documents of a family, so that any document can represent the family."""


class MeilisearchReader:
    def __init__(self, connection: Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._path = f"/indexes/{name}"
        self._documents: int | None = None  # cached by `_candidates`

    def marker(self) -> Marker | None:
        return marker_in(self._connection.get(f"{self._path}/settings/synonyms"))

    def get(self, ids: Sequence[str]) -> list[Document]:
        possible = rows.valid_ids(ids)
        if not possible:
            return []
        answer = self._connection.send(f"{self._path}/documents/fetch", {"ids": possible, "limit": len(possible)})
        found = {fields["id"]: Document.if_ours(fields) for fields in answer["results"]}
        return [document for id in ids if (document := found.get(id)) is not None]

    def search(
        self,
        query: str,
        limit: int = 10,
        filters: Sequence[Filter] = (),
        *,
        every: bool = False,
        sort: Sort | None = None,
    ) -> list[Hit]:
        if _has_no_terms(query):
            return []
        query = rows.sendable(query)
        if sort is not None:
            order = f"{sort.field}:{'desc' if sort.descending else 'asc'}"
            return self._hits({"q": query, "matchingStrategy": "all"}, limit, filters, every, sort=[order])
        if words := query_words.each_word(query):
            return self._with_any_word(query, words, limit, filters, every)
        return self._hits(_question(query, filters), limit, filters, every, showRankingScoreDetails=True)

    def hybrid(
        self, query: str, vector: Vectors, limit: int = 10, filters: Sequence[Filter] = (), *, every: bool = False
    ) -> list[Hit]:
        if _has_no_terms(query):
            return []
        question = _question(rows.sendable(query), filters)
        return self._hits(question, limit, filters, every, self._candidates(), **_vector_part(vector, 0.5))

    def nearest(self, vector: Vectors, limit: int) -> list[str]:
        hits = self._hits({"q": ""}, limit, (), True, self._candidates(), **_vector_part(vector, 1.0))
        return [hit.id for hit in hits]

    def index_size(self) -> None:
        """None, because Meilisearch's index keeps no deleted vectors."""

    def _candidates(self) -> int:
        """How many hits to request, to get the best ones."""
        if self._documents is None:
            self._documents = int(self._connection.get(f"{self._path}/stats")["numberOfDocuments"])
        return next(least for most, least in _CANDIDATES if self._documents <= most)

    def _hits(
        self,
        question: dict[str, Any],
        limit: int,
        filters: Sequence[Filter],
        every: bool,
        least: int = 0,
        **more: Any,
    ) -> list[Hit]:
        """Requests at least `least` hits: with more hits Meilisearch compares more vectors and finds nearer ones."""
        requested, collapse = max(limit, least), not every
        while True:
            page = {
                **more,
                "limit": requested,
                # Not None, which would mean the index's own distinct attribute.
                **({"distinct": PRIMARY_KEY} if every else {}),
            }
            [answer] = self._ask([question | _scored(filters) | page])
            right = [_is_right(hit, filters) for hit in answer["hits"]]
            found: dict[str, Hit] = {}
            for hit in (hit for hit, is_right in zip(answer["hits"], right, strict=True) if is_right):
                one = Hit(hit["id"], hit["parent_id"], _score(hit))
                found.setdefault(one.parent_id if collapse else one.id, one)
            is_complete = len(answer["hits"]) < requested
            if all(right[:limit]) or (every and (len(found) >= limit or is_complete)):
                return list(found.values())[:limit]
            # Meilisearch ignores case in filters, so some hits do not pass. Another document of their family may pass:
            # request every document of a family, and more hits.
            every, requested = True, requested * _DEEPER

    def _with_any_word(
        self, query: str, words: Sequence[str], limit: int, filters: Sequence[Filter], every: bool
    ) -> list[Hit]:
        """Hits with all words, or with one of `query_words.rarest`. They are ranked by their words: rare words count
        more than others, and all words near each other count most."""
        requested = max(limit, _HITS_OF_WORD)
        while True:
            total, answers, together = self._of_words(query, words, filters, requested)
            counts = [answer["totalHits"] for answer in answers]
            weights = [query_words.rarity(count, total) for count in counts]
            most = sum(weights) * (1 + _WEIGHT_OF_ALL)
            scores = defaultdict[tuple[str, str], float](float)
            for answer, weight in zip(answers, weights, strict=True):
                for key, own in _scores(answer, filters):
                    scores[key] += weight * own / most
            for key, own in _scores(together, filters):  # also finds two of the words written as one, or one as two
                all_words = sum(weights) * own / most
                scores[key] = max(scores[key], all_words) + _WEIGHT_OF_ALL * all_words
            rarest = query_words.rarest(counts)
            needed = [together, *(answers[number] for number in rarest)]
            keys = {key for answer in needed for key, _ in _scores(answer, filters)}
            found: dict[str, Hit] = {}
            for id, parent in sorted(keys, key=lambda key: (-scores[key], key)):
                found.setdefault(id if every else parent, Hit(id, parent, scores[id, parent]))
            is_complete = all(len(answer["hits"]) < requested for answer in needed)
            if not every and len(found) < limit and not is_complete:  # large families: ask for one hit of each
                questions = [{"q": words[number], "limit": limit} | _scored(filters) for number in rarest]
                for number, answer in zip(rarest, self._ask(questions), strict=True):
                    for (id, parent), own in _scores(answer, filters):
                        found.setdefault(parent, Hit(id, parent, weights[number] * own / most))
            if is_complete or len(found) >= limit:
                return sorted(found.values(), key=lambda hit: -hit.score)[:limit]
            requested *= _DEEPER

    def _of_words(
        self, query: str, words: Sequence[str], filters: Sequence[Filter], hits: int
    ) -> tuple[int, list[Any], Any]:
        """How many documents pass the filters, the answers for each word, and the answer for all words together."""
        same = _scored(filters) | {"distinct": PRIMARY_KEY, "page": 1, "hitsPerPage": hits}
        questions = [{"q": one, "matchingStrategy": "last"} for one in words]
        asked: list[dict[str, Any]] = [{"q": "", "hitsPerPage": 1}, *questions, {"q": query, "matchingStrategy": "all"}]
        total, *answers, together = self._ask([same | one for one in asked])
        return total["totalHits"], answers, together

    def _countable(self, query: str, filters: Sequence[Filter]) -> dict[str, Any]:
        """A question that finds the hits of the query, so that their facets can be counted."""
        words = query_words.each_word(query)
        if not words:
            return _question(query, filters)
        counts = [answer["totalHits"] for answer in self._of_words(query, words, filters, 1)[1]]
        rarest = query_words.rarest(counts)
        if rarest and counts[rarest[0]] > query_words.MAX_CANDIDATES:
            return {**_question(words[rarest[0]], filters), "matchingStrategy": "last"}
        kept = [words[number] for number in rarest]
        _, answers, together = self._of_words(query, kept, filters, query_words.MAX_CANDIDATES)
        ids = {id for answer in (*answers, together) for (id, _), _ in _scores(answer, filters)}
        return {"q": "", "filter": [*rows.conditions(filters), f"{PRIMARY_KEY} IN {rows.listed(sorted(ids))}"]}

    def snippets(self, query: str, ids: Sequence[str], filters: Sequence[Filter] = ()) -> dict[str, tuple[Piece, ...]]:
        del filters  # only needed by engines that count words to choose a part of the text
        possible = rows.valid_ids(ids)
        if not possible or _has_no_terms(query):
            return {}
        same = {
            "filter": f"{PRIMARY_KEY} IN {rows.listed(possible)}",
            "distinct": PRIMARY_KEY,
            "limit": len(possible),
            "matchingStrategy": "last",
            "attributesToRetrieve": [PRIMARY_KEY],
            "attributesToCrop": ["text"],
            "cropLength": _SNIPPET_WORDS,
            "attributesToHighlight": ["text"],
            "highlightPreTag": _OPEN,
            "highlightPostTag": _CLOSE,
        }
        queries = query_words.beginning_with_each(rows.sendable(query))
        shown: dict[str, tuple[Piece, ...]] = {}
        for answer in self._ask([{"q": rows.sendable(one)} | same for one in queries]):
            for hit in answer["hits"]:
                pieces = tuple(_pieces(hit.get("_formatted", {}).get("text", "")))
                if any(piece.match for piece in pieces):
                    shown.setdefault(hit[PRIMARY_KEY], pieces)
        return shown

    def max_score(self, query: str, filters: Sequence[Filter] = ()) -> float | None:
        del query, filters
        return 1.0

    def corrections(self, query: str, filters: Sequence[Filter] = ()) -> dict[str, str]:
        del query, filters  # Meilisearch tolerates typos itself
        return {}

    def missing_identifiers(self, query: str, filters: Sequence[Filter] = ()) -> list[str]:
        """A document with all parts of an identifier counts as having it."""
        parsed = parse(query)
        typed = {one: one if one == parsed.prefix else f"{one} " for one in identifiers_of(parsed)}
        questions = [{"q": rows.sendable(text), "matchingStrategy": "all"} for text in typed.values()]
        answers = self._ask([_scored(filters) | question | {"limit": 1} for question in questions])
        return [
            one
            for one, question, answer in zip(typed, questions, answers, strict=True)
            if not any(_is_right(hit, filters) for hit in answer["hits"])
            and not (answer["hits"] and self._hits(question, 1, filters, every=True))  # other hits may pass
        ]

    def sources(self, filters: Sequence[Filter], limit: int) -> list[str]:
        return [hit.parent_id for hit in self._hits({"q": ""}, limit, filters, every=False)]

    def facets(
        self,
        query: str,
        fields: Sequence[str],
        filters: Sequence[Filter] = (),
        limit: int = _MAX_FACETS,
        among: Sequence[str] | None = None,
    ) -> dict[str, list[FacetValue]]:
        require_facets(fields)
        if _has_no_terms(query):
            return {name: [] for name in fields}
        countable = self._countable(rows.sendable(query), filters)
        if among is not None:
            countable["filter"] += rows.conditions([Filter("parent_id", any_of=tuple(among))])
        source_fields = [name for name in fields if name in _SOURCE_FIELDS]
        other = [name for name in fields if name not in _SOURCE_FIELDS]
        found: dict[str, list[FacetValue]] = {}
        if source_fields:
            [answer] = self._ask([countable | _ONE_PAGE | {"facets": source_fields}])
            counts = answer.get("facetDistribution", {})
            found |= {name: _sorted(name, counts.get(name, {})) for name in source_fields}
        if other:
            [answer] = self._ask([countable | _ONE_PAGE | {"distinct": PRIMARY_KEY, "facets": other}])
            counts = answer.get("facetDistribution", {})
            found |= {name: self._by_families(countable, name, counts.get(name, {}), limit) for name in other}
        return {name: found[name][:limit] for name in fields}

    def _by_families(
        self, question: Mapping[str, Any], field: str, documents: Mapping[str, int], limit: int
    ) -> list[FacetValue]:
        """The number of families with each value. Meilisearch counts documents, or with `distinct` one document of each
        family, which may lack the value. So each value is counted in a query of its own, most frequent first, until no
        other value can be among the `limit` best."""
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
        having = (rows.conditions([Filter(field, any_of=(_value(field, value),))]) for value in values)
        answers = self._ask([same | {"filter": [*question["filter"], *one]} for one in having])
        # The facet count is preferred, because Meilisearch limits `totalHits`. The count is at least one: the value
        # exists, even if it is so long that a filter does not find it.
        return {
            value: max(1, answer.get("facetDistribution", {}).get(field, {}).get(value, answer["totalHits"]))
            for value, answer in zip(values, answers, strict=True)
        }

    def refresh(self) -> None:
        """Answers are always current; only the cached number of documents is reset."""
        self._documents = None

    def close(self) -> None:
        """Nothing to do: the sink closes the connection."""

    def _ask(self, questions: Sequence[Mapping[str, Any]]) -> list[Any]:
        answers = self._send(questions)
        empty = [number for number, answer in enumerate(answers) if not answer["hits"]]
        again = [number for number in empty if query_words.may_be_japanese(questions[number]["q"])]
        japanese = self._send([{**questions[number], "locales": ["jpn"]} for number in again])
        for number, answer in zip(again, japanese, strict=True):
            answers[number] = answer
        return answers

    def _send(self, questions: Sequence[Mapping[str, Any]]) -> list[Any]:
        if not questions:
            return []
        if len(questions) == 1:
            return [self._connection.send(f"{self._path}/search", dict(questions[0]))]
        queries = [{"indexUid": self._name, **question} for question in questions]
        answers: list[Any] = self._connection.send("/multi-search", {"queries": queries})["results"]
        return answers


def _question(query: str, filters: Sequence[Filter]) -> dict[str, Any]:
    """A search for documents with some of the words. The strategy `frequency` counts the documents of other tenants,
    too, so it is not used with filters."""
    strategy = "last" if filters else "frequency"
    return {"q": query, "filter": rows.conditions(filters), "matchingStrategy": strategy}


def _scored(filters: Sequence[Filter]) -> dict[str, Any]:
    fields = ["id", "parent_id", *{one.field for one in filters}]
    return {"filter": rows.conditions(filters), "attributesToRetrieve": fields, "showRankingScore": True}


def _scores(answer: Mapping[str, Any], filters: Sequence[Filter]) -> Iterator[tuple[tuple[str, str], float]]:
    """The ids of documents and families that pass the filters, with Meilisearch's scores."""
    return (((hit["id"], hit["parent_id"]), hit["_rankingScore"]) for hit in answer["hits"] if _is_right(hit, filters))


def _is_right(hit: Mapping[str, Any], filters: Sequence[Filter]) -> bool:
    """Whether the hit passes the filters exactly. One without a `parent_id` is foreign; the next scan reports it."""
    return isinstance(hit.get("parent_id"), str) and rows.passes_exactly(hit, filters)


def _vector_part(vector: Vectors, share: float) -> dict[str, Any]:
    return {"hybrid": {"embedder": EMBEDDER, "semanticRatio": share}, "vector": np.asarray(vector).tolist()}


def _score(hit: Mapping[str, Any]) -> float:
    """Meilisearch's own score times the square of the share of matched words, so that hits with few of the words stay
    below vector hits."""
    words = hit.get("_rankingScoreDetails", {}).get("words")
    share = words["matchingWords"] / words["maxMatchingWords"] if words else 1.0
    return float(hit["_rankingScore"] * share**2)


def _has_no_terms(query: str) -> bool:
    """Whether the query is not blank but has nothing searchable: the server would find everything."""
    return bool(query.strip()) and not rows.is_searchable(rows.sendable(query))


def _pieces(marked: str) -> Iterator[Piece]:
    """The pieces of a snippet."""
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
    """Meilisearch returns all facet values as strings."""
    kind = VALUE_TYPES.get(field)
    if kind is bool:
        return value == "true"
    return int(float(value)) if kind is int else value
