"""Vectors before they are sent: one that an engine would refuse fails the whole payload, so it is found here."""

import numpy as np

from sinks.document import Family, Vectors
from sinks.sink import RefusedDocument


def sound_rows(family: Family, dimensions: int | None) -> tuple[list[int], list[RefusedDocument]]:
    """Positions of the documents whose vector can be sent, and the others with the reason."""
    documents, vectors = family.documents, family.vectors
    if vectors is None:
        reason = "it has no vector, and this sink needs one"
        return [], [RefusedDocument(d.id, d.parent_id, reason) for d in documents]
    if vectors.ndim != 2 or (dimensions is not None and vectors.shape[1] != dimensions):
        found = vectors.shape[1] if vectors.ndim == 2 else "no fixed number of"
        reason = f"its vector has {found} dimensions, the build has {dimensions}"
        return [], [RefusedDocument(d.id, d.parent_id, reason) for d in documents]
    finite: list[bool] = np.asarray(np.isfinite(vectors).all(axis=1)).tolist()
    if all(finite):
        return list(range(len(documents))), []
    reason = "its vector holds NaN or infinity, or there is none"
    refused = [RefusedDocument(d.id, d.parent_id, reason) for d, ok in zip(documents, finite, strict=True) if not ok]
    return [row for row, ok in enumerate(finite) if ok], refused


def unit(vectors: Vectors) -> Vectors:
    """The same directions at length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    result: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return result
