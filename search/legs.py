"""The legs of a search: keyword and semantic. If one fails, it is reported and the other one answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

from chunksink.embeddings.errors import EmbeddingsError
from chunksink.search.errors import InvalidQuestion
from chunksink.search.phrases import for_words, phrases_of
from chunksink.search.question import ENGINE, KEYWORD, LEGS_OF, MODES, SEMANTIC, Question
from chunksink.sinks.document import Document, Vectors
from chunksink.sinks.errors import InvalidFilter, SinkError
from chunksink.sinks.reader import FamiliesOf, Filter, Hit, HybridReader, KeywordReader, Reader, VectorReader, unknown

REMEDY = "where a sink for that is configured, `chunksink sync` builds it"
"""A sink may be missing from the configuration, or configured and not built yet: which is unknown here."""

QuoteHits = Sequence[Hit] | None
"""The documents that contain all quoted phrases; None if the query has none, or if they could not be searched."""

_DEEPER = 4

FromChunks = Callable[[Mapping[str, str]], list[Document]]
"""Maps ids of documents, each with its source, to the documents that the chunks have."""


@dataclass(frozen=True)
class Ask:
    """A question to one leg: `hits(limit)`, the scores of given documents, and roughly the best possible score."""

    hits: Callable[[int], list[Hit]]
    scores: Callable[[Sequence[str]], dict[str, float]] = lambda _ids: {}
    most_score: Callable[[], float | None] = lambda: None


@dataclass(frozen=True)
class KeywordLeg:
    reader: KeywordReader
    sink: str
    build_id: str

    def begin(self, question: Question, filters: Sequence[Filter], held: QuoteHits = None) -> Ask:
        del held  # the engine finds phrases itself
        # Fusion needs every chunk. A single leg may let the engine collapse families, and finds more that way.
        every = not question.collapse or question.mode == "hybrid"
        words = for_words(question.text)

        def ask(depth: int) -> list[Hit]:
            return self.reader.search(words, depth, filters, every=every)

        return Ask(ask, most_score=partial(self.reader.most_score, words, filters))


@dataclass(frozen=True)
class SemanticLeg:
    """`encode` is the model of this build's vectors; `families` looks up families in another, faster sink."""

    reader: VectorReader
    encode: Callable[[str], Vectors]
    sink: str
    build_id: str
    families: FamiliesOf = unknown

    def begin(self, question: Question, filters: Sequence[Filter], held: QuoteHits = None) -> Ask:
        if held == ():
            return Ask(lambda _depth: [])
        vector = self.encode(question.text)

        def ask(depth: int) -> list[Hit]:
            if held is None:
                return self.reader.query(vector, depth, filters, self._families)
            return compared()[:depth]

        @cache
        def compared() -> list[Hit]:
            similar = self.reader.similarities(vector, [hit.id for hit in held or ()])
            hits = [replace(hit, score=similar[hit.id]) for hit in held or () if hit.id in similar]
            return sorted(hits, key=lambda hit: (-hit.score, hit.id))

        return Ask(ask, partial(self.reader.similarities, vector))

    def _families(self, ids: Sequence[str]) -> Mapping[str, str]:
        try:
            return self.families(ids)
        except SinkError:  # reported by the other leg
            return {}


@dataclass(frozen=True)
class EngineLeg:
    """An engine with a hybrid search of its own."""

    reader: HybridReader
    encode: Callable[[str], Vectors]
    sink: str
    build_id: str

    def begin(self, question: Question, filters: Sequence[Filter], held: QuoteHits = None) -> Ask:
        if held == ():
            return Ask(lambda _depth: [])
        vector = self.encode(question.text)
        # Another document of the same source may contain the phrase.
        every = not question.collapse or held is not None

        def ask(depth: int) -> list[Hit]:
            asked = depth
            while True:
                found = self.reader.hybrid(for_words(question.text), vector, asked, filters, every=every)
                if held is None:
                    return found
                hits = [hit for hit in found if hit.id in ids]
                if len(hits) >= min(depth, len(ids)) or len(found) < asked:
                    return hits[:depth]
                asked *= _DEEPER

        ids = {hit.id for hit in held or ()}
        return Ask(ask)


Leg = KeywordLeg | SemanticLeg | EngineLeg


@dataclass(frozen=True)
class Legs:
    """The legs of one generation. `unavailable` maps legs that cannot be asked to the reasons; `from_chunks` reads
    documents that the engines lack."""

    keyword: KeywordLeg | None
    semantic: SemanticLeg | None
    unavailable: Mapping[str, str] = field(default_factory=dict)
    from_chunks: FromChunks = lambda _wanted: []
    engine: EngineLeg | None = None

    def begin(self, question: Question, filters: Sequence[Filter]) -> "Asking":
        wanted = LEGS_OF[question.mode]
        there = {KEYWORD: self.keyword, SEMANTIC: self.semantic, ENGINE: self.engine}
        failed = {leg: reason for leg, reason in self.unavailable.items() if leg in wanted}
        legs = {name: leg for name in wanted if name not in failed and (leg := there[name]) is not None}
        if not legs and not failed:
            others = [mode for mode in MODES if any(there[leg] is not None for leg in LEGS_OF[mode])]
            problem = f"no build of this index answers {question.mode} searches"
            ways = [f"ask with the mode {' or '.join(others)}"] if others else []
            raise InvalidQuestion("; ".join([problem, *ways, REMEDY]))
        asking = Asking(legs, failed)
        asking.begin(question, filters, self.keyword)
        return asking

    def readers(self) -> list[Reader]:
        """In the order in which documents are requested from them."""
        return [leg.reader for leg in (self.keyword, self.semantic) if leg is not None]


class Asking:
    """One question to all its legs."""

    def __init__(self, legs: Mapping[str, Leg], failed: dict[str, str]) -> None:
        self._legs = dict(legs)
        self._asks: dict[str, Ask] = {}
        self.failed = failed
        self.moved = False
        self.phrases_held = True
        """Whether every hit contains the quoted phrases."""

    def begin(self, question: Question, filters: Sequence[Filter], words: KeywordLeg | None) -> None:
        """`words` is the leg that finds phrases, even if the mode does not ask it for anything else."""
        held = self._held(question, filters, words) if self._legs.keys() - {KEYWORD} else None
        for name, leg in list(self._legs.items()):
            try:
                self._asks[name] = leg.begin(question, filters, held)
            except EmbeddingsError as error:  # an endpoint that is out of reach
                self.failed[name] = str(error)

    def _held(self, question: Question, filters: Sequence[Filter], words: KeywordLeg | None) -> QuoteHits:
        phrases = phrases_of(question.text)
        if not phrases:
            return None
        self.phrases_held = False
        if words is None:
            return None
        try:
            held = phrases.held(words.reader, filters)
            marker = words.reader.marker()
        except InvalidFilter:
            raise
        except SinkError:  # reported by that leg, if the mode asks it
            return None
        if marker is None or marker.build_id != words.build_id:
            self.moved = True
            return None
        self.phrases_held = True
        return tuple(held)

    def ask(self, depth: int) -> dict[str, list[Hit]]:
        """The hits of each leg that answers from the expected build."""
        found = {}
        for name, ask in list(self._asks.items()):
            leg = self._legs[name]
            try:
                hits = ask.hits(depth)
                marker = leg.reader.marker()
            except InvalidFilter:
                raise
            except SinkError as error:
                self._drop(name, str(error))
                continue
            if marker is None or marker.build_id != leg.build_id:
                self.moved = True
                self._drop(name, f"{leg.sink} answers from another build than {leg.build_id}")
                continue
            found[name] = hits
        return found

    @property
    def answered(self) -> bool:
        """Whether any leg answered."""
        return bool(self._asks)

    def scores(self, leg: str, ids: Sequence[str]) -> dict[str, float]:
        """The leg's scores of documents that another leg found; empty if it cannot compute them."""
        try:
            return self._asks[leg].scores(ids) if ids and leg in self._asks else {}
        except SinkError:  # its hits are known; without these scores the order is slightly worse
            return {}

    def most_score(self, leg: str) -> float | None:
        try:
            return self._asks[leg].most_score() if leg in self._asks else None
        except SinkError:
            return None

    def _drop(self, name: str, reason: str) -> None:
        del self._asks[name]
        self.failed[name] = reason
