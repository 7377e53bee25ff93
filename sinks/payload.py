"""What is sent to an engine: vectors that it can store, in requests of a size that it takes."""

from collections.abc import Iterator, Sequence

import numpy as np

from chunksink.sinks.contract import RefusedDocument
from chunksink.sinks.document import Family, Vectors

_NO_DIRECTION = (
    "its vector has no direction: it is zero, or holds NaN or infinity, or is so long that its length overflows float32"
)


def sound_rows(family: Family, dimensions: int | None) -> tuple[list[int], list[RefusedDocument]]:
    """Positions of the documents whose vector can be sent, and the others with the reason: one vector that an engine
    refuses fails its whole payload."""
    documents, vectors = family.documents, family.vectors
    if vectors is None:
        reason = "it has no vector, and this sink needs one"
        return [], [RefusedDocument(d.id, d.parent_id, reason) for d in documents]
    if vectors.ndim != 2 or (dimensions is not None and vectors.shape[1] != dimensions):
        found = vectors.shape[1] if vectors.ndim == 2 else "no fixed number of"
        reason = f"its vector has {found} dimensions, the build has {dimensions}"
        return [], [RefusedDocument(d.id, d.parent_id, reason) for d in documents]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        single = vectors.astype(np.float32, copy=False)
        squares = np.einsum("ij,ij->i", single, single)  # as engines have it: in float32
    sound: list[bool] = np.asarray(np.isfinite(squares) & (squares > 0)).tolist()
    refused = [
        RefusedDocument(document.id, document.parent_id, _NO_DIRECTION)
        for document, is_sound in zip(documents, sound, strict=True)
        if not is_sound
    ]
    return [row for row, is_sound in enumerate(sound) if is_sound], refused


def unit(vectors: Vectors) -> Vectors:
    """The same directions at length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return result


def portions(sizes: Sequence[int], most: int, most_bytes: int) -> Iterator[slice]:
    """Runs of what has these sizes. What is too large for any request goes alone."""
    start = total = 0
    for position, size in enumerate(sizes):
        if position > start and (position - start >= most or total + size > most_bytes):
            yield slice(start, position)
            start, total = position, 0
        total += size
    if start < len(sizes):
        yield slice(start, len(sizes))
