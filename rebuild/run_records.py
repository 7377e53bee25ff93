"""Records of past runs, read back: one line about each, or all that one has told.

A record without its last line is of a run that was killed, or that is still running: the file alone cannot tell.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from chunksink.chunkbus.runlog import read_run
from chunksink.rebuild.errors import RebuildError

FOLDER = "runs"
UNFINISHED = "killed or still running"
_BLOCK = 2**16
_NO_FACTS = ("event", "run_id", "at", "status", "error")


class UnknownRun(RebuildError):
    """No run of this home has that id, or more than one begins with it."""


@dataclass(frozen=True)
class RunRecord:
    """One run, from the first and the last line of its record."""

    id: str
    command: str
    started_at: str
    status: str
    """How it ended; `UNFINISHED` where it did not."""
    seconds: float | None
    error: str | None
    facts: dict[str, Any]
    """What its last line says besides."""

    @property
    def finished(self) -> bool:
        return self.status != UNFINISHED


def past_runs(home: Path, limit: int | None = None) -> Iterator[RunRecord]:
    """The newest first."""
    for file in _files(home)[:limit]:
        run = _run(file)
        if run is not None:
            yield run


def count_runs(home: Path) -> int:
    return len(_files(home))


def find_run(home: Path, run_id: str) -> Path:
    """The record of a run; the beginning of its id is enough."""
    files = [file for file in _files(home) if file.stem.startswith(run_id)]
    exact = [file for file in files if file.stem == run_id] or files
    if len(exact) == 1:
        return exact[0]
    if not files:
        raise UnknownRun(f"no run below {home / FOLDER} begins with {run_id!r:.100}; `chunksink runs` lists them")
    some = ", ".join(file.stem for file in files[:3])
    raise UnknownRun(f"{len(files):,} runs begin with {run_id}, as {some}. Give more of the id")


def read_events(file: Path) -> Iterator[dict[str, Any]]:
    """What a run told, in order. A line that cannot be read ends it."""
    try:
        yield from read_run(file)
    except ValueError:
        return


def _files(home: Path) -> list[Path]:
    """Ids begin with the time, so their order is the order in time."""
    names = [file for file in (home / FOLDER).glob("*.jsonl") if not file.name.startswith(".")]
    return sorted(names, reverse=True)


def _run(file: Path) -> RunRecord | None:
    """None where nothing of it can be read: it was just made, or is none of ours."""
    first, last = _ends(file)
    if not first:
        return None
    is_finished = last.get("event") == "finished"
    started_at, error = str(first.get("at", "")), last.get("error")
    return RunRecord(
        file.stem,
        str(first.get("command", "")),
        started_at,
        status=str(last.get("status", "")) if is_finished else UNFINISHED,
        seconds=_seconds(started_at, str(last.get("at", ""))) if is_finished else None,
        error=str(error) if is_finished and error else None,
        facts={name: value for name, value in last.items() if name not in _NO_FACTS} if is_finished else {},
    )


def _ends(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first and the last whole line; a record of a large run is not read through for them."""
    with file.open("rb") as opened:
        first = opened.readline()
        size = opened.seek(0, 2)
        tail, start = b"", size
        while start > 0 and tail.rstrip(b"\n").count(b"\n") < 2:
            step = min(_BLOCK, start)
            start -= step
            opened.seek(start)
            tail = opened.read(step) + tail
    whole = tail[: tail.rfind(b"\n") + 1].splitlines()
    return _line(first), _line(whole[-1]) if whole else {}


def _line(data: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _seconds(started_at: str, ended_at: str) -> float | None:
    try:
        return (datetime.fromisoformat(ended_at) - datetime.fromisoformat(started_at)).total_seconds()
    except (ValueError, TypeError):
        return None
