"""One run of one tool in a trial's folder: `python -m bench.faults.run ADAPTER FOLDER [OPTION ...]`.

Trials fork it from a process that has imported the tools, because importing takes longer than the run.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

os.environ |= {"ANONYMIZED_TELEMETRY": "False", "COCOINDEX_DISABLE_USAGE_TRACKING": "1", "HF_HUB_OFFLINE": "1"}
warnings.simplefilter("ignore")

FORKED = ("langchain", "llamaindex", "chunksink")
"""Adapters whose import starts no threads, since threads do not survive a fork."""
FORKING: Any = multiprocessing.get_context("forkserver")
SPAWNING: Any = multiprocessing.get_context("spawn")


def preload(adapters: Iterable[str]) -> None:
    """Import these adapters in the fork server. Each run is a fork of it."""
    FORKING.set_forkserver_preload([__name__, *(f"bench.faults.{name}" for name in adapters if name in FORKED)])


def begin(adapter: str, folder: Path, options: Sequence[str], output: Path) -> BaseProcess:
    """Starts a run. Returns when its imports are done and its work begins. Output goes to the file `output`."""
    context = FORKING if adapter in FORKED else SPAWNING
    began, sender = context.Pipe(duplex=False)
    process: BaseProcess = context.Process(target=_work, args=(adapter, folder, options, output, sender))
    process.start()
    sender.close()
    began.poll(None)
    began.close()
    return process


def _work(adapter: str, folder: Path, options: Sequence[str], output: Path, began: Connection) -> None:
    with output.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    work = prepared(adapter, folder, options)
    began.close()
    sys.exit(work())


def prepared(adapter: str, folder: Path, options: Sequence[str]) -> Any:
    """The work of a run, in this process; it returns the exit code."""
    module = import_module(f"bench.faults.{adapter}")
    os.chdir(folder)
    return module.prepare(options)


if __name__ == "__main__":
    sys.exit(prepared(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])())
