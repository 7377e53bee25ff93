"""A search over one generation: ask the legs, fuse their rankings, show each source by its best chunk."""

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter

from chunksink.chunkbus.canonical import canonical_text
from chunksink.chunkbus.spans import span
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.search.access import EVERYTHING, Access
from chunksink.search.answer import Answer, SearchHit, hit_of
from chunksink.search.errors import InvalidQuestion
from chunksink.search.excerpt import pattern_of, snippet
from chunksink.search.facets import count
from chunksink.search.fusion import PATH, Share
from chunksink.search.legs import LegQueries, Legs
from chunksink.search.neighbours import fetch, neighbours, replacements
from chunksink.search.notices import missing_identifiers, notices, suggestions_for
from chunksink.search.order import Order, Placed
from chunksink.search.phrases import respelled
from chunksink.search.question import ENGINE, KEYWORD, LEGS_OF, SEMANTIC, Question
from chunksink.sinks.document import CUSTOM, Document
from chunksink.sinks.errors import InvalidFilter, SinkError
from chunksink.sinks.reader import Filter, Hit, value_of

_WORD = re.compile(r"\w")
_SHORT_TEXT = 80  # characters
_WEAK_VALUE = 0.5
"""A keyword hit with a lower scaled score matches the words of the query weakly."""


def search(legs: Legs, question: Question, access: Access = EVERYTHING) -> Answer:
    """The best sources for a question, best first, among the documents that `access` may see."""
    with span("question", mode=question.mode, limit=question.limit):
        return _answer(legs, question, access)


def _answer(legs: Legs, question: Question, access: Access) -> Answer:
    started = perf_counter()
    # Normalise the query like the texts.
    question = replace(question, text=canonical_text(question.text))
    if not question.text.strip() and question.sort is None:
        raise InvalidQuestion(
            "The query is empty: enter a question or words. An empty query needs a sort order; it then lists all "
            "documents that pass the filters."
        )
    if access.denied:
        notice = "This index serves each tenant its own documents: name the tenant."
        took = (perf_counter() - started) * 1000
        return Answer(question.text, question.mode, question.fusion, (), False, {}, took, notice=notice)
    _require_fields(legs, question)
    question = replace(question, spelling=suggestions_for(legs, question, access))
    filters = (*question.filters, *access.filters())
    queries = legs.begin(question, filters)
    order = Order(queries, question, legs.keyword_weight)
    hits, more, is_stale = _page(legs, access, order, question)
    if is_stale:  # documents have vanished since the legs found them: ask again, since newer ones may match
        order = Order(queries, question, legs.keyword_weight)
        hits, more, _ = _page(legs, access, order, question)
    hits = _with_snippets(legs, question, filters, queries, hits)
    hits = _with_neighbours(legs, access, question, hits)
    missing = missing_identifiers(legs, question, filters)
    hits = _with_weakness(legs, question, order, hits, missing)
    facets = count(legs, question, access, queries, order.results)
    sentences = list(notices(legs, question, access, queries, order, missing))
    if hits and not question.offset and all(hit.weak for hit in hits):
        sentences.append("All of these hits are weak matches: the index may have nothing about this.")
    if question.sort and hits and not question.offset and value_of(hits[0].document, question.sort.field) is None:
        name = question.sort.field.removeprefix(CUSTOM)
        sentences.append(f"These documents have no {name}, so the order does not depend on it.")
    return Answer(
        query=question.text,
        mode=question.mode,
        fusion=question.fusion,
        hits=tuple(hits),
        more=more,
        facets=facets,
        took_ms=(perf_counter() - started) * 1000,
        unavailable=queries.failed,
        notice=" ".join(sentences) or None,
        not_reranked=order.not_reranked,
        suggestions=question.spelling,
        evidence=order.evidence,
        answered=queries.answered,
        counts_all=order.complete or (question.mode != ENGINE and len(order.results.hits) < 2),
        moved=queries.moved,
        sort=question.sort,
    )


def _require_fields(legs: Legs, question: Question) -> None:
    """Raise `InvalidFilter` if the hits depend on custom fields that the index does not have yet."""
    sort = [question.sort.field] if question.sort is not None else []
    fields = [*(one.field for one in question.filters), *sort]
    lacking = [name for field in fields if (name := field.removeprefix(CUSTOM)) in legs.lacking]
    if lacking:
        raise InvalidFilter(
            f"the index does not have {', '.join(lacking)} yet: [fields] has changed. Run `chunksink sync`, "
            "then restart programs that run with the old [fields]"
        )


def _page(legs: Legs, access: Access, order: Order, question: Question) -> tuple[list[SearchHit], bool, bool]:
    """The requested hits, whether more follow, and whether a document has vanished since the legs found it.
    Places before the offset are read, too, because several places may become one hit."""
    missing: list[Hit] = []
    hits: dict[str, SearchHit] = {}
    for hit in _grouped(legs, access, order, question, missing):
        hits.setdefault(hit.document.id, hit)  # a document may also replace another hit: the first place counts
        if len(hits) > question.last:
            break
    return list(hits.values())[question.offset : question.last], len(hits) > question.last, bool(missing)


def _grouped(legs: Legs, access: Access, order: Order, question: Question, missing: list[Hit]) -> Iterator[SearchHit]:
    """The hits in order. Vanished documents are added to `missing`.

    With `collapse` and without a sort order, hits of one part (`Order.parts`) with the same text become one hit. Copies
    of a text usually follow each other, so the group of a part's last hit stays open for hits of the next part. Groups
    after it in the order wait until it is complete. Like parts, groups do not depend on limit and offset.
    """
    folds_copies = question.collapse and question.sort is None  # a sorted list shows every source
    groups: dict[Hashable, list[tuple[Placed, Document]]] = {}
    last: Hashable = None
    for part in order.parts():
        documents = fetch(legs, access, {one.hit.id: one.hit.parent_id for one in part})
        shown = replacements(legs, access, question, list(documents.values()))
        missing += [one.hit for one in part if one.hit.id not in shown]
        found = [(one, document) for one in part if (document := shown.get(one.hit.id))]
        if last is None:  # the first part
            found = _reranked(legs, order, question, found)
        for one, document in found:
            last = _same_text_key(document) if folds_copies else document.id
            groups.setdefault(last, []).append((one, document))
        for key in list(groups):
            if key == last and not order.complete:
                break
            (best, document), *others = groups.pop(key)
            same_text = tuple(other for _, other in others if other.id != document.id)
            yield hit_of(document, best.fused.score, best.fused.shares, same_text, legs.fields, best.rerank)


def _reranked(
    legs: Legs, order: Order, question: Question, found: list[tuple[Placed, Document]]
) -> list[tuple[Placed, Document]]:
    """The best hits in the order of the reranker, if one is configured, below files that the query names; the others
    follow."""
    if legs.reranking is None or question.sort is not None or not found:
        return found
    named = sum(any(share.leg == PATH for share in one.fused.shares) for one, _ in found)  # these are first
    top = found[named : named + legs.reranking.top]
    try:
        with span("rerank", documents=len(top)):
            ranks = legs.reranking.order(question.text, [document for _, document in top])
    except EmbeddingsError as error:
        order.not_reranked = str(error)
        return found
    moved = ((replace(rank, place=named + rank.place), *top[rank.place - 1]) for rank in ranks)
    reranked = [(replace(one, rerank=rank), document) for rank, one, document in moved]
    return [*found[:named], *reranked, *found[named + len(top) :]]


def _same_text_key(document: Document) -> Hashable:
    """A key that is equal for documents of one tenant with the same text. Short texts (Thanks!) occur in unrelated
    sources, so their titles must be equal, too. A document without text is only equal to itself."""
    text = document.text.strip()
    if not text:
        return document.id
    return document.tenant_key, document.text_hash, document.title if len(text) < _SHORT_TEXT else None


def _with_snippets(
    legs: Legs, question: Question, filters: Sequence[Filter], queries: LegQueries, hits: list[SearchHit]
) -> list[SearchHit]:
    """Add snippets with the found words, without markup, whichever leg found the hit; not in semantic mode."""
    if legs.keyword is None or KEYWORD in queries.failed or question.mode == "semantic":
        return hits
    try:
        shown = legs.keyword.reader.snippets(question.words, [hit.document.id for hit in hits], filters)
    except SinkError as error:
        queries.failed[KEYWORD] = str(error)
        return hits
    words = pattern_of(shown.values())
    return [
        replace(hit, snippet=snippet(found, hit.document, words)) if (found := shown.get(hit.document.id)) else hit
        for hit in hits
    ]


def _with_weakness(
    legs: Legs, question: Question, order: Order, hits: list[SearchHit], missing: Sequence[str]
) -> list[SearchHit]:
    """All hits are weak if the query has only identifiers that no text contains."""
    if missing and not _WORD.search(respelled(question.text, dict.fromkeys(missing, " "))):
        return [replace(hit, weak=True) for hit in hits]
    if not hits or legs.semantic is None or SEMANTIC not in LEGS_OF[question.mode]:
        return hits
    floor = legs.semantic.floor(question.text if order.is_empty(KEYWORD) else None)
    if floor is None:
        return hits
    return [replace(hit, weak=all(_is_weak(share, floor) for share in hit.shares)) for hit in hits]


def _is_weak(share: Share, floor: float) -> bool:
    """A keyword score without a scale never counts as weak: it does not show how well the words match."""
    if share.leg == SEMANTIC:
        return share.score < floor
    return share.high is not None and share.value < _WEAK_VALUE


def _with_neighbours(legs: Legs, access: Access, question: Question, hits: list[SearchHit]) -> list[SearchHit]:
    if not question.context:
        return hits
    around = neighbours(legs, access, [hit.document for hit in hits], question.context)
    sides = (around[hit.document.id] for hit in hits)
    return [replace(hit, before=before, after=after) for hit, (before, after) in zip(hits, sides, strict=True)]
