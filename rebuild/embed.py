"""Vectors for documents: from the cache where it has them, else computed once and kept."""

from collections.abc import Sequence

import numpy as np

from embeddings.cache import VectorCache
from embeddings.encoder import Encoder, ModelInfo, Vectors, info_of
from embeddings.maintenance import drop, rows_of
from embeddings.references import raw_hash
from embeddings.settings import EncoderSettings, settled
from embeddings.vectors import EmbedReport, vectors_for
from sinks.document import Document


class DocumentEmbedder:
    """One encoder and its cache. `settings` make the encoder again; `report` counts what was done."""

    def __init__(self, settings: EncoderSettings, encoder: Encoder, cache: VectorCache) -> None:
        self.settings = settled(settings, encoder)
        self.info = info_of(encoder)
        self.report = EmbedReport(salvaged=list(cache.salvaged))
        self._encoder = encoder
        self._cache = cache

    def cached(self, text_hashes: Sequence[str], model: ModelInfo | None = None) -> dict[str, Vectors]:
        """The cached vectors of these texts, of this encoder's model or of another."""
        info = model or self.info
        asked = {raw_hash(text_hash): text_hash for text_hash in text_hashes}
        hashes = list(asked)
        found = self._cache.lookup(info.fingerprint, hashes, dimension=info.dimension)
        return {asked[hashes[place]]: row for place, row in zip(found.positions, found.vectors, strict=True)}

    def problem_of(self, text_hash: str) -> str | None:
        """Why a text was given no vector in this run."""
        return self.report.problems.get(raw_hash(text_hash))

    def discard(self) -> None:
        """Every cached vector of this model goes, so that all are computed anew. Nobody may write to the cache."""
        drop(self._cache, rows_of(self._cache, self.info.fingerprint))

    def embed(self, documents: Sequence[Document]) -> Vectors:
        """One row a document, in order; a row that is not finite says that its text has no vector."""
        rows = np.full((len(documents), self.info.dimension), np.nan, dtype=np.float32)
        texts = ((document.text_hash, document.text) for document in documents)
        stream = vectors_for(texts, self._encoder, self._cache, self.report)
        for row, embedded in zip(rows, stream, strict=True):
            if embedded.vector is not None:
                row[:] = embedded.vector
        return rows
