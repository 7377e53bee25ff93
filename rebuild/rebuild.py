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
from rebuild.errors import InvalidBus, NoGeneration, NotVerified, OtherModel
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
    """One rebuild of some sinks of a home, from a catalog that was just read.

    `open_sink` opens any sink by name: builds of sinks that are not written any more are removed through it.
    """

    def __init__(
        self,
        root: BusRoot,
        state: State,
        catalog: Catalog,
        sinks: Sequence[Sink],
        embedder: DocumentEmbedder,
        open_sink: Callable[[str], Sink],
    ) -> None:
        self._root = root
        self._state = state
        self._catalog = catalog
        self._sinks = {sink.name: sink for sink in sinks}
        self._embedder = embedder
        self._open_sink = open_sink

    def run(
        self, on_progress: Callable[[int], object], *, deep: bool = False, keep_others: bool = False
    ) -> RebuildReport:
        """Fills, verifies and flips. `on_progress` is given the number of chunks just read and embedded.

        With `deep` every vector in the engines is compared with the cached one before the flip. With `keep_others`
        the new generation shares the builds of the sinks that this run does not write.
        """
        self._end_begun_flip()
        for leftover in self._state.surplus_generations():
            self._drop(leftover)
        generation = self._begin(self._shared() if keep_others else {})
        with ExitStack() as stack:
            targets = [self._open(sink, generation.builds[name], stack) for name, sink in self._sinks.items()]
            refused = fill(self._root, self._catalog, self._state.db, targets, self._embedder, on_progress)
            for target in targets:
                self._verify(target, deep=deep)
        self._flip(generation)
        for older in self._state.surplus_generations():
            self._drop(older)
        counts = self._catalog.counts()
        return RebuildReport(generation.id, counts.families, counts.chunks, counts.superseded, refused)

    def _open(self, sink: Sink, build_id: str, stack: ExitStack) -> Target:
        marker = Marker(self._state.home_id, build_id, PROJECTION_VERSION)
        build = sink.create(marker, self._embedder.info.dimension if sink.wants_vectors else None)
        stack.callback(build.close)
        return Target(sink.name, build_id, build, sink.wants_vectors)

    def _shared(self) -> dict[str, str]:
        """The live builds of the other sinks."""
        try:
            live = self._state.live()
        except NoGeneration:
            return {}
        others = {name: build for name, build in live.builds.items() if name not in self._sinks}
        if others and live.model_fingerprint != self._embedder.info.fingerprint:
            raise OtherModel(
                f"{', '.join(others)} hold vectors of {live.encoder.model}, and this run would use "
                f"{self._embedder.info.name}: rebuild all sinks together"
            )
        return others

    def _begin(self, shared: dict[str, str]) -> Generation:
        run = new_run_id()
        generation = Generation(
            id=run,
            created_at=utc_now(),
            encoder=self._embedder.settings,
            model_fingerprint=self._embedder.info.fingerprint,
            # Short and plain: engines have their own rules for names.
            builds={name: f"{name}-{run.lower()}" for name in self._sinks} | shared,
        )
        self._state.add_generation(generation)
        return generation

    def _verify(self, target: Target, *, deep: bool) -> None:
        difference = verify(self._state.db, target.build, target.build_id)
        if difference is not None:
            families = ", ".join(difference.examples)
            raise NotVerified(f"{target.sink} holds {difference.families} families wrong, among them {families}")
        if deep and target.holds_vectors:
            wrong = ", ".join(islice(wrong_vectors(target.build, self._embedder.cached), _EXAMPLES))
            if wrong:
                raise NotVerified(f"{target.sink} holds other vectors than were computed, among them of {wrong}")

    def _flip(self, generation: Generation) -> None:
        """All sinks, then the pointer, which is the commit. Repeating it after a kill in between ends it."""
        self._state.begin_flip(generation)
        public = self._state.public_builds()
        for name, build_id in generation.builds.items():
            if public.get(name) != build_id:
                self._sink(name).flip(public.get(name), build_id)
        self._state.flip(generation)

    def _end_begun_flip(self) -> None:
        """A run died while it flipped: what it had verified is shown by some sinks, and now by all."""
        generation = self._state.begun_flip()
        if generation is not None:
            self._flip(generation)

    def _drop(self, generation: Generation) -> None:
        """Removes its builds; not while somebody reads them, then a later run does."""
        with removing(self._state, generation) as alone:
            if not alone:
                return
            for name, build_id in generation.builds.items():
                if not self._state.is_shared(build_id, generation):
                    self._sink(name).drop(build_id)
                self._state.forget_build(generation, name)

    def _sink(self, name: str) -> Sink:
        return self._sinks.get(name) or self._open_sink(name)
