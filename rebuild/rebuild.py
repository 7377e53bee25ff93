"""Rebuild: a new generation from nothing but the chunks, verified, then shown to readers in one step.

Until the flip readers see the generation before; a run that fails or is killed leaves it untouched.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice

from chunkbus.layout import BusRoot
from chunkbus.runlog import new_run_id, utc_now
from rebuild.catalog import Catalog
from rebuild.deep import wrong_vectors
from rebuild.embed import DocumentEmbedder
from rebuild.errors import InvalidBus, NotVerified
from rebuild.fill import Target, fill
from rebuild.lease import removing
from rebuild.state import Generation, State
from rebuild.verify import verify
from sinks.projection import PROJECTION_VERSION
from sinks.sink import Marker, RefusedDocument, Sink

_EXAMPLES = 3


@dataclass(frozen=True)
class RebuildReport:
    generation: str
    families: int
    chunks: int
    superseded: int
    refused: dict[str, tuple[RefusedDocument, ...]]
    """By sink."""


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
        embedder: DocumentEmbedder,
    ) -> None:
        self._root = root
        self._state = state
        self._catalog = catalog
        self._sinks = sinks
        self._embedder = embedder

    def run(self, on_progress: Callable[[int], object], *, deep: bool = False) -> RebuildReport:
        """Fills, verifies and flips. `on_progress` is given the number of chunks just written.

        With `deep` every vector in the engines is compared with the cached one before the flip.
        """
        for leftover in self._state.surplus_generations():
            self._drop(leftover)
        generation = self._begin()
        with ExitStack() as stack:
            targets = [self._open(sink, generation.builds[sink.name], stack) for sink in self._sinks]
            refused = fill(self._root, self._catalog, self._state.db, targets, self._embedder, on_progress)
            for target in targets:
                difference = verify(self._state.db, target.build, target.build_id)
                if difference is not None:
                    families = ", ".join(difference.examples)
                    raise NotVerified(
                        f"{target.sink} holds {difference.families} families wrong, among them {families}"
                    )
                if deep:
                    self._verify_vectors(target)
        self._flip(generation)
        counts = self._catalog.counts()
        return RebuildReport(generation.id, counts.families, counts.chunks, counts.superseded, refused)

    def _verify_vectors(self, target: Target) -> None:
        if not target.holds_vectors:
            return
        wrong = list(islice(wrong_vectors(target.build, self._embedder.cached), _EXAMPLES))
        if wrong:
            raise NotVerified(f"{target.sink} holds other vectors than were computed, among them of {', '.join(wrong)}")

    def _open(self, sink: Sink, build_id: str, stack: ExitStack) -> Target:
        marker = Marker(self._state.home_id, build_id, PROJECTION_VERSION)
        build = sink.create(marker, self._embedder.info.dimension if sink.wants_vectors else None)
        stack.callback(build.close)
        return Target(sink.name, build_id, build, sink.wants_vectors)

    def _begin(self) -> Generation:
        run = new_run_id()
        generation = Generation(
            id=run,
            created_at=utc_now(),
            encoder=self._embedder.settings,
            model_fingerprint=self._embedder.info.fingerprint,
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
        """Removes its builds; not while somebody reads them, then a later run does."""
        with removing(self._state, generation) as alone:
            if not alone:
                return
            for sink in self._sinks:
                if sink.name in generation.builds:
                    sink.drop(generation.builds[sink.name])
            self._state.forget_generation(generation)
