"""A search over one generation: ask the legs, fuse their rankings, show each source by its best chunk."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter

from chunkbus.canonical import canonical_text
from search.access import EVERYTHING, Access
from search.answer import Answer, SearchHit, hit_of
from search.context import fetch, neighbours
from search.fusion import Fused, Fusion, Ranking, alone, by_ranks, by_scores
from search.legs import Asking, Legs
from search.question import KEYWORD, SEMANTIC, FusionName, Question
from sinks.document import Document
from sinks.errors import InvalidFilter, SinkError
from sinks.reader import FacetValue, Filter, Hit

FETCH_AT_FIRST = 100
"""Hits of each leg; what neither has among them is not looked at."""
_DEEPER = 4

_FUSIONS: Mapping[FusionName, Fusion] = {"scores": by_scores, "ranks": by_ranks}


@dataclass(frozen=True)
class _Ranked:
    """What the legs found, in the order that they come to together."""

    fused: Sequence[Fused]
    hits: Mapping[str, Hit]
    """By key (family or chunk), the hit that it is shown by."""
    complete: bool
    """Whether there is nothing further down."""


def search(legs: Legs, question: Question, access: Access = EVERYTHING) -> Answer:
    """The best sources for a question, best first; only what `access` may see."""
    started = perf_counter()
    # As the texts are; what no text can hold, no engine can be asked for.
    question = replace(question, text=canonical_text(question.text))
    if access.denied:
        return _nothing(question, started, "this index serves each tenant its own documents: say which tenant asks")
    if not question.text.strip():
        return _nothing(question, started, None)
    filters = (*question.filters, *access.filters())
    asking = legs.begin(question, filters)
    hits, more, gone = _page(legs, access, _ranked(asking, question), question)
    if gone:  # replaced since the legs named it: what is there now has not been asked yet
        hits, more, _ = _page(legs, access, _ranked(asking, question), question)
    hits = _with_snippets(legs, question, asking, hits)
    if question.context:
        around = neighbours(legs, access, [hit.document for hit in hits], question.context)
        hits = [_with_context(hit, *around[hit.document.id]) for hit in hits]
    facets = _facets(legs, question, access, asking)
    return Answer(
        query=question.text,
        mode=question.mode,
        fusion=question.fusion,
        hits=tuple(hits),
        more=more,
        facets=facets,
        took_ms=(perf_counter() - started) * 1000,
        unavailable=asking.failed,
        notice=_notice(legs, question),
        moved=asking.moved,
    )


def _ranked(asking: Asking, question: Question) -> _Ranked:
    """Asks deeper until there are enough sources: the best hits may be many chunks of few of them."""
    depth = FETCH_AT_FIRST
    while depth <= question.last:  # in steps, so that neighbouring pages come from one and the same order
        depth *= _DEEPER
    while True:
        found = asking.ask(depth)
        complete = all(len(hits) < depth for hits in found.values())
        ranked = _fused(asking, found, question, complete)
        if complete or len(ranked.fused) > question.last:
            return ranked
        depth *= _DEEPER


def _fused(asking: Asking, found: Mapping[str, Sequence[Hit]], question: Question, complete: bool) -> _Ranked:
    best = {leg: _best(hits, question.collapse) for leg, hits in found.items()}
    fusion = _FUSIONS[question.fusion] if len(found) > 1 else alone
    rankings = {leg: Ranking([(key, hit.score) for key, hit in of_leg.items()]) for leg, of_leg in best.items()}
    if fusion is by_scores:
        rankings = _comparable(asking, rankings, best)
    fused = fusion(rankings)
    shown = {one.key: best[_foremost(one)][one.key] for one in fused}
    return _Ranked(fused, shown, complete)


def _comparable(
    asking: Asking, rankings: Mapping[str, Ranking], best: Mapping[str, Mapping[str, Hit]]
) -> dict[str, Ranking]:
    """What keyword search did not find holds no word: its score is 0. A similarity is there for every hit, and the
    least of all stands for 0."""
    missing = {key: hit.id for key, hit in best[KEYWORD].items() if key not in best[SEMANTIC]}
    scores = asking.scores(SEMANTIC, list(missing.values()))
    beyond = {key: scores[id] for key, id in missing.items() if id in scores}
    return {
        KEYWORD: replace(rankings[KEYWORD], low=0.0, most=asking.most_score(KEYWORD)),
        SEMANTIC: replace(rankings[SEMANTIC], beyond=beyond),
    }


def _foremost(fused: Fused) -> str:
    """The leg whose hit shows a source: of those that found it the one that says more for it."""
    return max((share for share in fused.shares if share.rank is not None), key=lambda share: share.points).leg


def _best(hits: Sequence[Hit], collapse: bool) -> dict[str, Hit]:
    """The first hit of each source, or each hit."""
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.parent_id if collapse else hit.id, hit)
    return best


def _page(legs: Legs, access: Access, ranked: _Ranked, question: Question) -> tuple[list[SearchHit], bool, bool]:
    """The hits that were asked for, whether more follow, and whether the document of one is gone everywhere: such a
    one gives its place to the next."""
    gone: list[Hit] = []
    described = _described(legs, access, ranked, question, gone)
    hits = list(islice(described, question.limit))
    more = next(described, None) is not None or not ranked.complete
    return hits, more, bool(gone)


def _described(legs: Legs, access: Access, ranked: _Ranked, question: Question, gone: list[Hit]) -> Iterator[SearchHit]:
    for start in range(question.offset, len(ranked.fused), question.limit + 1):
        page = ranked.fused[start : start + question.limit + 1]
        documents = fetch(legs, access, {hit.id: hit.parent_id for one in page for hit in [ranked.hits[one.key]]})
        for one in page:
            document = documents.get(ranked.hits[one.key].id)
            if document is None:
                gone.append(ranked.hits[one.key])
            else:
                yield hit_of(document, one.score, one.shares)


def _with_snippets(legs: Legs, question: Question, asking: Asking, hits: list[SearchHit]) -> list[SearchHit]:
    """What each hit holds of the words, however it was found; not where only its meaning was asked for."""
    if legs.keyword is None or KEYWORD in asking.failed or question.mode == "semantic":
        return hits
    try:
        shown = legs.keyword.reader.snippets(question.text, [hit.document.id for hit in hits])
    except SinkError as error:
        asking.failed[KEYWORD] = str(error)
        return hits
    return [replace(hit, snippet=shown.get(hit.document.id, ())) for hit in hits]


def _with_context(hit: SearchHit, before: tuple[Document, ...], after: tuple[Document, ...]) -> SearchHit:
    return replace(hit, before=before, after=after)


def _facets(legs: Legs, question: Question, access: Access, asking: Asking) -> dict[str, list[FacetValue]]:
    """Counted over all that the keyword index finds; a search by meaning finds everything. A field's own filters do
    not narrow its own values: one would never see what else could be chosen."""
    if not question.facets or legs.keyword is None or KEYWORD in asking.failed:
        return {}
    text = "" if question.mode == "semantic" else question.text
    counted: dict[str, list[FacetValue]] = {}
    try:
        for fields, filters in _by_filters(question):
            counted |= legs.keyword.reader.facets(text, fields, (*filters, *access.filters()))
    except InvalidFilter:
        raise
    except SinkError as error:
        asking.failed[KEYWORD] = str(error)
        return {}
    return {field: counted[field] for field in question.facets}


def _by_filters(question: Question) -> list[tuple[list[str], tuple[Filter, ...]]]:
    filtered = {one.field for one in question.filters}
    apart = [field for field in question.facets if field in filtered]
    together = [field for field in question.facets if field not in filtered]
    asked = [([field], tuple(one for one in question.filters if one.field != field)) for field in apart]
    return ([(together, question.filters)] if together else []) + asked


def _notice(legs: Legs, question: Question) -> str | None:
    """A leg that this index was never meant to have is no failure, but changes what hybrid means."""
    if question.mode != "hybrid" or legs.unavailable:
        return None
    if legs.semantic is None:
        return "by words only: no configured sink holds vectors"
    return "by meaning only: no configured sink is searched by words" if legs.keyword is None else None


def _nothing(question: Question, started: float, notice: str | None) -> Answer:
    took = (perf_counter() - started) * 1000
    return Answer(question.text, question.mode, question.fusion, (), False, {}, took, notice=notice)
