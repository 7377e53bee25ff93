"""One run on a home, under way: what it has open, and the steps that several commands share."""

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.runlog import RunLog

if TYPE_CHECKING:
    from chunksink.rebuild.converge import Outcome
    from chunksink.rebuild.embed import DocumentEmbedder
    from chunksink.rebuild.errors import RebuildError
    from chunksink.rebuild.flip import NotRemoved
    from chunksink.rebuild.lock import RebuildLock, WriterLock
    from chunksink.rebuild.overlap import ModelChange
    from chunksink.rebuild.rebuild import RebuildOptions
    from chunksink.rebuild.report import RunReport
    from chunksink.rebuild.state import Generation
    from chunksink.rebuild.sync import SyncOptions
    from chunksink.rebuild.work import Work
    from chunksink.settings.config import Config
    from chunksink.sinks.contract import Sink
    from chunksink.sinks.errors import SinkError


_MUCH = 4 * 2**20
"""Bytes of chunks: a few seconds of writing, so that a second to get ready for it is won back."""


@dataclass(eq=False)
class Run:
    """A run that is under way."""

    config: "Config"
    """With all sinks, also those that this run does not write."""
    root: BusRoot
    work: "Work"
    log: RunLog
    lock: "WriterLock"
    rebuilding: "RebuildLock"
    stack: ExitStack
    """What is entered here ends with the run."""
    failed: "dict[str, SinkError]"
    """Sinks that did not answer, or could not be built, and why."""
    _unbuilt: "dict[str, RebuildError]" = field(default_factory=dict, init=False)
    _not_removed: "tuple[NotRemoved, ...]" = field(default=(), init=False)
    _built: "list[Outcome]" = field(default_factory=list, init=False)
    _embedder: "DocumentEmbedder | None" = field(default=None, init=False)
    _started: float = field(default_factory=monotonic, init=False)

    def live(self, *, adopt: bool = False) -> "Generation":
        """The live generation; NoGeneration where nothing was built yet."""
        from chunksink.rebuild.flip import live_generation

        return live_generation(self.work, adopt=adopt) or self.work.state.live()

    def sink_without_build(self, live: "Generation") -> "Sink | None":
        """A configured sink that this generation has no build in yet, and that was not tried in this run."""
        tried = {*live.builds, *self.failed, *self._unbuilt}
        return next((sink for name, sink in self.work.sinks.items() if name not in tried), None)

    def rebuild_due(self, live: "Generation") -> str | None:
        """Why a rebuild would make another index than the live one, as far as settings and files tell."""
        from chunksink.due import rebuild_due

        if live.holds_vectors:
            return rebuild_due(self.config, self.work.state, live)
        wanting = [name for name, sink in self.work.sinks.items() if name in live.builds and sink.wants_vectors]
        return f"{' and '.join(wanting)} shall hold vectors, and the live index has none" if wanting else None

    def embedder(self, live: "Generation", sink: "Sink | None" = None) -> "DocumentEmbedder":
        """That of the live model, one for all of the run; the first vectors of an index, which `sink` wants, are made
        with the configured model."""
        from chunksink.wiring import live_embedder, open_embedder

        begins = sink is not None and sink.wants_vectors and not live.holds_vectors
        known = self._embedder
        if known is None or begins or known.info.fingerprint != live.model_fingerprint:
            made_with = open_embedder(self.config) if begins else live_embedder(self.config, live)
            known = self._embedder = self.stack.enter_context(made_with)
        return known

    def read_chunks(self, *, strict: bool = True) -> None:
        """All of them, whatever was known; with `strict`, InvalidBus where they are not whole."""
        from chunksink.rebuild.lock import WAIT_SECONDS
        from chunksink.rebuild.sync import require_valid

        with self.lock(WAIT_SECONDS):
            self._prepare_sinks()
            self.work.refresh(reread=True)
        if strict:
            require_valid(self.work.catalog)

    def _prepare_sinks(self) -> None:
        """What new builds need for much writing is started while chunks are read and the model is loaded."""
        from chunksink.sinks.capabilities import SupportsPrepare, capability

        if self.work.intake.pending_bytes(reread=True) < _MUCH:
            return
        for sink in self.work.sinks.values():
            if (preparing := capability(sink, SupportsPrepare)) is not None:
                preparing.prepare()

    def require_all(self) -> None:
        for error in self.failed.values():
            raise error

    def sync(self, live: "Generation", options: "SyncOptions") -> "RunReport":
        """The live builds, in the writer's lock that was held when this was asked for what is live."""
        from chunksink.rebuild.sync import sync_live

        embedder = self.embedder(live)
        outcome = sync_live(self.work, live, embedder, options)
        outcome.done.failed |= self.failed
        return self._report(live, outcome, embedder, due=self.rebuild_due(live))

    def rebuild(self, options: "RebuildOptions", *, repeated: bool = False) -> "RunReport":
        """New builds, after the chunks were read. `repeated` tells which texts stand in several sources."""
        from chunksink.rebuild.rebuild import Rebuild
        from chunksink.wiring import open_embedder

        live = self.work.state.live_or_none()
        embedder = self.stack.enter_context(open_embedder(self.config, live, wanted=self.work.wants_vectors))
        made = Rebuild(self.work, embedder, options, self.lock, self.rebuilding).run()
        self._not_removed += made.not_removed
        change = made.model_change
        return self._report(made.generation, made.outcome, embedder, model_change=change, repeated=repeated)

    def build_beside(self, sink: "Sink", options: "RebuildOptions") -> None:
        """The live builds, with a new one of this sink beside them, become the live generation.

        Where that cannot be now, the others are synced all the same, and the next sync tries again.
        """
        from chunksink.rebuild.errors import HomeLocked, InvalidBus, NotVerified
        from chunksink.rebuild.flip import live_generation
        from chunksink.rebuild.lock import WAIT_SECONDS
        from chunksink.rebuild.rebuild import Rebuild
        from chunksink.sinks.errors import SinkError

        work = replace(self.work, sinks={sink.name: sink})
        beside = replace(options, keep=frozenset(self.config.sinks))
        try:
            with self.rebuilding():
                with self.lock(WAIT_SECONDS):
                    live = live_generation(self.work, adopt=options.adopt)
                if live is None or sink.name in live.builds:  # another run has built it meanwhile
                    return
                embedder = self.embedder(live, sink)
                made = Rebuild(work, embedder, beside, self.lock, self.rebuilding).run()
            self._not_removed += made.not_removed
            made.outcome.built.append(sink.name)
            self._built.append(made.outcome)
        except SinkError as error:
            self.failed[sink.name] = error
        except (HomeLocked, InvalidBus, NotVerified) as error:
            self._unbuilt[sink.name] = error
            self.log.write("waiting", sink=sink.name, reason=str(error))

    def _report(
        self,
        generation: "Generation",
        outcome: "Outcome",
        embedder: "DocumentEmbedder",
        *,
        due: str | None = None,
        model_change: "ModelChange | None" = None,
        repeated: bool = False,
    ) -> "RunReport":
        from chunksink.rebuild.errors import InvalidBus
        from chunksink.rebuild.report import SinkReport, report_of

        for built in self._built:
            outcome.include(built)
        report = report_of(
            self.work,
            generation,
            outcome,
            embedder,
            run_id=self.log.run_id,
            seconds=monotonic() - self._started,
            rebuild_due=due,
            unconfigured=tuple(name for name in generation.builds if name not in self.config.sinks),
            model_change=model_change,
            not_removed=self._not_removed,
            repeated=repeated,
        )
        reasons: dict[str, SinkError | RebuildError] = {**self.failed, **self._unbuilt}
        unbuilt = {
            name: SinkReport(error=error)
            for name, error in reasons.items()
            if name not in generation.builds and not isinstance(error, InvalidBus)  # the sync tells what is held
        }
        report = replace(report, sinks=report.sinks | unbuilt)
        facts = report.as_json()
        del facts["run_id"], facts["status"]
        self.log.finish(report.status, **facts)
        return report
