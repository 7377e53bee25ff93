"""The engine without workers: it only imports vectors that workers of earlier runs have left. The run itself computes
the others."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager

from chunksink.chunkbus.storage import open_storage
from chunksink.rebuild.compute import MissingText
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.intake import Workers


class LocalCompute:
    """Adds vector segments of earlier runs to the cache."""

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
