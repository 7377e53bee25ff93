"""Ranks the best hits of a search again, by a model that reads the query and each text together."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chunksink.embeddings.errors import RerankFailed
from chunksink.sinks.document import Document

if TYPE_CHECKING:
    from chunksink.embeddings.rerankers import Reranker


@dataclass(frozen=True)
class Reranked:
    """The score that a reranker gave a hit, and the hit's place before."""

    score: float
    place: int


class Reranking:
    """Thread-safe: texts of different queries are scored one after the other."""

    def __init__(self, reranker: "Reranker", top: int, seconds: float) -> None:
        self._reranker = reranker
        self.top = top
        self._seconds = seconds
        self._loading = threading.Lock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="chunksink-rerank")

    def load(self) -> None:
        with self._loading:
            self._reranker.load()

    def order(self, query: str, documents: Sequence[Document]) -> list[Reranked]:
        """The documents by falling score. `RerankFailed` if the scores are late or missing. Loading the model does not
        count as late."""
        self.load()
        future = self._worker.submit(self._reranker.scores, query, [_text_of(document) for document in documents])
        try:
            scores = future.result(self._seconds)
        except TimeoutError:
            future.cancel()
            raise RerankFailed(
                f"no scores within {self._seconds:g} s; the option `deadline` of [rerank] is the limit"
            ) from None
        found = [Reranked(score, place) for place, score in enumerate(scores, start=1)]
        return sorted(found, key=lambda one: (-one.score, one.place))

    def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._reranker.close()


def _text_of(document: Document) -> str:
    return "\n\n".join(filter(None, (document.title, document.text)))
