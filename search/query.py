"""A search over one generation: ask the legs, fuse their rankings, show each source by its best chunk."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from time import perf_counter

from chunkbus.canonical import canonical_text
from search.access import EVERYTHING, Access
from search.answer import Answer, SearchHit, hit_of
from search.bare import shown_by
from search.context import fetch, neighbours
from search.facets import count
from search.legs import Asking, Legs
from search.notices import meant_by, notices
from search.order import Order, Placed
from search.phrases import for_words
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
    meant = meant_by(legs, question, access)
    return Answer(
        query=question.text,
        mode=question.mode,
        fusion=question.fusion,
        hits=tuple(hits),
        more=more,
        facets=facets,
        took_ms=(perf_counter() - started) * 1000,
        unavailable=asking.failed,
        notice="; ".join(notices(legs, question, access, asking, order, meant)) or None,
        meant=meant,
        answered=asking.answered,
        moved=asking.moved,
    )


def _page(legs: Legs, access: Access, order: Order, question: Question) -> tuple[list[SearchHit], bool, bool]:
    """The hits that were asked for, whether more follow, and whether the document of one is gone everywhere: such a
    one gives its place to the next."""
    order.reach(question.last)
    while True:
        gone: list[Hit] = []
        described = list(islice(_described(legs, access, order.placed, question, gone), question.limit + 1))
        if len(described) > question.limit or order.complete:
            return described[: question.limit], len(described) > question.limit, bool(gone)
        order.reach(len(order.placed))  # some of them have become one


def _described(
    legs: Legs, access: Access, placed: Sequence[Placed], question: Question, gone: list[Hit]
) -> Iterator[SearchHit]:
    """The hits from the offset on. Where every chunk is asked for, two of one source may be shown by the same one; they
    are one hit, at the better place, and whatever stands before the offset has to be known."""
    first = question.offset if question.collapse else 0
    left_out = question.offset - first
    told: set[str] = set()
    block = question.last - first + 1
    for start in range(first, len(placed), block):
        page = placed[start : start + block]
        documents = fetch(legs, access, {one.hit.id: one.hit.parent_id for one in page})
        shown = shown_by(legs, access, question, list(documents.values()))
        for one in page:
            document = shown.get(one.hit.id)
            if document is None:
                gone.append(one.hit)
            elif document.id not in told:
                told.add(document.id)
                if len(told) > left_out:
                    yield hit_of(document, one.fused.score, one.fused.shares)


def _with_snippets(legs: Legs, question: Question, asking: Asking, hits: list[SearchHit]) -> list[SearchHit]:
    """What each hit holds of the words, however it was found; not where only its meaning was asked for."""
    if legs.keyword is None or KEYWORD in asking.failed or question.mode == "semantic":
        return hits
    try:
        shown = legs.keyword.reader.snippets(for_words(question.text), [hit.document.id for hit in hits])
    except SinkError as error:
        asking.failed[KEYWORD] = str(error)
        return hits
    return [replace(hit, snippet=shown.get(hit.document.id, ())) for hit in hits]


def _with_context(hit: SearchHit, before: tuple[Document, ...], after: tuple[Document, ...]) -> SearchHit:
    return replace(hit, before=before, after=after)


def _nothing(question: Question, started: float, notice: str | None) -> Answer:
    took = (perf_counter() - started) * 1000
    return Answer(question.text, question.mode, question.fusion, (), False, {}, took, notice=notice)
