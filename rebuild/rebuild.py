"""Rebuild: a new generation from nothing but the chunks, verified, then shown to readers in one step.

A rebuild that fails leaves the live generation untouched; the next one continues where it stopped. Syncs can run
meanwhile.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from chunksink.chunkbus.errors import PartitionChanged
from chunksink.chunkbus.runlog import new_run_id, utc_now
from chunksink.chunkbus.spans import within_span
from chunksink.embeddings.encoder import ModelInfo
from chunksink.embeddings.settings import EncoderSettings
from chunksink.rebuild.convergence import Convergence
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.errors import NotVerified, OtherModel
from chunksink.rebuild.flip import drop, drop_orphans, flip, live_generation
from chunksink.rebuild.intake import retry_if_rewritten
from chunksink.rebuild.locks import WAIT_SECONDS
from chunksink.rebuild.model_change import model_change
from chunksink.rebuild.ownership import recover_receipts, require_ours
from chunksink.rebuild.plan import Plan
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.removals import brake, brake_refusals
from chunksink.rebuild.report import NotRemoved, RunOutcome, RunReport, conclude
from chunksink.rebuild.scan import Progress, Scan
from chunksink.rebuild.session import RunOptions, Session
from chunksink.rebuild.spot_check import SpotCheck
from chunksink.rebuild.state import NO_MODEL, Generation, State
from chunksink.rebuild.targets import Opening, Target, open_targets
from chunksink.sinks.capabilities import SupportsPrepare, capability

_ROUNDS = 6
_LAST_ATTEMPTS = 20
_WORTH_PREPARING = 4 * 2**20
"""Bytes of chunks. Preparing a sink takes a second, which pays off if writing takes a few."""

Check = Callable[[Generation | None, Generation], Mapping[str, Any]]
"""Gets the live generation and a new one, which is verified. Its result goes to the report; an error prevents the
flip."""


@dataclass(frozen=True)
class RebuildOptions(RunOptions):
    keep: frozenset[str] = frozenset()
    """Share the live builds of these sinks, which this run does not write."""
    fresh_cache: bool = False
    """Compute every vector again."""
    held_are_left_out: bool = False
    """Leave out invalid chunks if there is no live index that could lose documents."""
    check: Check | None = None


def _prepare(session: Session) -> None:
    """Let sinks prepare for large builds while chunks are read and the model is loaded."""
    if session.intake.pending_bytes(reread=True) < _WORTH_PREPARING:
        return
    for sink in session.sinks.values():
        if (preparing := capability(sink, SupportsPrepare)) is not None:
            preparing.prepare()


def rebuild(session: Session, options: RebuildOptions = RebuildOptions()) -> RunReport:
    """Read all chunks, then load the model, build a new generation of the run's sinks, and show it to readers."""
    with session.lock(WAIT_SECONDS):
        _prepare(session)
        session.refresh(reread=True)
    live = session.state.live_or_none()
    if live is not None or not options.held_are_left_out:
        session.catalog.require_valid()
    embedder = session.embedders.configured(with_model=session.wants_vectors)
    building = Rebuild(session, embedder, options)
    return conclude(session, building.run(), building.outcome, embedder, repeated=True)


@dataclass(eq=False)
class Rebuild:
    session: Session
    embedder: DocumentEmbedder
    options: RebuildOptions = RebuildOptions()
    outcome: RunOutcome = field(default_factory=RunOutcome)
    live: Generation | None = None
    recovered: Sequence[str] = ()
    """Builds whose receipts were recovered because the records are lost."""

    def run(self) -> Generation:
        """Fill, verify and flip; returns the new live generation. Continues an unfinished one of the same kind."""
        with self.session.rebuild_lock():
            with self.session.lock(WAIT_SECONDS):
                self.live = live_generation(self.session, adopt=self.options.adopt)
                # Before hours of work, and before receipts of existing builds are made.
                require_ours(self.session, self.session.sinks, adopt=self.options.adopt, sign=True)
                self._check_live_receipts()
                self._refresh()
                generation = self._begin()
                if self.options.fresh_cache:
                    self.embedder.recompute_all()
                self._remove_surplus(keep=generation.id)
            self._fill(generation)
            with self.session.lock():
                self.embedder.drop_outdated()
                self._remove_surplus()
                self._add_not_removed(drop_orphans(self.session))
        return generation

    def _check_live_receipts(self) -> None:
        """The brake uses receipts, so they are compared with the live builds, or recovered if they are lost."""
        if self.live is None:
            self.recovered = retry_if_rewritten(partial(recover_receipts, self.session, sorted(self.options.keep)))
        else:
            unreported = RunOutcome()
            with open_targets(self.session, self.live, unreported, Opening(make=False, adopt=True)) as targets:
                Convergence(self.session, targets, self.embedder, unreported).check(sign=False)

    def _refresh(self) -> None:
        self.session.refresh()
        live = self.live = self.session.state.live_or_none()  # a rollback may have changed it
        if live is not None or not self.options.held_are_left_out:
            self.session.catalog.require_valid()
        builds = self.recovered if live is None else list(live.builds.values())
        brake(self.session.state.db, builds, self.options.allow_deletions)

    def _begin(self) -> Generation:
        """The unfinished generation if this run would make an equal one; else a new one."""
        live = {} if self.live is None else self.live.builds
        shared = {name: live[name] for name in live if name in self.options.keep - set(self.session.sinks)}
        encoder, model = self._model(shared)
        unfinished = self.session.state.unfinished()
        # With `fresh_cache`, its vectors are outdated.
        if unfinished is not None and not self.options.fresh_cache and self._equals(unfinished, shared, encoder, model):
            return unfinished
        run = new_run_id()
        generation = Generation(
            id=run,
            created_at=utc_now(),
            encoder=encoder,
            model=model,
            # Short lower-case names, because engines restrict names.
            builds={name: f"{name}-{run.lower()}" for name in self.session.sinks} | shared,
        )
        self.session.state.add_generation(generation)
        return generation

    def _equals(
        self, unfinished: Generation, shared: dict[str, str], encoder: EncoderSettings, model: ModelInfo
    ) -> bool:
        """Whether it has the sinks and model of this run, and shares only the builds that this run keeps: shared builds
        are never written."""
        builds, is_shared = unfinished.builds, self.session.state.is_shared
        theirs = {name: build for name, build in builds.items() if is_shared(build, unfinished)}
        return (
            theirs == shared
            and builds.keys() - theirs.keys() == self.session.sinks.keys()
            and (unfinished.encoder, unfinished.model_fingerprint) == (encoder, model.fingerprint)
        )

    def _model(self, shared: Iterable[str]) -> tuple[EncoderSettings, ModelInfo]:
        """The one model of all builds with vectors; OtherModel if there would be two."""
        live = self.live
        kept = [name for name in shared if self.session.sink(name).wants_vectors]
        if live is None or not live.holds_vectors or not kept:
            live = None
        if not self.session.wants_vectors:
            return (self.embedder.settings, NO_MODEL) if live is None else (live.encoder, live.model)
        if live is not None and live.model_fingerprint != self.embedder.info.fingerprint:
            raise OtherModel(
                f"{' and '.join(kept)} would keep vectors of {live.encoder.model}, and this run would use "
                f"{self.embedder.info.name}: rebuild all sinks together"
            )
        return self.embedder.settings, self.embedder.info

    def _fill(self, generation: Generation) -> None:
        """Write and verify in rounds, until the chunks are unchanged after a verification. Then flip, under the lock of
        that comparison."""
        with ExitStack() as stack:
            with self.session.lock():
                opening = Opening(heal=True, adopt=self.options.adopt)
                targets = stack.enter_context(open_targets(self.session, generation, self.outcome, opening))
            convergence = Convergence(self.session, targets, self.embedder, self.outcome, self.session.lock)
            convergence.check()
            convergence.update_settings(generation)  # an earlier run may have begun with others
            verified = False
            for remaining in reversed(range(_ROUNDS)):
                with self.session.lock():
                    self._refresh()
                    verified = verified and convergence.plan().is_empty()
                    if not verified and remaining == 0:
                        verified = self._last_round(generation, convergence, targets)
                    if verified:
                        if self.live is not None:
                            self._compare_with_live(self.live, generation, targets)
                        flip(self.session, generation, adopt=self.options.adopt)
                        return
                if remaining:
                    verified = self._round(generation, convergence, targets)
        raise NotVerified(
            "the chunks kept changing during the rebuild, so it could not finish; the live generation is untouched. "
            "Run it again"
        )

    def _compare_with_live(self, live: Generation, generation: Generation, targets: Sequence[Target]) -> None:
        """Stop if engines refused much more than before, and measure how much answers change."""
        for target in targets:
            if old := live.builds.get(target.sink):
                brake_refusals(self.session.state.db, target.sink, old, target.build_id, self.options.allow_deletions)
        self.outcome.model_change = model_change(self.session, live, generation, self.embedder)

    def _remove_surplus(self, keep: str | None = None) -> None:
        """Drop old generations. One that cannot be dropped is tried once; a later run tries again."""
        for generation in self.session.state.surplus_generations(keep=keep):
            if not self.outcome.not_removed.keys() & set(generation.builds.values()):
                self._add_not_removed(drop(self.session, generation))

    def _add_not_removed(self, builds: Iterable[NotRemoved]) -> None:
        self.outcome.not_removed |= {each.build: each for each in builds}

    def _round(self, generation: Generation, convergence: Convergence, targets: list[Target]) -> bool:
        """Execute a plan, verify and check. False if the chunks have changed meanwhile."""
        try:
            convergence.run(convergence.plan())
            for error in self.outcome.failed.values():
                raise error
            self._verify(targets)
            if self.options.check is not None:
                self.outcome.evaluation = self.options.check(self.live, generation)
        except PartitionChanged:
            return False
        return True

    def _last_round(self, generation: Generation, convergence: Convergence, targets: list[Target]) -> bool:
        """Rounds under the lock, so that no other run reads chunks. If a partition is rewritten meanwhile, the next
        attempt has less to do."""
        for _ in range(_LAST_ATTEMPTS):
            if self._round(generation, convergence, targets):
                return True
            self._refresh()
        return False

    def _verify(self, targets: Sequence[Target]) -> None:
        """All builds in parallel: one engine reads while documents of another are compared."""
        removals = self.session.catalog.is_whole()
        with ExitStack() as bars, ThreadPoolExecutor(len(targets), thread_name_prefix="verify") as threads:
            futures = []
            for target in targets:
                documents = Receipts(self.session.state.db, target.build_id).documents()
                bar = bars.enter_context(self.session.timed(f"verify {target.sink}", documents, "chunks"))
                futures.append(threads.submit(within_span(self._verify_build), target, bar.advance, removals))
            for future in futures:
                future.result()

    def _verify_build(self, target: Target, on_chunks: Progress, removals: bool) -> None:
        """Runs in its own thread, with its own connection."""
        cached = self.embedder.expected if self.options.deep and target.holds_vectors else None
        with State(self.session.state.home) as state:
            scan = Scan(state.db, target.build, target.build_id, self.session.records.beside(state))
            began = utc_now()
            scan.run(on_chunks, removals=removals, cached=cached)
            if scan.is_clean():
                SpotCheck(state.db, target.build_id).note_scan(began)
                return
            with self.session.lock():
                if not Plan(state.db, [target.build_id], removals=removals).is_empty():
                    raise PartitionChanged("another run has read changed chunks meanwhile")
                examples = scan.examples()
                scan.make_receipts(Receipts(state.db, target.build_id))
        raise NotVerified(
            f"{target.sink} differs from what was written: {examples}; the live index is untouched. Run it again to "
            "write these sources again"
        )
