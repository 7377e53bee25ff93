"""Opening a run: its record, its lock, the home and the engines, each closed again when the run ends."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from chunksink.chunkbus.errors import NotABusRoot
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.runlog import RunLog
from chunksink.output import counted
from chunksink.run import Run
from chunksink.settings.config import Config, ConfigError

if TYPE_CHECKING:
    from chunksink.rebuild.work import Stage
    from chunksink.sinks.errors import SinkError
    from chunksink.sinks.retry import Fault


@contextmanager
def open_run(
    config: Config,
    command: str,
    *,
    on_fault: "Callable[[Fault], object]",
    stage: "Stage | None" = None,
    tolerant: bool = False,
    reads_chunks: bool = True,
    makes_home: bool = True,
    only: tuple[str, ...] = (),
) -> Iterator[Run]:
    """A run that writes to all configured engines, or to `only` these.

    With `tolerant` an engine may be out of reach. Without `makes_home` there must be one: a name that was misspelt
    is no new home.
    """
    from chunksink.rebuild.lock import RebuildLock, WriterLock
    from chunksink.rebuild.state import State
    from chunksink.wiring import open_work

    _require_configured(config, only)
    with ExitStack() as stack:
        root = BusRoot(config.chunks_path)
        if reads_chunks:
            require_chunks(root, config.home_path)
        if not makes_home:
            with State.existing(config.home_path):
                pass
        log = stack.enter_context(RunLog(config.home_path, command))
        failed: dict[str, SinkError] = {}
        work = stack.enter_context(
            open_work(
                _with_sinks(config, only),
                root,
                on_finding=log.finding,
                on_fault=partial(_tell_fault, log, on_fault),
                failed=failed if tolerant else None,
                stage=stage,
            )
        )
        home = config.home_path
        yield Run(config, root, work, log, WriterLock(home), RebuildLock(home), stack, failed)


def require_chunks(root: BusRoot, home: Path) -> BusRoot:
    """Where there were some, all partitions are missing: InvalidBus; else a folder is named that has none."""
    from chunksink.rebuild.catalog import known_partitions
    from chunksink.rebuild.errors import InvalidBus, RebuildError
    from chunksink.rebuild.state import State

    try:
        return root.require()
    except NotABusRoot as error:
        known: list[str] = []
        with suppress(RebuildError), State.existing(home) as state:
            known = known_partitions(state.db)
        if known:
            raise InvalidBus(
                f"no chunks at {root.path}, where {counted(len(known), 'partition')} stood; the index stays as it is. "
                "Bring the folder back, or name it with --chunks DIR. If all are meant to go: "
                f"`mkdir -p {root.manifests}`, and `chunksink retire-partition KEY` for each"
            ) from error
        raise


def _require_configured(config: Config, only: tuple[str, ...]) -> None:
    """Nobody would search or sync what is built in another sink."""
    from chunksink.settings.sink_tables import sink_names

    for name in only:
        if name not in config.sinks and name in sink_names():
            sinks = ", ".join(f'"{each}"' for each in (*config.sinks, name))
            raise ConfigError(
                f"{name} is not configured; nothing was built. Configure it first, with `sinks = [{sinks}]` in "
                "chunksink.toml or in CHUNKSINK_SINKS; the next `chunksink sync` builds it"
            )


def _with_sinks(config: Config, only: tuple[str, ...]) -> Config:
    import msgspec

    return msgspec.structs.replace(config, sinks=tuple(dict.fromkeys(only))) if only else config


def _tell_fault(log: RunLog, on_fault: "Callable[[Fault], object]", fault: "Fault") -> None:
    log.write("fault", **asdict(fault))
    on_fault(fault)
