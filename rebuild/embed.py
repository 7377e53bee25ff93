"""Vectors for documents: from the cache where it has them, else computed once and kept."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embeddings.cache import VectorCache
from embeddings.encoder import Encoder, Vectors, info_of
from embeddings.vectors import vectors_for
from sinks.document import Document


@dataclass(frozen=True)
class EmbedCounts:
    """Texts computed, served from the cache, and refused by the model; how many were longer than it takes at once."""

    computed: int = 0
    cached: int = 0
    refused: int = 0
    over_length: int = 0


class DocumentEmbedder:
    """One encoder and its cache. `model` is the name by which the encoder can be loaded again."""

    def __init__(self, model: str, encoder: Encoder, cache: VectorCache) -> None:
        self.model = model
        self._encoder = encoder
        self._cache = cache
        self.info = info_of(encoder)
        self.counts = EmbedCounts()

    def embed(self, documents: Sequence[Document]) -> Vectors:
        """One row a document, in order; a row that is not finite says that its text has no vector."""
        rows = np.full((len(documents), self.info.dimension), np.nan, dtype=np.float32)
        stream = vectors_for(((d.text_hash, d.text) for d in documents), self._encoder, self._cache)
        for row, embedded in zip(rows, stream, strict=True):
            if embedded.vector is not None:
                row[:] = embedded.vector
        report, before = stream.report, self.counts
        self.counts = EmbedCounts(
            computed=before.computed + report.encoded,
            cached=before.cached + report.cached,
            refused=before.refused + report.refused,
            over_length=before.over_length + report.over_length,
        )
        return rows
