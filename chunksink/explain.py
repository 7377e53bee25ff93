"""Why a hit has its place, in words: ranks and scores of the searches, the arithmetic, where the chunk is from."""

from chunksink.embeddings.errors import EmbeddingsError
from chunksink.home_cache import cached_vector
from chunksink.rebuild.state import Generation
from chunksink.search.answer import Answer, SearchHit
from chunksink.search.fusion import Share
from chunksink.settings.config import Config
from chunksink.sinks.document import Document

_FUSED_BY = {
    "scores": "keyword: score / best score, or half of what all words would score if that is more; "
    "semantic: from the least similarity here, 0, to the best, 1",
    "ranks": "1 / (60 + rank) of each leg, added",
}


def explained_lines(config: Config, generation: Generation, answer: Answer, hit: SearchHit) -> list[str]:
    """One fact a line."""
    document = hit.document
    lines = [*map(_share, hit.shares), _sum(answer, hit), f"chunk {document.chunk_id}: {_place(document)}"]
    if spans := _spans(document):
        lines.append(spans)
    lines.append(f"text {document.text_hash}, vector {_cached(config, generation, document.text_hash)}")
    builds = ", ".join(f"{sink} {build}" for sink, build in generation.builds.items())
    lines.append(f"generation {generation.id}: {builds}")
    return lines


def _share(share: Share) -> str:
    rank = "not among its best" if share.rank is None else f"rank {share.rank}"
    return f"{share.leg}: {rank}, score {share.score:.4g}{share.scaled}, gives {share.weight:g} x {share.value:.4f}"


def _sum(answer: Answer, hit: SearchHit) -> str:
    if len(hit.shares) == 1 and hit.score == hit.shares[0].score:
        return f"score {hit.score:.4g}: one leg alone, as its engine gave it"
    terms = " + ".join(f"{share.points:.4f}" for share in hit.shares)
    return f"score {hit.score:.4f} = {terms} ({_FUSED_BY[answer.fusion]})"


def _place(document: Document) -> str:
    if document.chunk_index is None:
        return f"of {document.document_id}"
    total = f" of {document.chunk_count}" if document.chunk_count else ""
    return f"number {document.chunk_index + 1}{total} of {document.document_id}"


def _spans(document: Document) -> str:
    spans = []
    if document.char_start is not None:
        spans.append(f"characters {document.char_start} to {document.char_end}")
    if document.start_offset is not None:
        spans.append(f"offsets {document.start_offset} to {document.end_offset}")
    if document.token_count is not None:
        spans.append(f"{document.token_count} tokens")
    return ", ".join(spans)


def _cached(config: Config, generation: Generation, text_hash: str) -> str:
    if not generation.holds_vectors:
        return "none, as no sink of the live index holds vectors"
    try:
        vector = cached_vector(config, generation.model_fingerprint, text_hash)
    except EmbeddingsError as error:
        return f"unknown ({error})"
    return "not cached" if vector is None else f"cached as {vector.ref}"
