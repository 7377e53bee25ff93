"""One ingest with its run record: the same from the command line and from Python."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.runlog import RunLog
from chunksink.settings.config import Config
from chunksink.workers import worker_processes

if TYPE_CHECKING:
    from chunksink.ingest.options import Options
    from chunksink.ingest.report import IngestReport

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
    from chunksink.ingest.run import ingest as run

    with RunLog(config.home_path, "ingest") as run_log:
        report = run(
            sources,
            BusRoot(config.chunks_path),
            config.home_path,
            options,
            workers=lambda size: worker_processes(size * _EFFORT, jobs),
            run_id=run_log.run_id,
            on_progress=lambda _done: on_source(),
        )
        for failure in report.failures:
            run_log.write("failure", **asdict(failure))
        run_log.finish("failures" if report.failures else "ok", report=asdict(report))
    return report
