"""Why a hit stands where it stands, in words: ranks and scores of the legs, the arithmetic, the chunk's place."""

from typing import TYPE_CHECKING

from chunksink.rebuild.state import cache_file
from chunksink.settings.config import Config

if TYPE_CHECKING:
    from chunksink.rebuild.state import Generation
    from chunksink.search.answer import Answer, SearchHit
    from chunksink.search.fusion import Share

_FUSED_BY = {
    "scores": "keyword: score / best score, or half of what all words would score if that is more; "
    "semantic: from the least similarity here, 0, to the best, 1",
    "ranks": "1 / (60 + rank) of each leg, added",
}


def explained_lines(config: Config, generation: "Generation", answer: "Answer", hit: "SearchHit") -> list[str]:
    """One fact a line."""
    document = hit.document
    lines = [
        f"{share.leg}: {_rank(share)}, score {share.score:.4g}{share.scaled}, "
        f"gives {share.weight:g} x {share.value:.4f}"
        for share in hit.shares
    ]
    lines.append(_sum(answer, hit))
    lines.append(f"chunk {document.chunk_id}: {_place(hit)}")
    if offsets := _offsets(hit):
        lines.append(offsets)
    lines.append(f"text {document.text_hash}, vector {_cached(config, generation, document.text_hash)}")
    builds = ", ".join(f"{sink} {build}" for sink, build in generation.builds.items())
    lines.append(f"generation {generation.id}: {builds}")
    return lines


def _rank(share: "Share") -> str:
    return "not among its best" if share.rank is None else f"rank {share.rank}"


def _sum(answer: "Answer", hit: "SearchHit") -> str:
    if len(hit.shares) == 1 and hit.score == hit.shares[0].score:
        return f"score {hit.score:.4g}: one leg alone, as its engine gave it"
    terms = " + ".join(f"{share.points:.4f}" for share in hit.shares)
    return f"score {hit.score:.4f} = {terms} ({_FUSED_BY[answer.fusion]})"


def _place(hit: "SearchHit") -> str:
    document = hit.document
    if document.chunk_index is None:
        return f"of {document.document_id}"
    of = f" of {document.chunk_count}" if document.chunk_count else ""
    return f"number {document.chunk_index + 1}{of} of {document.document_id}"


def _offsets(hit: "SearchHit") -> str:
    document = hit.document
    spans = []
    if document.char_start is not None:
        spans.append(f"characters {document.char_start} to {document.char_end}")
    if document.start_offset is not None:
        spans.append(f"offsets {document.start_offset} to {document.end_offset}")
    if document.token_count is not None:
        spans.append(f"{document.token_count} tokens")
    return ", ".join(spans)


def _cached(config: Config, generation: "Generation", text_hash: str) -> str:
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.errors import EmbeddingsError
    from chunksink.embeddings.references import EmbeddingRef
    from chunksink.embeddings.stats import show

    if not generation.holds_vectors:
        return "none, as no sink of the live index holds vectors"
    if not cache_file(config.home_path).exists():
        return "not cached"
    ref = EmbeddingRef(generation.model_fingerprint, text_hash.removeprefix("sha256:"))
    try:
        with VectorCache.open(cache_file(config.home_path), read_only=True) as cache:
            return f"cached as {ref}" if show(cache, ref) is not None else "not cached"
    except EmbeddingsError as error:
        return f"unknown ({error})"
