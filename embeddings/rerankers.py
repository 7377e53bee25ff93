"""Rerankers: score how well texts answer a query, with a cross-encoder on this machine or over HTTP."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import httpx

from chunksink.embeddings.connection import checked_url, client_for, key_of, message_of
from chunksink.embeddings.errors import ModelUnavailable, RerankFailed
from chunksink.settings.rerank import RerankOptions

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


class Reranker(Protocol):
    """Usable from one thread at a time."""

    def load(self) -> None:
        """Does the preparation that the first call would otherwise do; it may take seconds."""

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score for each text, higher for better answers. Raises RerankFailed, or another EmbeddingsError, unless
        every text has one."""

    def close(self) -> None:
        """Closes connections."""


def open_reranker(options: RerankOptions) -> Reranker:
    return EndpointReranker(options) if options.url is not None else CrossEncoderReranker(options)


class CrossEncoderReranker:
    """A cross-encoder that sentence-transformers computes. It is loaded at the first query."""

    def __init__(self, options: RerankOptions) -> None:
        self._name = options.model
        self._model: CrossEncoder | None = None

    def load(self) -> None:
        if self._model is None:
            from chunksink.embeddings.precision import choose_device
            from chunksink.embeddings.resolve import resolve_model
            from chunksink.embeddings.torch_runtime import read_cross_encoder

            try:
                found = resolve_model(self._name)
            except ModelUnavailable as error:
                raise RerankFailed(f"the model of [rerank] cannot be loaded: {error}") from error
            self._model = read_cross_encoder(found, choose_device())

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        self.load()
        assert self._model is not None
        pairs = [(query, text) for text in texts]
        found: Any = self._model.predict(pairs, batch_size=len(pairs), show_progress_bar=False)
        if found.ndim != 1:
            raise RerankFailed(f"{self._name} computes {found.shape[1]} scores per text: use a model that computes one")
        return [float(score) for score in found]

    def close(self) -> None:
        pass


class EndpointReranker:
    """`POST` of `model`, `query` and `documents`, as Cohere, Jina, vLLM and Infinity accept it."""

    def __init__(self, options: RerankOptions) -> None:
        self._options = options
        self._url = str(options.url)
        self._client: httpx.Client | None = None

    def load(self) -> None:
        if self._client is None:
            url = checked_url(self._url, "the URL of [rerank]", "http://127.0.0.1:8080/rerank")
            self._client = client_for(url, httpx.Client, timeout=self._options.deadline)

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        self.load()
        assert self._client is not None
        key = key_of(self._options.key_variable, "option key_variable of [rerank]", RerankFailed)
        body = {"model": self._options.model, "query": query, "documents": list(texts)}
        headers = {"authorization": f"Bearer {key}"} if key else {}
        try:
            response = self._client.post(self._url, json=body, headers=headers)
        except httpx.RequestError as error:
            raise RerankFailed(f"no answer from {self._url} ({type(error).__name__})") from None
        if response.status_code != 200:
            raise RerankFailed(f"{self._url} answered {response.status_code}: {message_of(response.content, key)}")
        return _scores_in(response.content, len(texts), self._url)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _scores_in(content: bytes, expected: int, url: str) -> list[float]:
    """From `{"results": [{"index": 0, "relevance_score": 0.9}]}`, or from a bare list with `score`."""
    try:
        answer = json.loads(content)
        entries = answer if isinstance(answer, list) else answer["results"]
        found = {one["index"]: float(one.get("relevance_score", one.get("score"))) for one in entries}
        return [found[number] for number in range(expected)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RerankFailed(f"{url} did not return a score for every text ({type(error).__name__}: {error})") from None
