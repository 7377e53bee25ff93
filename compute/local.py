"""The engine without Ray: it imports existing vector segments, such as those of Ray workers. The run itself
computes the vectors that are still missing."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager

from chunksink.chunkbus.storage import open_storage
from chunksink.rebuild.compute import MissingText
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.intake import Workers


class LocalCompute:
    """Adds existing vector segments to the cache."""

    name = "embed"

    def __init__(self, segments: str, workers: Workers) -> None:
        self._segments = segments
        self._workers = workers

    def workers(self, size: int) -> AbstractContextManager[Executor | None]:
        return self._workers(size)

    def embed(
        self, missing: Iterator[MissingText], embedder: DocumentEmbedder, on_chunks: Callable[[int], object]
    ) -> None:
        embedder.import_segments(open_storage(self._segments))
