"""Vectors for documents: from the cache, else computed and cached."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import partial
from shutil import rmtree

import numpy as np

from chunksink.chunkbus.storage import Storage, open_storage
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import Encoder, ModelInfo, Passage, Precision, PrecisionRequest, Vectors
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.embeddings.lazy import LazyEncoder
from chunksink.embeddings.maintenance import drop, outdated_rows, rows_of_texts
from chunksink.embeddings.pool import EncoderPool
from chunksink.embeddings.segments import ImportReport, import_segments, segment_names
from chunksink.embeddings.settings import EncoderSettings, open_encoder, settled
from chunksink.embeddings.stats import lengths
from chunksink.embeddings.vectors import EmbedReport, cache_probes, vectors_for
from chunksink.rebuild.families import passage_of
from chunksink.rebuild.state import NO_MODEL, Generation, cache_file, segments_folder
from chunksink.settings.config import Config
from chunksink.sinks.document import Document

MIN_COSINE: dict[Precision, float] = {"float32": 0.99999, "bfloat16": 0.999, "int8": 0.9}
"""Two vectors of a text, one of them computed in this precision, have at least this cosine. Never 1, because engines
normalise and batches differ in the last bits."""
Lookup = Callable[[Sequence[str]], Mapping[str, tuple[Vectors, float]]]
"""By key: the cached vector, and the cosine that another vector must reach to count as equal."""


def cached_vectors(
    cache: VectorCache, model: ModelInfo, keys: Sequence[str], request: PrecisionRequest | None = None
) -> dict[str, Vectors]:
    raw = {key: model.key(key) for key in keys}
    distinct = list(dict.fromkeys(raw.values()))
    rows = cache.lookup(model.fingerprint, distinct, dimension=model.dimension, request=request or model.requested)
    place = {distinct[position]: row for row, position in enumerate(rows.positions)}
    vectors = model.as_in_index(rows.vectors)
    return {key: vectors[place[each]] for key, each in raw.items() if each in place}


class DocumentEmbedder:
    """An encoder with its cache. `settings` recreate the encoder; `report` counts what was done."""

    def __init__(self, settings: EncoderSettings, encoder: Encoder, cache: VectorCache) -> None:
        self.settings = settled(settings, encoder)
        self.info = encoder.info
        self.report = EmbedReport(set_aside=list(cache.set_aside))
        self._encoder = encoder
        self._cache = cache

    @property
    def loading_seconds(self) -> float:
        """How long the model took to load; 0 if this run has not loaded it."""
        return self._encoder.loading_seconds

    @property
    def runtime(self) -> str | None:
        """The runtime that computes the model, if this run has loaded it."""
        return self._encoder.runtime

    @property
    def tokens(self) -> int:
        """The tokens of the texts that this run has embedded; for an endpoint, the number that it billed."""
        return self.report.encoded_length if self.info.length_unit == "tokens" else self._encoder.billed_tokens

    def cached(
        self, keys: Sequence[str], model: ModelInfo | None = None, request: PrecisionRequest | None = None
    ) -> dict[str, Vectors]:
        """The cached vectors with these keys, of this encoder's model or of another."""
        return cached_vectors(self._cache, model or self.info, keys, request)

    def expected(self, keys: Sequence[str]) -> dict[str, tuple[Vectors, float]]:
        """A `Lookup`. Stored and cached vectors may differ a little: the cached one may have been computed again, in
        another batch or precision."""
        expected: dict[str, tuple[Vectors, float]] = {}
        for precision, least in MIN_COSINE.items():
            others = [key for key in keys if key not in expected]
            least = min(least, MIN_COSINE[self.info.precision])
            expected |= {key: (row, least) for key, row in self.cached(others, request=precision).items()}
        return expected

    def problem_of(self, document: Document) -> str | None:
        """Why this run could not embed the document's text."""
        return self.report.problems.get(self.info.key(passage_of(document).key))

    @property
    def recomputes(self) -> bool:
        """Whether `recompute_all` was called, and the cache had vectors."""
        return self._cache.last_outdated(self.info.fingerprint) > 0

    def import_segments(self, storage: Storage, names: Iterable[str] | None = None) -> ImportReport:
        """Import these segments, or all in the storage, into the cache. Those imported earlier are skipped."""
        return import_segments(self._cache, storage, names)

    def note_computed(self, texts: int, text_bytes: int, length: int, problems: Mapping[bytes, str]) -> None:
        """Count what another process has computed. Texts in `problems`, which it could not embed, are not tried again
        here."""
        self.report.encoded += texts
        self.report.encoded_bytes += text_bytes
        self.report.encoded_length += length
        self.report.problems.update(problems)

    def recompute_all(self) -> None:
        """From now on, this run computes each vector of this model again when it is needed. The old one stays in the
        cache until it is replaced or `drop_outdated` is called."""
        self._cache.outdate(self.info.fingerprint)

    def drop_outdated(self) -> None:
        """Remove old vectors that were not replaced after `recompute_all`: no current text needs them."""
        if last := self._cache.last_outdated(self.info.fingerprint):
            if self.info.device == "endpoint":
                # Replaces the probes (vectors of fixed test texts) only now: as long as other runs may use old
                # vectors, they compare the endpoint with the old probes.
                cache_probes(self._encoder, self._cache)
            drop(self._cache, outdated_rows(self._cache, self.info.fingerprint, last))

    def fill(self, passages: Iterable[Passage], on_encoded: Callable[[int], object]) -> None:
        """Compute and cache the missing vectors of these passages."""
        for _ in vectors_for(passages, self._encoder, self._cache, self.report, on_encoded=on_encoded):
            pass

    def embed(self, documents: Sequence[Document], on_encoded: Callable[[int], object]) -> Vectors:
        """One row for each document, in order; a row that is not finite means no vector. `on_encoded` gets the number
        of vectors just computed."""
        rows = np.full((len(documents), self.info.dimension), np.nan, dtype=np.float32)
        passages = map(passage_of, documents)
        stream = vectors_for(passages, self._encoder, self._cache, self.report, on_encoded=on_encoded)
        for row, embedded in zip(rows, stream, strict=True):
            if embedded.vector is not None:
                row[:] = embedded.vector
        return self.info.as_in_index(rows)


class Embedders:
    """Opens the embedders of one run: of the configured model, or of the live index. The stack closes their caches and
    returns their encoders to the pool."""

    def __init__(self, config: Config, stack: ExitStack, pool: EncoderPool) -> None:
        self.settings = EncoderSettings.of(config)
        self._model_cache = config.model_cache_path
        self._cache_file = cache_file(config.home_path)
        self._segments = segments_folder(config.home_path)
        self._segment_places = {str(self._segments.absolute()), config.segments}
        self._stack = stack
        self._open = stack.enter_context(pool.lend(config.model_cache_path))
        self._of_live: DocumentEmbedder | None = None
        self.opened: list[DocumentEmbedder] = []

    def configured(self, *, with_model: bool = True, replace_damaged: bool = True) -> DocumentEmbedder:
        """The embedder of the configured model, which is loaded at once to learn its fingerprint. `with_model` is False
        if no vectors are needed. Without `replace_damaged`, a damaged cache is an error."""
        load = partial(self._open, self.settings)
        encoder = LazyEncoder(None if with_model else NO_MODEL, load)
        return self._embedder(self.settings, encoder, replace_damaged)

    def of_live(
        self, live: Generation, *, first_vectors: bool = False, replace_damaged: bool = True
    ) -> DocumentEmbedder:
        """The embedder of the live index's model, one for the whole run. The model is loaded when a text has no vector
        yet. With `first_vectors`, the live index has no vectors yet and gets those of the configured model."""
        embedder = self._of_live
        if embedder is None or first_vectors or embedder.info.fingerprint != live.model_fingerprint:
            settings = live.encoder.with_key_of(self.settings)
            lazy = LazyEncoder(live.model, partial(self._open, settings))
            embedder = self.configured() if first_vectors else self._embedder(settings, lazy, replace_damaged)
            self._of_live = embedder
        return embedder

    def configured_model(self) -> ModelInfo | None:
        """The configured model, if the cache has vectors and the model is known without the network."""
        if not self._cache_file.exists() or (self.settings.endpoint and self.settings.endpoint_dimensions is None):
            return None
        with VectorCache.open(self._cache_file, replace_damaged=False) as cache:
            if not cache.read("SELECT 1 FROM vector LIMIT 1"):
                return None
        with (
            suppress(EmbeddingsError),
            closing(open_encoder(self.settings, model_cache=self._model_cache, network=False)) as encoder,
        ):
            return encoder.info
        return None

    def cached_keys(self, model: ModelInfo, keys: Sequence[str]) -> set[str]:
        """Which of these keys have a cached vector of this model."""
        raw = {key: model.key(key) for key in keys}
        with VectorCache.open(self._cache_file, replace_damaged=False) as cache:
            cached = lengths(cache, model.fingerprint, list(set(raw.values())))
        return {key for key, each in raw.items() if each in cached}

    def drop_texts(self, text_hashes: Sequence[str]) -> int:
        """Drop the vectors of these texts, of every model and in every context; returns how many there were.

        Segments may contain them, too. So all segments are imported first, and their files removed.
        """
        with VectorCache.open(self._cache_file, replace_damaged=False) as cache:
            for storage in map(open_storage, self._segment_places):
                names = segment_names(storage)
                import_segments(cache, storage, names)
                for name in names:
                    storage.remove(name)
            rmtree(self._segments, ignore_errors=True)  # also unfinished files
            rows = rows_of_texts(cache, text_hashes)
            drop(cache, rows)
        return rows.rows

    def _embedder(self, settings: EncoderSettings, encoder: Encoder, replace_damaged: bool) -> DocumentEmbedder:
        cache = VectorCache.open(self._cache_file, replace_damaged=replace_damaged)
        embedder = DocumentEmbedder(settings, encoder, self._stack.enter_context(cache))
        self.opened.append(embedder)
        return embedder
