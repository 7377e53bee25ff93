"""Rebuild: a new generation from nothing but the chunks, verified, then shown to readers in one step.

Until the flip readers see the generation before; a run that fails or is killed leaves it untouched.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from chunkbus.layout import BusRoot
from chunkbus.runlog import new_run_id, utc_now
from rebuild.catalog import Catalog
from rebuild.embed import DocumentEmbedder
from rebuild.errors import InvalidBus, NotVerified
from rebuild.fill import fill
from rebuild.state import Generation, State
from rebuild.verify import verify
from sinks.projection import PROJECTION_VERSION
from sinks.sink import Marker, RefusedDocument, Sink


@dataclass(frozen=True)
class RebuildReport:
    generation: str
    families: int
    chunks: int
    superseded: int
    refused: tuple[RefusedDocument, ...]


def read_chunks(root: BusRoot, state: State) -> Catalog:
    """The catalog, brought up to date with a bus root that has passed validation."""
    catalog = Catalog(state)
    catalog.refresh(root)
    twice = catalog.duplicate_ids()
    if twice:
        chunk_id, one, other = twice[0]
        raise InvalidBus(f"chunk_id {chunk_id!r:.120} belongs to two families: {one} and {other}; give it to one")
    return catalog


class Rebuild:
    """One rebuild of all sinks of a home, from a catalog that was just read."""

    def __init__(
        self,
        root: BusRoot,
        state: State,
        catalog: Catalog,
        sinks: Sequence[Sink],
        embedder: DocumentEmbedder | None,
    ) -> None:
        self._root = root
        self._state = state
        self._catalog = catalog
        self._sinks = sinks
        self._embedder = embedder

    def run(self, on_progress: Callable[[int], object]) -> RebuildReport:
        """Fills, verifies and flips. `on_progress` is given the number of chunks just written."""
        for leftover in self._state.surplus_generations():
            self._drop(leftover)
        generation = self._begin()
        with ExitStack() as stack:
            builds = {}
            for sink in self._sinks:
                marker = Marker(self._state.home_id, generation.builds[sink.name], PROJECTION_VERSION)
                dimensions = self._embedder.info.dimension if self._embedder and sink.wants_vectors else None
                build = sink.create(marker, dimensions)
                stack.callback(build.close)
                builds[sink.name] = build, sink.wants_vectors
            refused = fill(self._root, self._catalog, self._state.db, builds, self._embedder, on_progress)
            for name, (build, _) in builds.items():
                difference = verify(self._state.db, build, generation.builds[name])
                if difference is not None:
                    families = ", ".join(difference.examples)
                    raise NotVerified(f"{name} holds {difference.families} families wrong, among them {families}")
        self._flip(generation)
        counts = self._catalog.counts()
        return RebuildReport(generation.id, counts.families, counts.chunks, counts.superseded, tuple(refused))

    def _begin(self) -> Generation:
        run = new_run_id()
        generation = Generation(
            id=run,
            created_at=utc_now(),
            model_name=self._embedder.model if self._embedder else None,
            model_fingerprint=self._embedder.info.fingerprint if self._embedder else None,
            # Short and plain: engines have their own rules for names.
            builds={sink.name: f"{sink.name}-{run.lower()}" for sink in self._sinks},
        )
        self._state.add_generation(generation)
        return generation

    def _flip(self, generation: Generation) -> None:
        before = self._state.live_builds()
        for sink in self._sinks:
            sink.flip(before.get(sink.name), generation.builds[sink.name])
        self._state.flip(generation)
        for older in self._state.surplus_generations():
            self._drop(older)

    def _drop(self, generation: Generation) -> None:
        for sink in self._sinks:
            if sink.name in generation.builds:
                sink.drop(generation.builds[sink.name])
        self._state.forget_generation(generation)
