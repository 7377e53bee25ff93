"""Test processes forked from one that has imported everything, because imports take longer than most tests."""

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.support.waiting import eventually

FORKING = multiprocessing.get_context("forkserver")
# All tests of a process share one server, which imports only the last of such lists.
FORKING.set_forkserver_preload(
    [
        "numpy.random",
        "chromadb",
        "chunksink.sinks.chroma",
        "chunksink.sinks.fts.sink",
        "chunksink.sinks.jsonl",
        "chunksink.command_line.cli",
        "chunksink.embeddings.openvino_runtime",
        "chunksink.index",
        "httpx",
        "tests.crash.dying",
        "tests.journey.support",
    ]
)


def outcome_of(function: Callable[..., None], *arguments: object) -> tuple[int, str, str]:
    """Call a function of a test module in another process. Returns its exit code and its output."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / name for name in ("out", "err")]
        process = FORKING.Process(target=_redirected, args=(outputs, function, arguments))
        process.start()
        process.join(300)
        assert process.exitcode is not None, "it never ended"
        out, err = (output.read_text(encoding="utf-8") for output in outputs)
        return process.exitcode, out, err


def run_program(program: str, *arguments: object) -> None:
    """Like `python -c`. The program must succeed."""
    code, _, err = outcome_of(execute, program, *arguments)
    assert code == 0, err


def execute(program: str, *arguments: object) -> None:
    """Runs in the other process."""
    sys.argv = ["-c", *map(str, arguments)]
    exec(program, {"__name__": "__main__"})


def _redirected(outputs: list[Path], function: Callable[..., None], arguments: tuple[object, ...]) -> None:
    for stream, output in zip((sys.stdout, sys.stderr), outputs, strict=True):
        with output.open("wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    function(*arguments)


def wait_until_stopped(process: BaseProcess) -> None:
    """Wait until SIGSTOP has stopped the process."""
    stat = Path(f"/proc/{process.pid}/stat")
    eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
