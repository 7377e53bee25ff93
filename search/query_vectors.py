"""Computes the vectors of queries with the model that made the index, caches them, and batches waiting queries. Also
opens the reranker.

A model takes only a third longer for four queries than for one. So queries that arrive while it computes form the next
batch.
"""

import threading
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chunksink.embeddings.encoder import Encoder, ModelInfo, Vectors
    from chunksink.embeddings.errors import EmbeddingsError
    from chunksink.embeddings.settings import EncoderSettings
    from chunksink.search.rerank import Reranking
    from chunksink.settings.rerank import RerankOptions

_MOST_CACHED = 512
"""The number of cached vectors. Paging or changing a filter repeats the query."""
_BATCH = 16
"""The most queries in a batch, so that none waits long for others."""
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
_RELATED = 0.22
"""On a scale from the similarity of unrelated texts (0) to that of equal texts (1): below this, texts are hardly
related."""


class QueryEncoder:
    """Encodes queries with the models that made indexes. Each is loaded once, at the latest for its first query.
    Thread-safe."""

    def __init__(self, model_cache: Path | None = None) -> None:
        """`model_cache` is the folder of prepared models, the user's own by default."""
        self._model_cache = model_cache
        self._lock = threading.Lock()
        self._models: dict[tuple[str, EncoderSettings], QueryModel] = {}
        self._reranking: Reranking | None = None

    def of(self, model: "ModelInfo", settings: "EncoderSettings") -> "QueryModel":
        """The model of a generation. It is the same object for the same fingerprint and settings, since loading takes
        seconds."""
        with self._lock:
            new = QueryModel(model, settings, self._model_cache)
            return self._models.setdefault((model.fingerprint, settings), new)

    def reranking(self, options: "RerankOptions | None") -> "Reranking | None":
        """The reranker, opened for the first call; None if none is configured."""
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
    """One model, which computes vectors of queries."""

    def __init__(self, model: "ModelInfo", settings: "EncoderSettings", model_cache: Path | None = None) -> None:
        from chunksink.embeddings.lazy import LazyEncoder

        self._model_cache = model_cache
        self._settings = settings
        self._encoder = LazyEncoder(model, self._open)
        self._floor: float | None = None
        self._closed = self._prepared = False
        self._computing = threading.Lock()
        self._lock = threading.Lock()
        self._waiting: dict[str, Future[Vectors]] = {}
        self._vectors: dict[str, Vectors] = {}
        self._failure: tuple[float, EmbeddingsError] | None = None

    def __call__(self, text: str) -> "Vectors":
        with self._lock:
            if (vector := self._vectors.get(text)) is not None:
                return vector
            future = self._waiting.setdefault(text, Future())
        try:
            with self._computing:  # the holder also computes the queries of waiting threads
                while not future.done():
                    self._compute_next()
        finally:
            if self._closed:
                self._close_if_idle()
        error = future.exception()
        if error is not None:
            raise _again(error)
        return future.result()

    def floor(self) -> float | None:
        """The similarity below which documents are hardly related to a query. None before the first query."""
        return self._floor

    def prepare(self) -> None:
        """Start to load the model in the background while the caller opens its engines.

        If the model's OpenVINO graph does not exist yet, the first question makes it and loads the model. That takes
        long, and a user can interrupt a question, but not this thread.
        """
        if self._settings.endpoint is None and not self._prepared:
            self._prepared = True
            threading.Thread(target=self._load, name="chunksink-load").start()

    def _load(self) -> None:
        from chunksink.embeddings.graphs import expected_runtime
        from chunksink.embeddings.resolve import resolve_model

        with self._computing, suppress(Exception):
            model = resolve_model(self._settings.model, network=False)
            expected = expected_runtime(model, self._settings.precision, self._model_cache)
            if expected.prepared or expected.reason:  # else the graph must be made
                self._encoder.load()
        if self._closed:
            self._close_if_idle()

    def close(self) -> None:
        """Does not wait: the thread that computes a batch closes the model afterwards."""
        self._closed = True
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._computing.acquire(blocking=False):  # else the thread that computes closes it afterwards
            try:
                self._encoder.close()
            finally:
                self._computing.release()

    def _open(self) -> "Encoder":
        from chunksink.embeddings.errors import ModelError
        from chunksink.embeddings.settings import open_encoder

        try:
            return open_encoder(self._settings, model_cache=self._model_cache, patience_seconds=_QUERY_SECONDS)
        except ModelError as error:
            message = f"the model {self._settings.model} that made the live index cannot be loaded: {error}"
            raise type(error)(message) from error

    def _compute_next(self) -> None:
        with self._lock:
            batch = dict(islice(self._waiting.items(), _BATCH))
        try:
            self._settle(batch)
        finally:
            with self._lock:
                for text, future in batch.items():
                    if future.done():  # else this thread was interrupted, and the next one computes it
                        del self._waiting[text]

    def _settle(self, batch: "dict[str, Future[Vectors]]") -> None:
        """Set each future to its vector or its error."""
        from chunksink.embeddings.errors import TextRefused

        try:
            vectors = self._encode(list(batch))
        except Exception as error:
            if isinstance(error, TextRefused) and len(batch) > 1:  # perhaps only one of them is refused
                for text, future in batch.items():
                    self._settle({text: future})
                return
            for future in batch.values():
                future.set_exception(error)
            return
        usable = {text: vector for text, vector in vectors.items() if _is_usable(vector)}
        with self._lock:
            self._vectors |= usable
            for text in list(self._vectors)[:-_MOST_CACHED]:
                del self._vectors[text]
        for text, future in batch.items():
            if text in usable:
                future.set_result(usable[text])
            else:
                future.set_exception(TextRefused("the model computed no usable vector for this query"))

    def _encode(self, texts: list[str]) -> "dict[str, Vectors]":
        from chunksink.embeddings.errors import EmbeddingsError, TextRefused

        if self._failure is not None and monotonic() - self._failure[0] < _PAUSE_SECONDS:
            raise _again(self._failure[1])
        try:
            more = _UNRELATED if self._floor is None else ()
            vectors = self._encoder.info.as_in_index(self._encoder.encode_queries([*texts, *more]))
        except TextRefused:  # the model works; other queries may pass
            raise
        except EmbeddingsError as error:
            self._failure = (monotonic(), error)
            raise
        self._failure = None
        if more:
            self._floor = _floor(vectors[len(texts) :])
        return dict(zip(texts, vectors, strict=False))


def _floor(unrelated: "Vectors") -> float:
    import numpy as np

    units = unrelated / np.linalg.norm(unrelated, axis=1, keepdims=True)
    usual = float((units @ units.T)[np.triu_indices(len(units), 1)].mean())
    return usual + _RELATED * (1 - usual)


def _is_usable(vector: "Vectors") -> bool:
    import numpy as np

    return bool(np.isfinite(vector).all() and vector.any())


def _again(error: BaseException) -> BaseException:
    """A copy for another thread, because a re-raised exception collects tracebacks. A bug is raised unchanged."""
    from chunksink.embeddings.errors import EmbeddingsError

    return type(error)(*error.args) if isinstance(error, EmbeddingsError) else error
