"""Test processes forked from one with everything imported, because imports take longer than most of them."""

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

FORKING = multiprocessing.get_context("forkserver")
# All tests of a process share one server, which imports only what the last of such lists names.
FORKING.set_forkserver_preload(
    [
        "numpy.random",
        "chromadb",
        "chunksink.sinks.chroma",
        "chunksink.sinks.fts.sink",
        "chunksink.sinks.jsonl",
        "chunksink.cli",
        "chunksink.embeddings.openvino_runtime",
        "chunksink.index",
        "httpx",
        "tests.crash.dying",
        "tests.journey.support",
    ]
)


def run_apart(program: Callable[..., None], *arguments: object) -> None:
    """Calls a function of a test module in another process, which must end well."""
    process = FORKING.Process(target=program, args=arguments)
    process.start()
    process.join(120)
    assert process.exitcode == 0


def wait_until_stopped(process: BaseProcess) -> None:
    """By SIGSTOP."""
    until = time.monotonic() + 60
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < until, "it never came by that"
        time.sleep(0.01)
