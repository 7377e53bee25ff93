"""Opening a run: its record, its lock, the home and the engines, each closed again when the run ends."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from chunkbus.errors import NotABusRoot
from chunkbus.layout import BusRoot
from chunkbus.runlog import RunLog
from chunksink.run import Run
from settings.config import Config, ConfigError

if TYPE_CHECKING:
    from rebuild.work import Stage
    from sinks.errors import SinkError
    from sinks.patient import Fault


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
    from chunksink.wiring import open_work
    from rebuild.lock import RebuildLock, WriterLock
    from rebuild.state import State

    _require_configured(config, only)
    with ExitStack() as stack:
        root = BusRoot(config.chunks_path)
        if reads_chunks:
            _require_chunks(root, config.home_path)
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


def _require_chunks(root: BusRoot, home: Path) -> None:
    """Where there were some, all partitions are missing; else a folder is named that has none."""
    from rebuild.catalog import known_partitions
    from rebuild.errors import InvalidBus, RebuildError
    from rebuild.state import State

    try:
        root.require()
    except NotABusRoot as error:
        known: list[str] = []
        with suppress(RebuildError), State.existing(home) as state:
            known = known_partitions(state.db)
        if known:
            raise InvalidBus(
                f"{error}. All {len(known):,} partitions that were read before are missing; the index stays as it is"
            ) from error
        raise


def _require_configured(config: Config, only: tuple[str, ...]) -> None:
    """Nobody would search or sync what is built in another sink."""
    from settings.sink_tables import sink_names

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
