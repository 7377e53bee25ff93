"""Vectors for documents: from the cache where it has them, else computed once and kept."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import Encoder, ModelInfo, PrecisionRequest, Vectors, info_of
from chunksink.embeddings.lazy import loading_seconds
from chunksink.embeddings.maintenance import drop, rows_of
from chunksink.embeddings.references import raw_hash
from chunksink.embeddings.settings import EncoderSettings, settled
from chunksink.embeddings.vectors import EmbedReport, vectors_for
from chunksink.rebuild.work import Work
from chunksink.sinks.document import Document

LEAST_COSINE = 0.99999
"""Engines normalise, and another batch changes the last bits."""
LEAST_COSINE_IN_BFLOAT16 = 0.999
"""Of one text's vectors, one of them at least in bfloat16, which another batch changes more."""
Lookup = Callable[[Sequence[str]], Mapping[str, tuple[Vectors, float]]]
"""From text hashes to those cached vectors that are there, and the least cosine to each of one that is right."""


class DocumentEmbedder:
    """One encoder and its cache. `settings` make the encoder again; `report` counts what was done."""

    def __init__(self, settings: EncoderSettings, encoder: Encoder, cache: VectorCache) -> None:
        self.settings = settled(settings, encoder)
        self.info = info_of(encoder)
        self.report = EmbedReport(salvaged=list(cache.salvaged))
        self._encoder = encoder
        self._cache = cache

    @property
    def loading_seconds(self) -> float:
        """How long the model took to load, where this run has needed it so far."""
        return loading_seconds(self._encoder)

    def cached(
        self, text_hashes: Sequence[str], model: ModelInfo | None = None, request: PrecisionRequest = "auto"
    ) -> dict[str, Vectors]:
        """The cached vectors of these texts, of this encoder's model or of another."""
        info = model or self.info
        asked = {raw_hash(text_hash): text_hash for text_hash in text_hashes}
        hashes = list(asked)
        found = self._cache.lookup(info.fingerprint, hashes, dimension=info.dimension, request=request)
        return {asked[hashes[place]]: row for place, row in zip(found.positions, found.vectors, strict=True)}

    def expected(self, text_hashes: Sequence[str]) -> dict[str, tuple[Vectors, float]]:
        """The cached vectors, and how near to each of them a stored one must be: since it was stored, the cached one
        may have been computed anew, in another batch or another precision."""
        wide = self.cached(text_hashes, request="float32")
        narrow = self.cached([text_hash for text_hash in text_hashes if text_hash not in wide])
        of_wide = LEAST_COSINE if self.info.precision == "float32" else LEAST_COSINE_IN_BFLOAT16
        return {text_hash: (vector, of_wide) for text_hash, vector in wide.items()} | {
            text_hash: (vector, LEAST_COSINE_IN_BFLOAT16) for text_hash, vector in narrow.items()
        }

    def problem_of(self, text_hash: str) -> str | None:
        """Why a text was given no vector in this run."""
        return self.report.problems.get(raw_hash(text_hash))

    def discard(self) -> None:
        """Every cached vector of this model goes, so that all are computed anew. Nobody may write to the cache."""
        drop(self._cache, rows_of(self._cache, self.info.fingerprint))

    def fill(self, texts: Iterable[tuple[str, str]], on_encoded: Callable[[int], object]) -> None:
        """The cache has the vectors of these texts, given with their hashes, as far as they have one."""
        for _ in vectors_for(texts, self._encoder, self._cache, self.report, on_encoded=on_encoded):
            pass

    def embed(self, documents: Sequence[Document], on_encoded: Callable[[int], object]) -> Vectors:
        """One row a document, in order; a row that is not finite says that its text has no vector. `on_encoded` is
        given the number of vectors just computed."""
        rows = np.full((len(documents), self.info.dimension), np.nan, dtype=np.float32)
        texts = ((document.text_hash, document.text) for document in documents)
        stream = vectors_for(texts, self._encoder, self._cache, self.report, on_encoded=on_encoded)
        for row, embedded in zip(rows, stream, strict=True):
            if embedded.vector is not None:
                row[:] = embedded.vector
        return rows


def refill(work: Work, embedder: DocumentEmbedder) -> None:
    """Of all texts that count, as far as their chunks can be read."""
    with work.stage("embed", None, "texts") as bar:
        for page in work.catalog.places():
            known = embedder.cached([text_hash for _, _, text_hash in page])
            lost = [place for place in page if place[2] not in known]
            texts = work.records.texts(lost)
            embedder.fill(((text_hash, text) for (_, _, text_hash), text in zip(lost, texts, strict=True)), bar.advance)
