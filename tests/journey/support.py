"""Runs the real command line in its own process as a script would: no terminal, both outputs redirected."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.cli import main
from tests.conftest import HEAVY, ROOT
from tests.support.bus import commit
from tests.support.forking import outcome_of


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.out)
        return report


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "chunksink", *arguments]


def environment(**more: str) -> dict[str, str]:
    """The environment of this process without chunksink's settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CHUNKSINK_")}
    return inherited | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)} | more


def chunksink(folder: Path, *arguments: str, **variables: str) -> Ended:
    """Run a command in a folder and check that it prints no traceback and no terminal sequences.

    Outside `make soak`, its process is forked from one that has already imported the libraries.
    """
    return (newly_started if HEAVY else _forked)(folder, *arguments, **variables)


def newly_started(folder: Path, *arguments: str, **variables: str) -> Ended:
    """Like `chunksink`, in a process that imports everything itself."""
    done = subprocess.run(
        command_line(*arguments),
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        timeout=300,
        check=False,
    )
    return _checked(done.returncode, done.stdout.decode(), done.stderr.decode())


def _forked(folder: Path, *arguments: str, **variables: str) -> Ended:
    return _checked(*outcome_of(_command, folder, arguments, environment(**variables)))


def _command(folder: Path, arguments: Sequence[str], variables: Mapping[str, str]) -> None:
    """Runs in the forked process."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["chunksink", *arguments]
    main()


def _checked(code: int, out: str, err: str) -> Ended:
    ended = Ended(code, out, err)
    for printed in (ended.out, ended.err):
        assert "Traceback" not in printed
        assert not [sign for sign in ("\r", "\x1b", "%|") if sign in printed]  # of a progress bar or of colours
    return ended


def modules_of(folder: Path, *commands: Sequence[str]) -> list[str]:
    """The libraries for models that are loaded at the end of these commands."""
    program = (
        f"import sys; from chunksink.command_line.cli import run; assert not any(map(run, {commands!r})); "
        "print(sorted({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment(), capture_output=True, check=True
    )
    loaded: list[str] = ast.literal_eval(done.stdout.decode().splitlines()[-1])
    return loaded


def write(chunks: Path, key: str, *documents: Sequence[Record]) -> None:
    commit(FolderRoot(chunks), key, [record for records in documents for record in records])
