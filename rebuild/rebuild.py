"""Rebuild: a new generation from nothing but the chunks, verified, then shown to readers in one step.

A rebuild that fails leaves the live generation untouched; the next one continues where it stopped. Syncs can run
meanwhile.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from chunksink.chunkbus.errors import PartitionChanged
from chunksink.chunkbus.runlog import new_run_id, utc_now
from chunksink.chunkbus.spans import within_span
from chunksink.chunkbus.validation import Progress
from chunksink.embeddings.encoder import ModelInfo
from chunksink.embeddings.settings import EncoderSettings
from chunksink.rebuild.convergence import Convergence
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.errors import NotVerified, OtherModel
from chunksink.rebuild.flip import drop, drop_orphans, flip, live_generation
from chunksink.rebuild.intake import retry_if_rewritten
from chunksink.rebuild.model_change import model_change
from chunksink.rebuild.ownership import recover_receipts, require_ours
from chunksink.rebuild.plan import Plan
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.removals import brake, brake_refusals
from chunksink.rebuild.report import RunOutcome, RunReport, conclude
from chunksink.rebuild.scan import Scan
from chunksink.rebuild.session import RunOptions, Session
from chunksink.rebuild.spot_check import SpotCheck
from chunksink.rebuild.state import NO_MODEL, Generation, State
from chunksink.rebuild.targets import Opening, Target, open_targets
from chunksink.sinks.capabilities import SupportsPrepare, capability

_ROUNDS = 5
_LOCKED_ROUNDS = 20
"""Further rounds, with the writer's lock held, so that no other run can read changed chunks into the catalog."""
_WORTH_PREPARING = 4 * 2**20
"""Bytes of chunks. Preparing a sink takes a second, so it pays off only if writing takes several."""

Check = Callable[[Generation | None, Generation], Mapping[str, Any]]
"""Compares the new generation, which has been verified, with the live one. Its result goes to the report. An error
prevents the flip."""


@dataclass(frozen=True)
class RebuildOptions(RunOptions):
    keep: frozenset[str] = frozenset()
    """The new generation shares the live builds of these sinks. Sinks that this run writes are ignored here."""
    fresh_cache: bool = False
    """Compute every vector again."""
    leave_out_held: bool = False
    """Leave out missing and invalid chunks if nothing is live yet. Ignored otherwise: a live index could lose
    documents."""
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
    with session.lock.at_start():
        _prepare(session)
        session.refresh(reread=True)
    _require_valid(session, options)  # before the model is loaded
    embedder = session.embedders.configured(with_model=session.wants_vectors)
    building = Rebuild(session, embedder, options)
    return conclude(session, building.run(), building.outcome, embedder, repeated=True)


def _require_valid(session: Session, options: RebuildOptions) -> None:
    """Raises InvalidBus unless all chunks are valid or may be left out."""
    if session.state.live_or_none() is not None or not options.leave_out_held:
        session.catalog.require_valid()


@dataclass(eq=False)
class Rebuild:
    session: Session
    embedder: DocumentEmbedder
    options: RebuildOptions = RebuildOptions()
    outcome: RunOutcome = field(default_factory=RunOutcome)
    live: Generation | None = None
    recovered: Sequence[str] = ()
    """Builds whose lost receipts were recreated by a scan."""

    def run(self) -> Generation:
        """Fill a generation, verify it and make it live; returns it. Continues an unfinished one of the same kind."""
        with self.session.rebuild_lock.at_start():
            with self.session.lock.at_start():
                self.live = live_generation(self.session, adopt=self.options.adopt)
                # Check this before hours of work, and before receipts of existing builds are made.
                require_ours(self.session, self.session.sinks, adopt=self.options.adopt, sign=True)
                self._check_receipts()
                self._refresh()
                generation = self._begin()
                if self.options.fresh_cache:
                    self.embedder.recompute_all()
                self._remove_surplus(keep=generation.id)
            self._fill(generation)
            with self.session.lock():
                self.embedder.drop_outdated()
                self._remove_surplus()
                self.outcome.not_removed |= drop_orphans(self.session)
        return generation

    def _check_receipts(self) -> None:
        """Compare the receipts of the live builds with the engines, for the brake. Recreate lost receipts."""
        if self.live is None:
            self.recovered = retry_if_rewritten(partial(recover_receipts, self.session, sorted(self.options.keep)))
        else:
            unreported = RunOutcome()
            with open_targets(self.session, self.live, unreported, Opening(make=False, adopt=True)) as targets:
                Convergence(self.session, targets, self.embedder, unreported).check(sign=False)

    def _refresh(self) -> None:
        """Read changed chunks. Raises an error if some are invalid, or if the brake stops the run."""
        self.session.refresh()
        _require_valid(self.session, self.options)
        live = self.live = self.session.state.live_or_none()  # a rollback may have changed it
        builds = self.recovered if live is None else live.builds_of(self.session.config.sinks)
        brake(self.session.state.db, builds, self.options.allow_deletions)

    def _begin(self) -> Generation:
        """The generation to fill: an unfinished one if this run can continue it, else a new one."""
        live = {} if self.live is None else self.live.builds
        shared = {name: live[name] for name in live if name in self.options.keep - set(self.session.sinks)}
        run = new_run_id()
        encoder, model = self._model(shared)
        new = Generation(
            id=run,
            created_at=utc_now(),
            encoder=encoder,
            model=model,
            # Short lower-case names, because engines restrict names.
            builds={name: f"{name}-{run.lower()}" for name in self.session.sinks} | shared,
        )
        unfinished = self.session.state.unfinished()
        # With `fresh_cache`, its vectors are outdated.
        if unfinished is not None and not self.options.fresh_cache and self._is_alike(unfinished, new):
            return unfinished
        self.session.state.add_generation(new)
        return new

    def _is_alike(self, unfinished: Generation, new: Generation) -> bool:
        """Whether both have the same model, the same sinks and the same shared builds."""
        shared = {build for build in unfinished.builds.values() if self.session.state.is_shared(build, unfinished)}
        return (
            unfinished.builds.keys() == new.builds.keys()
            and shared == {build for name, build in new.builds.items() if name not in self.session.sinks}
            and (unfinished.encoder, unfinished.model_fingerprint) == (new.encoder, new.model_fingerprint)
        )

    def _model(self, shared: Iterable[str]) -> tuple[EncoderSettings, ModelInfo]:
        """The one model of all builds with vectors. Raises OtherModel if the shared builds have another one."""
        live, settings, info = self.live, self.embedder.settings, self.embedder.info
        kept = [name for name in shared if self.session.sink(name).wants_vectors]
        if live is not None and live.holds_vectors and kept:
            if not self.session.wants_vectors:
                return live.encoder, live.model
            if live.model_fingerprint != info.fingerprint:
                raise OtherModel(
                    f"{' and '.join(kept)} would keep vectors of {live.encoder.model}, and this run would use "
                    f"{info.name}: rebuild all sinks together"
                )
        return settings, info if self.session.wants_vectors else NO_MODEL

    def _fill(self, generation: Generation) -> None:
        """Write and verify in rounds, until no chunk has changed during a round. Then flip, before another run can read
        changed chunks. Raises NotVerified if chunks change in every round."""
        with ExitStack() as stack:
            with self.session.lock():
                opening = Opening(heal=True, adopt=self.options.adopt)
                targets = stack.enter_context(open_targets(self.session, generation, self.outcome, opening))
            convergence = Convergence(self.session, targets, self.embedder, self.outcome)
            convergence.check()
            convergence.update_settings()  # the run that began this generation may have had others
            for number in range(_ROUNDS + _LOCKED_ROUNDS):
                locked = number >= _ROUNDS
                with self.session.lock() if locked else nullcontext():
                    verified = self._round(generation, convergence, targets)
                    with self.session.lock():
                        if not (locked and verified):
                            self._refresh()
                            verified = verified and convergence.plan().is_empty()
                        if verified:
                            if self.live is not None:
                                self._compare_with_live(self.live, generation, targets)
                            flip(self.session, generation, adopt=self.options.adopt)
                            return
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
        """Drop old generations, except those that an engine refused to drop earlier in this run."""
        for generation in self.session.state.surplus_generations(keep=keep):
            if not self.outcome.not_removed.keys() & set(generation.builds.values()):
                self.outcome.not_removed |= drop(self.session, generation)

    def _round(self, generation: Generation, convergence: Convergence, targets: list[Target]) -> bool:
        """Write what is missing, then verify and check it. False if chunks have changed meanwhile."""
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

    def _verify(self, targets: Sequence[Target]) -> None:
        """All builds in parallel: one engine reads while documents of another are compared."""
        with ExitStack() as bars, ThreadPoolExecutor(len(targets), thread_name_prefix="verify") as threads:
            futures = []
            for target in targets:
                documents = Receipts(self.session.state.db, target.build_id).documents()
                advance = bars.enter_context(self.session.timed(f"verify {target.sink}", documents, "chunks"))
                futures.append(threads.submit(within_span(self._verify_build), target, advance))
            for future in futures:
                future.result()

    def _verify_build(self, target: Target, on_chunks: Progress) -> None:
        """Runs in its own thread, with its own connection."""
        cached = self.embedder.expected if self.options.deep and target.holds_vectors else None
        with State(self.session.state.home) as state:
            scan = Scan(state.db, target.build, target.build_id, self.session.reader.with_state(state))
            began = utc_now()
            scan.run(on_chunks, cached)
            if scan.is_clean():
                SpotCheck(state.db, target.build_id).note_scan(began)
                return
            with self.session.lock():
                if not Plan(state.db, [target.build_id]).is_empty():
                    raise PartitionChanged("another run has read changed chunks meanwhile")
                examples = scan.examples()
                scan.make_receipts()
        raise NotVerified(
            f"{target.sink} differs from what was written: {examples}; the live index is untouched. Run the rebuild "
            "again: it writes these sources again"
        )
