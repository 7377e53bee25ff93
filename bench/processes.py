"""Whole processes, timed from outside, and the environment of the peers where it is there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

ROOT = Path(__file__).resolve().parent.parent
_SHOWN = 4000  # characters of what one that failed said last
PEERS = ROOT / ".peers" / "bin" / "python"


@dataclass(frozen=True)
class Ran:
    seconds: float
    cpu: float
    peak_mb: float
    """Of the largest process in it, as the system accounts it."""
    told: Any
    """The last line that it printed, if it is JSON."""


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Ran:
    words = [str(word) for word in command]
    started = time.perf_counter()
    with tempfile.TemporaryFile() as said:  # no pipe: nobody reads it meanwhile
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=said, cwd=ROOT, env={**os.environ, **(environment or {})}
        )
        assert process.stdout is not None
        printed = process.stdout.read().strip().splitlines()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.stdout.close()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            last = said.read().decode("utf-8", "replace")[-_SHOWN:]
            raise SystemExit(f"{' '.join(words)} ended with {process.returncode}:\n{last}")
    told = orjson.loads(printed[-1]) if printed and printed[-1].startswith(b"{") else None
    return Ran(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, told)


def ours(module: str, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Ran:
    return run([sys.executable, "-m", module, *arguments], environment)


def peer(*arguments: str | Path) -> Ran | None:
    """None where the peers are not installed: `make peers` does it."""
    return run([PEERS, "-m", "bench.peers", *arguments]) if PEERS.exists() else None
