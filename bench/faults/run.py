"""One run of one tool in a trial's folder: `python -m bench.faults.run TOOL FOLDER [OPTION ...]`.

TOOL is the name of an adapter in this package. Trials run the same in a process that is forked from one which has
imported the tool, because importing takes longer than the run.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

os.environ["ANONYMIZED_TELEMETRY"] = "False"
os.environ["COCOINDEX_DISABLE_USAGE_TRACKING"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")

FORKED = ("langchain", "llamaindex", "chunksink")
"""Adapters whose import starts no threads; threads do not survive a fork."""
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([__name__, *(f"bench.faults.{name}" for name in FORKED)])
SPAWNING = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Run:
    process: BaseProcess
    file: Path

    def output(self) -> str:
        return self.file.read_text(errors="replace")


def begin(tool: str, folder: Path, options: Sequence[str]) -> Run:
    """A process that has begun to work, or has failed before. What it prints goes to a file beside the folder."""
    context = FORKING if tool in FORKED else SPAWNING
    handle, output = tempfile.mkstemp(dir=folder.parent, suffix=".output")
    os.close(handle)
    began, sender = context.Pipe(duplex=False)
    process: BaseProcess = context.Process(target=_work, args=(tool, str(folder), options, output, sender))  # type: ignore[attr-defined]
    process.start()
    sender.close()
    began.poll(None)
    began.close()
    return Run(process, Path(output))


def _work(tool: str, folder: str, options: Sequence[str], output: str, began: Connection) -> None:
    file = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    adapter = import_module(f"bench.faults.{tool}")
    os.chdir(folder)
    work = adapter.prepare(Path(), options)
    began.send(True)
    began.close()
    code = work()
    sys.stdout.flush()
    sys.exit(code)


def main() -> None:
    tool, folder, *options = sys.argv[1:]
    adapter = import_module(f"bench.faults.{tool}")
    os.chdir(folder)
    sys.exit(adapter.prepare(Path(), options)())


if __name__ == "__main__":
    main()
