"""One ingest with its record, its ledger and what it remembers: the same from the command line and from Python."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.runlog import RunLog
from chunksink.settings.config import Config
from chunksink.wiring import ledger_file, memory_file
from chunksink.workers import worker_processes

if TYPE_CHECKING:
    from chunksink.producers.ingest import Options
    from chunksink.producers.report import IngestReport

# Reading a document takes so many times as long as checking as many bytes of chunks.
_EFFORT = 16


def ingest(
    config: Config,
    sources: Sequence[Path],
    options: "Options",
    *,
    jobs: int | None = None,
    on_source: Callable[[], object] = lambda: None,
) -> "IngestReport":
    from chunksink.chunkbus.ledger import Ledger
    from chunksink.producers.ingest import ingest as run
    from chunksink.producers.memory import Memory

    root = BusRoot(config.chunks_path)
    with ExitStack() as stack:
        run_log = stack.enter_context(RunLog(config.home_path, "ingest"))
        ledger = stack.enter_context(Ledger(ledger_file(config.home_path)))
        memory = stack.enter_context(Memory(memory_file(config.home_path), root))
        report = run(
            sources,
            root,
            ledger,
            memory,
            options,
            workers=lambda size: worker_processes(size * _EFFORT, jobs),
            run_id=run_log.run_id,
            on_progress=lambda _done: on_source(),
            homes=[config.home_path],
        )
        for failure in report.failures:
            run_log.write("failure", **asdict(failure))
        run_log.finish("failures" if report.failures else "ok", report=asdict(report))
    return report
