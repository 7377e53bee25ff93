"""A search over the live generation: ask the legs, fuse their rankings, keep each family's best chunk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Literal

from chunkbus.canonical import canonical_text
from search.fusion import fuse_ranks
from sinks.document import Document, Vectors
from sinks.reader import Hit, KeywordReader, Piece, VectorReader

Mode = Literal["hybrid", "keyword", "semantic"]
MODES: tuple[Mode, ...] = ("hybrid", "keyword", "semantic")

KEYWORD, SEMANTIC = "keyword", "semantic"
_LEGS: dict[Mode, tuple[str, ...]] = {
    "hybrid": (KEYWORD, SEMANTIC),
    "keyword": (KEYWORD,),
    "semantic": (SEMANTIC,),
}
_FETCH_AT_FIRST = 50


@dataclass(frozen=True)
class SearchHit:
    """One source document that answers, shown by its best chunk. `ranks` says where each leg had that chunk."""

    chunk_id: str
    parent_id: str
    score: float
    title: str | None
    text: str
    snippet: tuple[Piece, ...]
    source_uri: str | None
    locator: dict[str, str | int | float]
    ranks: dict[str, int]


@dataclass(frozen=True)
class Answer:
    """`unavailable` says which leg could not be asked, and why; the hits are then the other leg's."""

    query: str
    mode: Mode
    hits: tuple[SearchHit, ...]
    took_ms: float
    unavailable: dict[str, str]


@dataclass(frozen=True)
class Legs:
    """What one generation is searched through. `encode_query` uses the model that made the generation's vectors."""

    keyword: KeywordReader
    vectors: VectorReader | None
    encode_query: Callable[[str], Vectors] | None
    unavailable: dict[str, str]

    def questions(self, query: str, mode: Mode) -> dict[str, Callable[[int], list[Hit]]]:
        """For each leg that can answer: from how many hits are wanted to the hits. A blank query asks nothing."""
        asked: dict[str, Callable[[int], list[Hit]]] = {}
        if query and KEYWORD in _LEGS[mode]:
            asked[KEYWORD] = partial(self.keyword.search, query)
        if query and SEMANTIC in _LEGS[mode] and self.vectors is not None and self.encode_query is not None:
            asked[SEMANTIC] = partial(self.vectors.query, self.encode_query(query))
        return asked


def search(legs: Legs, query: str, *, limit: int = 10, mode: Mode = "hybrid") -> Answer:
    """The best `limit` families for a query, best first."""
    started = perf_counter()
    query = canonical_text(query)  # as the texts are; what no text can hold, no engine can be asked for
    questions = legs.questions(query, mode)
    depth = max(_FETCH_AT_FIRST, limit)
    while True:
        found = {leg: ask(depth) for leg, ask in questions.items()}
        ranked = fuse_ranks({leg: [hit.id for hit in hits] for leg, hits in found.items()})
        best = _best_of_families(ranked, found)
        exhausted = all(len(hits) < depth for hits in found.values())
        if len(best) >= limit or exhausted:
            break
        depth *= 4  # many chunks of few families: look further down
    hits = _describe(legs, best[:limit], found)
    unavailable = {leg: reason for leg, reason in legs.unavailable.items() if leg in _LEGS[mode]}
    return Answer(query, mode, tuple(hits), (perf_counter() - started) * 1000, unavailable)


def _best_of_families(ranked: list[tuple[str, float]], found: dict[str, list[Hit]]) -> list[tuple[str, float]]:
    family = {hit.id: hit.parent_id for hits in found.values() for hit in hits}
    seen: set[str] = set()
    best = []
    for id_, score in ranked:
        if family[id_] not in seen:
            seen.add(family[id_])
            best.append((id_, score))
    return best


def _describe(legs: Legs, best: Sequence[tuple[str, float]], found: dict[str, list[Hit]]) -> list[SearchHit]:
    ids = [id_ for id_, _ in best]
    documents = {document.id: document for document in legs.keyword.get(ids)}
    missing = [id_ for id_ in ids if id_ not in documents]
    if missing and legs.vectors is not None:  # one engine can have refused what the other took
        documents |= {document.id: document for document in legs.vectors.get(missing)}
    snippets = {hit.id: hit.snippet for hit in found.get(KEYWORD, []) if hit.snippet}
    ranks: dict[str, dict[str, int]] = {id_: {} for id_ in ids}
    for leg, hits in found.items():
        for rank, hit in enumerate(hits, start=1):
            if hit.id in ranks:
                ranks[hit.id][leg] = rank
    return [
        _hit(documents[id_], score, snippets.get(id_, ()), ranks[id_])
        for id_, score in best
        if id_ in documents  # removed between the question and now
    ]


def _hit(document: Document, score: float, snippet: tuple[Piece, ...], ranks: dict[str, int]) -> SearchHit:
    return SearchHit(
        chunk_id=document.chunk_id,
        parent_id=document.parent_id,
        score=score,
        title=document.title,
        text=document.text,
        snippet=snippet,
        source_uri=document.source_uri,
        locator=_locator(document),
        ranks=ranks,
    )


def _locator(document: Document) -> dict[str, str | int | float]:
    """Where in its source the chunk stands, as far as it is known."""
    places = {
        "page_start": document.page_start,
        "slide_number": document.slide_number,
        "sheet_name": document.sheet_name,
        "timestamp_start": document.timestamp_start,
        "anchor": document.anchor,
        "section": " > ".join(document.headings) or document.section,
        "char_start": document.char_start,
    }
    return {name: value for name, value in places.items() if value is not None}
