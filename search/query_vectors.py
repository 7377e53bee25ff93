"""Computes the vectors of queries with the model that made the index, and caches them. Also opens the reranker."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from chunksink.chunkbus.shared_resource import Shared

if TYPE_CHECKING:
    from chunksink.embeddings.encoder import Encoder, ModelInfo, Vectors
    from chunksink.embeddings.errors import EmbeddingsError
    from chunksink.embeddings.lazy import LazyEncoder
    from chunksink.embeddings.settings import EncoderSettings
    from chunksink.search.rerank import Reranking
    from chunksink.settings.rerank import RerankOptions

_MAX_CACHED = 512
"""The number of cached vectors. Paging or changing a filter repeats the query."""
_QUERY_SECONDS = 5.0
"""How long a search waits for an endpoint before it answers without vectors."""
_PAUSE_SECONDS = 10.0
"""After a failure, searches do not try the model again for this long."""
_UNRELATED = (
    "opening hours of the public library",
    "symptoms of the flu in small children",
    "torque of the screws of a gearbox",
    "the appeal was dismissed by the court",
)
"""Texts about different subjects. Their similarity shows how similar a model finds unrelated texts."""
_MADE_UP = ("qwzxqwzx", "blorfen", "xkcdz", "flumdiddle")
"""Made-up words, which are as similar to some texts as related words are."""
_RELATED = 0.22
"""Texts are hardly related below this point of a scale from the similarity of unrelated texts (0) to that of equal
texts (1)."""


class QueryEncoder:
    """Encodes queries with the models that made indexes. Each model is loaded once, no later than its
    first query. Thread-safe."""

    def __init__(self, model_cache: Path | None = None) -> None:
        """`model_cache` is the folder of prepared models; None means the one in the user's cache folder."""
        self._model_cache = model_cache
        self._lock = threading.Lock()
        self._models: dict[tuple[str, EncoderSettings, str | None], QueryModel] = {}
        self._reranking: Reranking | None = None

    def of(self, model: "ModelInfo", settings: "EncoderSettings") -> "QueryModel":
        """The model of a generation. It is the same object for the same fingerprint and settings, since loading takes
        seconds."""
        with self._lock:
            new = QueryModel(model, settings, self._model_cache)
            return self._models.setdefault((model.fingerprint, settings, settings.endpoint_key_variable), new)

    def reranking(self, options: "RerankOptions | None") -> "Reranking | None":
        """The reranker, opened by the first call; None if none is configured."""
        if options is None:
            return None
        from chunksink.embeddings.rerankers import open_reranker
        from chunksink.search.rerank import Reranking

        with self._lock:
            if self._reranking is None:
                self._reranking = Reranking(open_reranker(options), options.top, options.deadline)
            return self._reranking

    def close(self) -> None:
        with self._lock:
            for model in self._models.values():
                model.close()
            self._models.clear()
            if self._reranking is not None:
                self._reranking.close()
                self._reranking = None


class QueryModel:
    """One model, which computes vectors of queries. Thread-safe."""

    def __init__(self, model: "ModelInfo", settings: "EncoderSettings", model_cache: Path | None = None) -> None:
        from chunksink.embeddings.lazy import LazyEncoder

        self._model_cache = model_cache
        self._settings = settings
        self._shared = Shared(LazyEncoder(model, self._open))
        self._floor: float | None = None
        self._made_up: Vectors | None = None
        self._prepared = False
        self._loading = threading.Lock()
        self._lock = threading.Lock()
        self._vectors: dict[str, Vectors] = {}
        self._failure: tuple[float, EmbeddingsError] | None = None

    def __call__(self, text: str) -> "Vectors":
        from chunksink.embeddings.errors import EmbeddingsError, TextRefused

        with self._lock:
            vector = self._vectors.get(text)
        if vector is not None:
            return vector
        self._require_no_recent_failure()
        try:
            vector = self._compute(text)
        except TextRefused:  # the model works; other queries may succeed
            raise
        except EmbeddingsError as error:
            self._failure = (monotonic(), error)
            raise
        with self._lock:
            self._failure = None
            self._vectors[text] = vector
            for oldest in list(self._vectors)[:-_MAX_CACHED]:
                del self._vectors[oldest]
        return vector

    def _require_no_recent_failure(self) -> None:
        failure = self._failure
        if failure is not None and monotonic() - failure[0] < _PAUSE_SECONDS:
            raise type(failure[1])(*failure[1].args)  # a copy, because a re-raised exception collects tracebacks

    def _compute(self, text: str) -> "Vectors":
        import numpy as np

        from chunksink.embeddings.errors import TextRefused
        from chunksink.sinks.payload import unit

        samples = (*_UNRELATED, *_MADE_UP) if self._floor is None else ()
        with self._encoder() as encoder:
            self._load(encoder)
            vectors = encoder.info.as_in_index(encoder.encode_queries([text, *samples]))
        if samples:
            units = unit(vectors[1:])
            self._made_up = units[len(_UNRELATED) :]
            self._floor = _floor(units[: len(_UNRELATED)])
        vector: Vectors = vectors[0]
        if not (np.isfinite(vector).all() and vector.any()):
            raise TextRefused("the model computed no usable vector for this query")
        return vector

    def floor(self, unknown: str | None = None) -> float | None:
        """The similarity below which documents are hardly related to a query. None before the first query.

        `unknown` is a query without a word that any text has. It may be made up, so texts must be more similar to it
        than made-up words are.
        """
        if self._floor is None or self._made_up is None or unknown is None:
            return self._floor
        from chunksink.sinks.payload import unit

        return max(self._floor, float((self._made_up @ unit(self(unknown))).max()))

    def prepare(self) -> None:
        """Start to load the model in the background while the caller opens its engines.

        If the model's OpenVINO graph does not exist yet, nothing is loaded: the first question makes the graph. That
        takes a long time, and a user can interrupt a question, but not this thread.
        """
        if self._settings.endpoint is None and not self._prepared:
            self._prepared = True
            threading.Thread(target=self._load_if_quick, name="chunksink-load").start()

    def _load_if_quick(self) -> None:
        from chunksink.embeddings.graphs import expected_runtime
        from chunksink.embeddings.resolve import resolve_model

        with suppress(Exception), self._encoder() as encoder:
            model = resolve_model(self._settings.model, network=False)
            expected = expected_runtime(model, self._settings.precision, self._model_cache)
            if expected.prepared or expected.reason:  # else the graph must be made
                self._load(encoder)

    def _load(self, encoder: "LazyEncoder") -> None:
        from chunksink.embeddings.errors import EmbeddingsError

        with self._loading:
            self._require_no_recent_failure()  # another thread may have tried meanwhile
            try:
                encoder.load()
            except EmbeddingsError as error:
                self._failure = (monotonic(), error)
                raise

    def close(self) -> None:
        """Does not wait: the last thread that uses the model closes it."""
        self._shared.close()

    @contextmanager
    def _encoder(self) -> Iterator["LazyEncoder"]:
        with self._shared.use() as encoder:
            if encoder is None:
                raise RuntimeError("this index is closed: open it again")
            yield encoder

    def _open(self) -> "Encoder":
        from chunksink.embeddings.errors import ModelError
        from chunksink.embeddings.settings import open_encoder

        try:
            return open_encoder(self._settings, model_cache=self._model_cache, patience_seconds=_QUERY_SECONDS)
        except ModelError as error:
            message = f"the model {self._settings.model} that made the live index cannot be loaded: {error}"
            raise type(error)(message) from error


def _floor(units: "Vectors") -> float:
    import numpy as np

    usual = float((units @ units.T)[np.triu_indices(len(units), 1)].mean())
    return usual + _RELATED * (1 - usual)
