"""Reranks the best hits of a search with a model that reads the query and each text together."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from math import isfinite
from time import monotonic
from typing import TYPE_CHECKING

from chunksink.embeddings.errors import EmbeddingsError, RerankFailed
from chunksink.sinks.document import Document

if TYPE_CHECKING:
    from chunksink.embeddings.rerankers import Reranker


_PAUSE_SECONDS = 10.0
"""After a failure, searches do not ask the reranker for this long."""


@dataclass(frozen=True)
class Reranked:
    """The score that a reranker gave a hit, and the hit's place before reranking."""

    score: float
    place: int


class Reranking:
    """A reranker with a time limit. Thread-safe: queries are scored one at a time."""

    def __init__(self, reranker: "Reranker", top: int, seconds: float) -> None:
        self._reranker = reranker
        self.top = top
        self._seconds = seconds
        self._loading = threading.Lock()
        self._turn = threading.Lock()
        self._failed: tuple[float, str] | None = None

    def load(self) -> None:
        # Not within `_turn`: the caller would wait, without a time limit, while another query is scored.
        with self._loading:
            self._reranker.load()

    def order(self, query: str, documents: Sequence[Document]) -> list[Reranked]:
        """The scores of the documents, highest first. Raises `RerankFailed` if they are late or missing.

        The time limit includes waiting while another query is scored, but not loading the model. Calls that begin
        within ten seconds after a failure fail at once.
        """
        if self._failed is not None and monotonic() - self._failed[0] < _PAUSE_SECONDS:
            raise RerankFailed(self._failed[1])
        try:
            return self._ordered(query, documents)
        except EmbeddingsError as error:
            self._failed = monotonic(), str(error)
            raise

    def _ordered(self, query: str, documents: Sequence[Document]) -> list[Reranked]:
        self.load()
        answer: Future[list[float]] = Future()
        texts = [_passage_of(document) for document in documents]
        # A daemon thread, so that the program can exit without waiting for late scores.
        threading.Thread(target=self._score, args=(answer, query, texts), daemon=True).start()
        try:
            scores = answer.result(self._seconds)
        except TimeoutError:
            answer.cancel()  # if it has not begun
            limit = f"no scores within {self._seconds:g} s, the `deadline` in [rerank]"
            raise RerankFailed(limit) from None
        if not all(map(isfinite, scores)):
            raise RerankFailed("a score is not a finite number")
        found = [Reranked(score, place) for place, score in enumerate(scores, start=1)]
        return sorted(found, key=lambda one: (-one.score, one.place))

    def _score(self, answer: "Future[list[float]]", query: str, texts: Sequence[str]) -> None:
        with self._turn:
            if not answer.set_running_or_notify_cancel():
                return
            try:
                answer.set_result(self._reranker.scores(query, texts))
            except RerankFailed as error:
                answer.set_exception(error)
            except Exception as error:  # from the model's libraries, for example out of memory
                answer.set_exception(RerankFailed(f"{type(error).__name__}: {error}"))

    def close(self) -> None:
        self._reranker.close()


def _passage_of(document: Document) -> str:
    return "\n\n".join(filter(None, (document.title, document.text)))
