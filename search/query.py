"""A search over one generation: ask the legs, fuse their rankings, show each source by its best chunk."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from time import perf_counter

from chunkbus.canonical import canonical_text
from search.access import EVERYTHING, Access
from search.answer import Answer, SearchHit, hit_of
from search.context import fetch, neighbours
from search.facets import count
from search.legs import REMEDY, Asking, Legs
from search.order import Order, Placed
from search.phrases import phrases_of
from search.question import KEYWORD, Question
from sinks.document import Document
from sinks.errors import SinkError
from sinks.reader import Hit


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
    order = Order(asking, question)
    hits, more, gone = _page(legs, access, order, question)
    if gone:  # replaced since the legs named it: what is there now has not been asked yet
        order = Order(asking, question)
        hits, more, _ = _page(legs, access, order, question)
    hits = _with_snippets(legs, question, asking, hits)
    if question.context:
        around = neighbours(legs, access, [hit.document for hit in hits], question.context)
        hits = [_with_context(hit, *around[hit.document.id]) for hit in hits]
    facets = count(legs, question, access, asking, order.looked)
    return Answer(
        query=question.text,
        mode=question.mode,
        fusion=question.fusion,
        hits=tuple(hits),
        more=more,
        facets=facets,
        took_ms=(perf_counter() - started) * 1000,
        unavailable=asking.failed,
        notice="; ".join(_notices(legs, question, asking, order)) or None,
        answered=asking.answered,
        moved=asking.moved,
    )


def _page(legs: Legs, access: Access, order: Order, question: Question) -> tuple[list[SearchHit], bool, bool]:
    """The hits that were asked for, whether more follow, and whether the document of one is gone everywhere: such a
    one gives its place to the next."""
    order.reach(question.last)
    gone: list[Hit] = []
    described = _described(legs, access, order.placed, question, gone)
    hits = list(islice(described, question.limit))
    more = next(described, None) is not None or not order.complete
    return hits, more, bool(gone)


def _described(
    legs: Legs, access: Access, placed: Sequence[Placed], question: Question, gone: list[Hit]
) -> Iterator[SearchHit]:
    for start in range(question.offset, len(placed), question.limit + 1):
        page = placed[start : start + question.limit + 1]
        documents = fetch(legs, access, {one.hit.id: one.hit.parent_id for one in page})
        for one in page:
            document = documents.get(one.hit.id)
            if document is None:
                gone.append(one.hit)
            else:
                yield hit_of(document, one.fused.score, one.fused.shares)


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


def _notices(legs: Legs, question: Question, asking: Asking, order: Order) -> Iterator[str]:
    """A leg that this index was never meant to have is no failure, but changes what hybrid means."""
    if question.mode == "hybrid" and not legs.unavailable:
        if legs.semantic is None:
            yield f"by words only: no build of this index is searched by meaning; {REMEDY}"
        if legs.keyword is None:
            yield f"by meaning only: no build of this index is searched by words; {REMEDY}"
    phrases = phrases_of(question.text)
    if phrases and not asking.phrases_held:
        yield f"{phrases} need not stand in the hits: only keyword search finds what stands in quotes, and is not there"
    elif phrases and asking.answered and not order.placed:
        among = " of what the filters let through" if question.filters else ""
        yield f"nothing{among} holds {phrases}; without quotes the words are looked for one by one"


def _nothing(question: Question, started: float, notice: str | None) -> Answer:
    took = (perf_counter() - started) * 1000
    return Answer(question.text, question.mode, question.fusion, (), False, {}, took, notice=notice)
