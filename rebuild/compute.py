"""Where the work of a run is done: in this process, or by workers on several machines.

An engine examines chunks and computes missing vectors. The run itself is the only writer of families.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from chunksink.rebuild.catalog import TextPlace
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.plan import Plan

_PAGE = 1000


class MissingText(NamedTuple):
    """A text without a cached vector, and how many chunks of a plan need it."""

    place: TextPlace
    chunks: int


class Compute(Protocol):
    """An engine."""

    name: str
    """For the display of progress."""

    def workers(self, size: int) -> AbstractContextManager[Executor | None]:
        """Helpers for validating this many bytes; None if not worthwhile."""

    def embed(
        self, missing: Iterator[MissingText], embedder: DocumentEmbedder, on_chunks: Callable[[int], object]
    ) -> None:
        """Put vectors of these texts into the cache. Texts may be left out: the run computes what is still missing.
        `missing` must not be read before known vectors are in the cache. `on_chunks` gets the number of chunks done."""


def missing_texts(
    plan: Plan, builds: Sequence[str], embedder: DocumentEmbedder, on_chunks: Callable[[int], object]
) -> Generator[MissingText]:
    """The distinct texts to write to these builds that have no cached vector, in their order on disk. `on_chunks` gets
    the number of chunks whose text has one."""
    for page in plan.texts_to_write(_PAGE, builds, bool(embedder.info.embed_context)):
        cached = embedder.cached([place.key for place, _ in page])
        on_chunks(sum(chunks for place, chunks in page if place.key in cached))
        yield from (MissingText(place, chunks) for place, chunks in page if place.key not in cached)
