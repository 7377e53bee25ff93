"""Where the work of a run is done: in this process, or by workers on several machines.

A `Compute` validates chunks and computes missing vectors. Only the run itself writes to engines.
"""

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from chunksink.chunkbus.validation import Progress
from chunksink.rebuild.catalog import TextPlace
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.plan import Plan


class MissingText(NamedTuple):
    """A text without a cached vector, and how many chunks of a plan need it."""

    place: TextPlace
    chunks: int


class Compute(Protocol):
    """A place to validate chunks and compute vectors."""

    name: str
    """For the display of progress."""

    def workers(self, size: int) -> AbstractContextManager[Executor | None]:
        """Helpers for validating this many bytes; None if not worthwhile."""

    def embed(self, missing: Iterator[MissingText], embedder: DocumentEmbedder, on_chunks: Progress) -> None:
        """Put vectors of these texts into the cache. Texts may be left out: the run computes what is still missing.

        First import vectors that exist elsewhere, then read `missing`, which skips texts that are in the cache by that
        time. `on_chunks` gets the number of chunks done.
        """


def missing_texts(
    plan: Plan, builds: Sequence[str], embedder: DocumentEmbedder, on_chunks: Progress
) -> Generator[MissingText]:
    """The distinct texts without a cached vector that must be written to these builds, in their order on disk.
    `on_chunks` gets the number of chunks whose text has a cached vector."""
    for page in plan.texts_to_write(builds, bool(embedder.info.embed_context)):
        cached = embedder.cached([place.key for place, _ in page])
        on_chunks(sum(chunks for place, chunks in page if place.key in cached))
        yield from (MissingText(place, chunks) for place, chunks in page if place.key not in cached)
