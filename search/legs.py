"""The legs of a search: keyword, semantic, and the hybrid search of an engine.

If one leg of hybrid mode fails, it is reported and the other one answers.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial

from chunksink.chunkbus.spans import span
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.search.errors import InvalidQuestion
from chunksink.search.phrases import phrases_of
from chunksink.search.question import ENGINE, KEYWORD, LEGS_OF, MAX_VALUES, MODES, SEMANTIC, Question
from chunksink.search.rerank import Reranking
from chunksink.sinks.capabilities import SupportsPatterns, capability
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.document import Document, Vectors
from chunksink.sinks.errors import InvalidFilter, SinkError
from chunksink.sinks.reader import (
    FamiliesOf,
    Filter,
    Hit,
    HybridReader,
    KeywordReader,
    Reader,
    VectorReader,
    no_families,
)

REMEDY = "run `chunksink sync` if such a sink is configured"
"""This module does not know which sinks are configured."""

PhraseHits = Sequence[Hit] | None
"""The documents that contain all quoted phrases, at most `MAX_PHRASE_HITS`. None if the query has no phrases, if only
the keyword leg is asked, or if keyword search is not available or answers from another build."""

_DEPTH_FACTOR = 4
_MAX_FILES = 10
_MAX_NAME = 500  # characters
_LINE = re.compile(r"(?::\d+){1,2}:?\Z|#L\d+(?:-L\d+)?\Z")
"""The line after a file's name, as in `client.py:41`."""

FromChunks = Callable[[Mapping[str, str]], list[Document]]
"""Makes documents from the chunks on disk. The argument maps the ids of documents to their families (`parent_id`)."""


@dataclass(frozen=True)
class LegQuery:
    """One question to one leg. `hits` takes the number of hits, `scores` the ids of documents. `max_score` is roughly
    the score of a document that contains the whole query."""

    hits: Callable[[int], list[Hit]]
    scores: Callable[[Sequence[str]], dict[str, float]] = lambda _ids: {}
    max_score: Callable[[], float | None] = lambda: None


@dataclass(frozen=True)
class KeywordLeg:
    reader: KeywordReader
    sink: str
    build_id: str

    def begin(self, question: Question, filters: Sequence[Filter], phrase_hits: PhraseHits = None) -> LegQuery:
        del phrase_hits  # the engine finds phrases itself
        # Fusion needs every chunk. A single leg may let the engine return one chunk of each family: with the same depth
        # it reaches more sources.
        every = not question.collapse or question.mode == "hybrid"
        words = question.words

        def ask(depth: int) -> list[Hit]:
            hits = self.reader.search(words, depth, filters, every=every, sort=question.sort)
            if question.sort is None:
                return hits
            return [replace(hit, score=0.0) for hit in hits]  # with equal scores, fusion keeps the engine's order

        return LegQuery(ask, max_score=partial(self.reader.max_score, words, filters))

    def in_named_files(self, question: Question, filters: Sequence[Filter]) -> list[Hit]:
        """The best hit of each file that the query names, if it is a file name or a path and nothing else. Empty if
        more than `_MAX_FILES` have that name."""
        name = _LINE.sub("", question.text.strip()).removeprefix("./")
        lister = capability(self.reader, SupportsPatterns)
        is_name = len(name) <= _MAX_NAME and not re.search(r"[\s*?]", name) and re.search(r".[./].", name)
        if lister is None or not is_name or question.sort is not None:
            return []
        try:
            found = []
            for family in _files_named(name, lister, filters):
                of_file = (*filters, Filter("parent_id", any_of=(family,)))
                found += self.reader.search(question.words, 1, of_file, every=True)
        except SinkError:  # the search itself reports it
            return []
        return sorted(found, key=lambda hit: -hit.score)


def _files_named(name: str, lister: SupportsPatterns, filters: Sequence[Filter]) -> list[str]:
    """The families of the files whose path ends with this name, or else is the end of the name, which may be absolute.
    Empty if there are more than `_MAX_FILES`."""
    of_name = (*filters, Filter("filename", any_of=(name.rpartition("/")[2],)))  # engines have an index of it
    parts = name.split("/")
    ends = ("/".join(parts[start:]) for start in range(len(parts) - 1))
    families: list[str] = []
    with suppress(InvalidFilter):  # Meilisearch finds only beginnings of paths
        path = Filter("path", like=(name, f"*/{name}"))
        families = lister.sources((*of_name, path), _MAX_FILES + 1)
    if not families:
        path = Filter("path", any_of=tuple(ends))
        families = lister.sources((*of_name, path) if len(parts) > 1 else of_name, _MAX_FILES + 1)
    return families if len(families) <= _MAX_FILES else []


@dataclass(frozen=True)
class SemanticLeg:
    """`encode` computes query vectors with the model of the build. `families` gets the families of documents from the
    keyword sink, which is faster than the vector sink."""

    reader: VectorReader
    encode: Callable[[str], Vectors]
    sink: str
    build_id: str
    families: FamiliesOf = no_families
    floor: Callable[[str | None], float | None] = lambda _unknown: None
    """The similarity below which documents are hardly related; known after the first query. See `QueryModel.floor`."""

    def begin(self, question: Question, filters: Sequence[Filter], phrase_hits: PhraseHits = None) -> LegQuery:
        if phrase_hits == ():
            return LegQuery(lambda _depth: [])
        vector = self.encode(question.text)

        def ask(depth: int) -> list[Hit]:
            if phrase_hits is None:
                return self.reader.query(vector, depth, filters, self._families)
            return by_similarity()[:depth]

        @cache
        def by_similarity() -> list[Hit]:
            similar = self.reader.similarities(vector, [hit.id for hit in phrase_hits or ()])
            hits = [replace(hit, score=similar[hit.id]) for hit in phrase_hits or () if hit.id in similar]
            return sorted(hits, key=lambda hit: (-hit.score, hit.id))

        return LegQuery(ask, partial(self.reader.similarities, vector))

    def _families(self, ids: Sequence[str]) -> Mapping[str, str]:
        try:
            return self.families(ids)
        except SinkError:  # the vector sink knows the families, too
            return {}


@dataclass(frozen=True)
class EngineLeg:
    """An engine that has its own hybrid search."""

    reader: HybridReader
    encode: Callable[[str], Vectors]
    sink: str
    build_id: str

    def begin(self, question: Question, filters: Sequence[Filter], phrase_hits: PhraseHits = None) -> LegQuery:
        if phrase_hits == ():
            return LegQuery(lambda _depth: [])
        vector = self.encode(question.text)
        # If the engine returned only one document of each source, it might choose one without the phrase.
        every = not question.collapse or phrase_hits is not None
        ids = {hit.id for hit in phrase_hits or ()}

        def ask(depth: int) -> list[Hit]:
            requested = depth
            while True:
                found = self.reader.hybrid(question.words, vector, requested, filters, every=every)
                if phrase_hits is None:
                    return found
                hits = [hit for hit in found if hit.id in ids]
                if len(hits) >= min(depth, len(ids)) or len(found) < requested:
                    return hits[:depth]
                requested *= _DEPTH_FACTOR

        return LegQuery(ask)


Leg = KeywordLeg | SemanticLeg | EngineLeg


@dataclass(frozen=True)
class Legs:
    """The legs of one generation.

    `unavailable` maps failed legs to reasons. `from_chunks` reads documents that the engines lack. `fields` are the
    custom fields that the index has. `lacking` names configured fields that it lacks, because [fields] has changed
    since the index was built.
    """

    keyword: KeywordLeg | None
    semantic: SemanticLeg | None
    unavailable: Mapping[str, str] = field(default_factory=dict)
    from_chunks: FromChunks = lambda _sources: []
    engine: EngineLeg | None = None
    fields: FieldSet = NO_FIELDS
    lacking: Sequence[str] = ()
    reranking: Reranking | None = None
    keyword_weight: float | None = None
    """The weight of keyword search in hybrid scores; None to choose it for each query."""

    def begin(self, question: Question, filters: Sequence[Filter]) -> "LegQueries":
        names = LEGS_OF[question.mode]
        built = {KEYWORD: self.keyword, SEMANTIC: self.semantic, ENGINE: self.engine}
        failed = {leg: reason for leg, reason in self.unavailable.items() if leg in names}
        legs = {name: leg for name in names if name not in failed and (leg := built[name]) is not None}
        if not legs and not failed:
            others = [mode for mode in MODES if any(built[leg] is not None for leg in LEGS_OF[mode])]
            ways = [f"use the mode {' or '.join(others)}"] if others else []
            problem = f"this index has no sink for {question.mode} searches"
            raise InvalidQuestion(f"{problem}: {', or '.join([*ways, REMEDY])}")
        queries = LegQueries(legs, failed)
        queries.begin(question, filters, self.keyword)
        return queries

    def sinks(self) -> set[str]:
        return {leg.sink for leg in (self.keyword, self.semantic, self.engine) if leg is not None}

    def readers(self) -> list[Reader]:
        """In the order in which documents are requested from them."""
        return [leg.reader for leg in (self.keyword, self.semantic) if leg is not None]


def _without_patterns(filters: Sequence[Filter], keyword: KeywordLeg | None) -> Sequence[Filter]:
    """Replace patterns, which vector stores do not support, with the matching sources of the keyword index."""
    patterns = [pattern for one in filters for pattern in one.like or ()]
    if not patterns:
        return filters
    if keyword is None:
        raise InvalidFilter(f"the pattern {patterns[0]!r:.100} needs a sink with keyword search, such as fts")
    reader = capability(keyword.reader, SupportsPatterns)
    if reader is None:
        raise InvalidFilter(
            f"the pattern {patterns[0]!r:.100} cannot be used in a search by meaning, because {keyword.sink} cannot "
            "list the sources that match it: use the mode keyword, or remove the pattern"
        )
    sources = reader.sources(filters, MAX_VALUES + 1)
    if len(sources) > MAX_VALUES:
        raise InvalidFilter(f"more than {MAX_VALUES:,} sources match {', '.join(patterns)}: use a narrower pattern")
    return (*(one for one in filters if one.like is None), Filter("parent_id", any_of=tuple(sources)))


class LegQueries:
    """One question to all legs of its mode."""

    def __init__(self, legs: Mapping[str, Leg], failed: dict[str, str]) -> None:
        self._legs = dict(legs)
        self._queries: dict[str, LegQuery] = {}
        self.failed = failed
        """Maps the legs that did not answer to the reasons."""
        self.moved = False
        """See `Answer.moved`."""
        self.phrases_enforced = True
        """Whether every hit contains the quoted phrases."""
        self.in_named_files: Sequence[Hit] = ()
        """See `KeywordLeg.in_named_files`."""

    def begin(self, question: Question, filters: Sequence[Filter], keyword: KeywordLeg | None) -> None:
        """`keyword` is the leg that finds phrases, even if the mode does not use it otherwise."""
        phrase_hits = self._phrase_hits(question, filters, keyword) if self._legs.keys() - {KEYWORD} else None
        for name, leg in list(self._legs.items()):
            try:
                own = _without_patterns(filters, keyword) if isinstance(leg, SemanticLeg) else filters
                with span(f"begin {name}"):
                    self._queries[name] = leg.begin(question, own, phrase_hits)
                    if isinstance(leg, KeywordLeg):
                        self.in_named_files = leg.in_named_files(question, filters)
            except InvalidFilter:
                raise
            except (EmbeddingsError, SinkError) as error:  # for example an endpoint that does not answer
                self.failed[name] = str(error)

    def _phrase_hits(self, question: Question, filters: Sequence[Filter], keyword: KeywordLeg | None) -> PhraseHits:
        phrases = phrases_of(question.text)
        if not phrases:
            return None
        self.phrases_enforced = False
        if keyword is None:
            return None
        try:
            hits = phrases.hits(keyword.reader, filters)
            marker = keyword.reader.marker()
        except InvalidFilter:
            raise
        except SinkError:  # reported by that leg, if the mode uses it
            return None
        if marker is None or marker.build_id != keyword.build_id:
            self.moved = True
            return None
        self.phrases_enforced = True
        return tuple(hits)

    def ask(self, depth: int) -> dict[str, list[Hit]]:
        """The hits of each leg that answers from the expected build."""
        found = {}
        for name, query in list(self._queries.items()):
            leg = self._legs[name]
            try:
                with span(f"leg {name}", sink=leg.sink, depth=depth):
                    hits = query.hits(depth)
                    marker = leg.reader.marker()
            except InvalidFilter:
                raise
            except SinkError as error:
                self._drop(name, str(error))
                continue
            if marker is None or marker.build_id != leg.build_id:
                self.moved = True
                self._drop(name, f"{leg.sink} answers from a build other than {leg.build_id}")
                continue
            found[name] = hits
        return found

    @property
    def answered(self) -> bool:
        """Whether any leg answered."""
        return bool(self._queries)

    def scores(self, leg: str, ids: Sequence[str]) -> dict[str, float]:
        """The scores of documents that only another leg found; empty if the leg cannot compute them."""
        try:
            return self._queries[leg].scores(ids) if ids and leg in self._queries else {}
        except SinkError:  # its hits are known; without these scores the order is slightly worse
            return {}

    def max_score(self, leg: str) -> float | None:
        try:
            return self._queries[leg].max_score() if leg in self._queries else None
        except SinkError:
            return None

    def _drop(self, name: str, reason: str) -> None:
        del self._queries[name]
        self.failed[name] = reason
