"""Explains in words why a hit has its rank, for the command line and the page."""

from collections.abc import Iterator

from chunksink.search.answer import Answer, SearchHit
from chunksink.search.fusion import PATH, RANK_CONSTANT, Share
from chunksink.search.rerank import Reranked
from chunksink.sinks.document import CUSTOM, Document

NOT_RANKED = "not among its best hits"


def is_fused(answer: Answer) -> bool:
    """Whether scores were scaled or added. A single leg keeps the scores of its engine."""
    return any(share.weight != 1.0 or share.value != share.score for hit in answer.hits for share in hit.shares)


def share_text(answer: Answer, share: Share) -> str:
    """The contribution of one leg."""
    if share.leg == PATH:
        return f"the query names this file, adds {share.points:.4g}: the best score"
    place = NOT_RANKED if share.rank is None else f"place {share.rank}"
    if answer.sort is not None:
        return place
    score = f"{place}, score {share.score:.4g}"
    if not is_fused(answer):
        return score
    return f"{score}{_scale(share)}, adds {share.weight:.3g} × {share.value:.4f} = {share.points:.4f}"


def score_text(answer: Answer, hit: SearchHit) -> str:
    if answer.sort is not None:
        return "none"
    return f"{hit.score:.4f}" if is_fused(answer) else f"{hit.score:.4g}"


def formula(answer: Answer) -> str:
    """How the scores of this answer are computed, or what orders the hits if there are no scores."""
    if answer.sort is not None:
        return f"the hits are sorted by {answer.sort.field.removeprefix(CUSTOM)}"
    if not is_fused(answer):
        return "the engine's own score, from one search"
    if answer.fusion == "ranks":
        return f"the sum of 1 / ({RANK_CONSTANT} + place) over both searches"
    if answer.evidence is None:
        return "the scores of each search scaled to 0..1, weighted by `fusion_weight`, and added"
    return (
        "the scores of each search scaled to 0..1, weighted and added. The better the best keyword hit matches, "
        f"the more weight keyword search gets: here the match is {answer.evidence:.0%}, where half the score of a full "
        "match counts as 100%"
    )


def rerank_text(rerank: Reranked) -> str:
    return f"the reranker's score {rerank.score:.4g} decides the place, which was {rerank.place} before reranking"


def facts(document: Document) -> Iterator[tuple[str, str]]:
    """Facts about the chunk that do not affect its score."""
    yield "chunk", document.chunk_id
    if document.chunk_index is not None:
        yield "number", str(document.chunk_index + 1)
    if document.char_start is not None:
        yield "characters", f"{document.char_start} to {document.char_end}"
    if document.start_offset is not None:
        yield "offsets", f"{document.start_offset} to {document.end_offset}"
    if document.token_count is not None:
        yield "tokens", str(document.token_count)
    yield "document", document.document_id
    yield "text", document.text_hash
    yield "source", document.parent_id


def value_text(value: object) -> str:
    """A value of a custom field or a facet."""
    if isinstance(value, list):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value).removesuffix("T00:00:00Z")


def _scale(share: Share) -> str:
    """How the score was scaled; empty if it was not."""
    if share.low is None or share.high is None:
        return ""
    if share.low == share.high:
        return " (all scores are equal)"
    return f" ({share.low:.4g} counts as 0, {share.high:.4g} as 1)"
