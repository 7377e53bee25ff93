"""One index from Python: the same runs that the command line makes, without a terminal.

    with chunksink.open("chunksink.toml") as index:
        report = index.sync()

Each call is one run with its own record below `<home>/runs/`; it takes the writer's lock while it writes.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from chunkbus.layout import BusRoot
from chunkbus.runlog import RunLog
from chunksink.run import Run
from settings.config import Config

if TYPE_CHECKING:
    from rebuild.forecast import Forecast
    from rebuild.forget import Forgotten
    from rebuild.report import RunReport
    from rebuild.state import Generation
    from rebuild.sync import SyncOptions
    from rebuild.verify import Verified
    from rebuild.work import Stage
    from sinks.errors import SinkError
    from sinks.patient import Fault


def _ignore(_fault: object) -> None:
    return None


class Index:
    """The chunks in a folder, the home, and the engines that hold them, as a configuration names them."""

    def __init__(
        self, config: Config, *, stage: "Stage | None" = None, on_fault: "Callable[[Fault], object]" = _ignore
    ) -> None:
        self.config = config
        self._stage = stage
        self._on_fault = on_fault

    def __enter__(self) -> "Index":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held between runs."""

    def sync(
        self,
        *,
        strict: bool = False,
        adopt: bool = False,
        allow_deletions: int = 0,
        plan: str | None = None,
        rebuild: bool = False,
    ) -> "RunReport":
        """Brings the engines to what the chunks say now, with the least that must be written.

        `strict` refuses the whole bus for one invalid partition; `adopt` takes over builds of another home;
        `allow_deletions` lets so many sources go although they are a large share; `plan` carries out exactly the plan
        of that digest; `rebuild` makes the index anew where its model is not the configured one any more.
        """
        from rebuild.sync import SyncOptions

        options = SyncOptions(strict=strict, adopt=adopt, allow_deletions=allow_deletions, only_plan=plan)
        return self._sync("sync", options, rebuild=rebuild)

    def repair(self, *, adopt: bool = False, allow_deletions: int = 0, deep: bool = False) -> "RunReport":
        """A sync that asks the engines for all that they hold first, and makes broken builds anew."""
        from rebuild.sync import SyncOptions

        options = SyncOptions(scan=True, deep=deep, adopt=adopt, allow_deletions=allow_deletions)
        return self._sync("repair", options)

    def rebuild(
        self,
        *,
        only: tuple[str, ...] = (),
        deep: bool = False,
        adopt: bool = False,
        allow_deletions: int = 0,
        fresh_cache: bool = False,
    ) -> "RunReport":
        """A new build in every sink, or in those of `only`, verified and then shown to readers in one step."""
        from chunksink.wiring import discard_vectors, open_embedder
        from rebuild.rebuild import RebuildOptions

        config = replace_sinks(self.config, only)
        options = RebuildOptions(deep=deep, keep_others=bool(only), adopt=adopt, allow_deletions=allow_deletions)
        with Index(config, stage=self._stage, on_fault=self._on_fault)._run("rebuild") as run:
            run.read_chunks()  # before the model, which takes seconds to load
            embedder = run.stack.enter_context(open_embedder(config))
            if fresh_cache:
                run.brake(options)  # before anything is dropped
                discard_vectors(config, embedder.info.fingerprint)
            return run.rebuild(embedder, options, repeated=True)

    def verify(self, *, deep: bool = False) -> "Verified":
        """What the live builds really hold, compared with what the chunks say now."""
        from chunksink.wiring import live_embedder
        from rebuild.lock import WAIT_SECONDS
        from rebuild.verify import verify_live

        with self._run("verify") as run:
            with run.lock(WAIT_SECONDS):
                live = run.live()
                run.work.refresh()
                cached = None
                if deep:
                    cached = run.stack.enter_context(live_embedder(self.config, live)).cached
                found = verify_live(run.work, live, cached)
            run.log.finish("ok" if found.ok else "drift", sinks=found.numbers())
            return found

    def plan(self, *, adopt: bool = False) -> "Forecast":
        """What a sync would do and cost; nothing is written but our own catalog."""
        from chunksink.wiring import live_embedder, rebuild_due, token_lengths
        from rebuild.forecast import forecast
        from rebuild.lock import WAIT_SECONDS
        from rebuild.sync import planned

        with self._run("plan") as run, run.lock(WAIT_SECONDS):
            live = run.live()
            due = rebuild_due(self.config, live)
            embedder = run.stack.enter_context(live_embedder(self.config, live))
            lengths = run.stack.enter_context(token_lengths(self.config, live.model_fingerprint))
            with planned(run.work, live, embedder, adopt=adopt) as plan:
                told = forecast(run.work, live, plan, lengths, price=self.config.token_price, rebuild_due=due)
            run.log.finish("ok", hash=told.hash)
            return told

    def rollback(self) -> "Generation":
        """Readers see the generation before again."""
        from rebuild.flip import roll_back
        from rebuild.lock import WAIT_SECONDS
        from rebuild.state import State

        with State.existing(self.config.home_path):
            pass  # or a home would be made where there is none
        with self._run("rollback", reads_chunks=False) as run:
            with run.lock(WAIT_SECONDS):
                generation = roll_back(run.work)
            run.log.finish("ok", generation=generation.id)
            return generation

    def retire_partition(self, key: str) -> int:
        """Gives up a partition that is gone for good; the next sync removes the sources that only it held."""
        from rebuild.lock import WAIT_SECONDS

        with self._run("retire-partition", tolerant=True) as run:
            with run.lock(WAIT_SECONDS):
                run.work.refresh()
                families = run.work.catalog.retire(run.root, key)
            run.log.finish("ok", partition=key, families=families)
            return families

    def forget(self, name: str) -> "Forgotten":
        """Erases one source from every build, the cache, dead letters and the records of past runs."""
        from chunksink.wiring import drop_texts
        from rebuild.forget import forget
        from rebuild.lock import WAIT_SECONDS

        with self._run("forget") as run:
            with run.lock(WAIT_SECONDS):
                run.work.refresh()
                found = forget(run.work, name, partial(drop_texts, self.config))
            run.log.finish("ok", documents=sum(found.documents.values()), vectors=found.vectors)
            return found

    def _sync(self, command: str, options: "SyncOptions", *, rebuild: bool = False) -> "RunReport":
        """A sync of the live builds. Where there are none, or not in every sink, they are built first.

        A named plan is one for the live builds: with it nothing is built.
        """
        from chunksink.wiring import live_embedder, open_embedder, rebuild_due
        from rebuild.flip import live_generation
        from rebuild.lock import WAIT_SECONDS
        from rebuild.rebuild import RebuildOptions
        from rebuild.sync import sync_live

        builds = options.only_plan is None
        as_rebuilt = RebuildOptions(adopt=options.adopt, allow_deletions=options.allow_deletions)
        with self._run(command, tolerant=True) as run:
            while True:
                with run.lock(WAIT_SECONDS):
                    live = live_generation(run.work) if builds else run.live()
                    due = None if live is None else rebuild_due(self.config, live)
                    rebuilds = due is not None and rebuild and builds
                    newcomer = run.sink_without_build(live) if live is not None and builds else None
                    if live is not None and newcomer is None and not rebuilds:
                        embedder = run.stack.enter_context(live_embedder(self.config, live))
                        outcome = sync_live(run.work, live, embedder, options)
                        outcome.done.failed |= run.failed
                        return run.report(live, outcome, embedder, due=due)
                if live is None or newcomer is None or rebuilds:
                    run.require_all()
                    run.read_chunks(strict=options.strict or live is not None)
                    embedder = run.stack.enter_context(open_embedder(self.config))
                    # A home that lost its records has builds, and with them something to lose.
                    begins = not any(sink.builds() for sink in run.work.sinks.values())
                    lenient = replace(as_rebuilt, held_are_left_out=begins and not options.strict)
                    return run.rebuild(embedder, lenient)
                embedder = run.stack.enter_context(live_embedder(self.config, live))
                run.build_beside(newcomer, embedder, as_rebuilt)

    @contextmanager
    def _run(self, command: str, *, tolerant: bool = False, reads_chunks: bool = True) -> Iterator[Run]:
        """One run: its record, its lock, the home and the engines. With `tolerant` an engine may be out of reach."""
        from chunksink.wiring import open_work
        from rebuild.lock import WriterLock

        with ExitStack() as stack:
            root = BusRoot(self.config.chunks_path)
            if reads_chunks:
                root.require()
            log = stack.enter_context(RunLog(self.config.home_path, command))
            failed: dict[str, SinkError] = {}
            work = stack.enter_context(
                open_work(
                    self.config,
                    root,
                    on_finding=log.finding,
                    on_fault=partial(self._tell_fault, log),
                    failed=failed if tolerant else None,
                    stage=self._stage,
                )
            )
            yield Run(root, work, log, WriterLock(self.config.home_path), stack, failed, monotonic())

    def _tell_fault(self, log: RunLog, fault: "Fault") -> None:
        log.write("fault", **asdict(fault))
        self._on_fault(fault)


def replace_sinks(config: Config, only: tuple[str, ...]) -> Config:
    import msgspec

    return msgspec.structs.replace(config, sinks=tuple(dict.fromkeys(only))) if only else config
