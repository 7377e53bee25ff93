"""Reads the records of past runs, and erases sources from them.

A record without its last line belongs to a run that was killed or is still running.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from chunksink.chunkbus.runlog import read_run
from chunksink.rebuild.errors import UnknownRun

_FOLDER = "runs"
UNFINISHED = "killed or still running"
UPDATES = ("sync", "repair", "rebuild")
"""Commands that update the live index."""
_COMMON = ("event", "run_id", "at", "status", "error")
"""Fields of every last line. The others are the facts of the command."""
_KEPT = ("event", "run_id", "at", "command", "status")
"""Fields that a blanked line keeps."""
_NEVER_NAME_SOURCES = {*_KEPT, "sink", "generation", "code", "severity", "bus"}


@dataclass(frozen=True)
class RunRecord:
    """One run, from the first and the last line of its record."""

    id: str
    command: str
    started_at: str
    status: str
    """How it ended, or `UNFINISHED`."""
    seconds: float | None
    error: str | None
    facts: dict[str, Any]
    """Further fields of its last line."""

    @property
    def finished(self) -> bool:
        return self.status != UNFINISHED

    @property
    def was_stopped(self) -> bool:
        """Whether an error or the user stopped it."""
        return self.status in ("failed", "interrupted")


def past_runs(home: Path, *commands: str) -> Iterator[RunRecord]:
    """The runs of these commands, or of all, newest first. A record that cannot be read is skipped: `doctor` reports
    it."""
    for file in _files(home):
        try:
            is_wanted = not commands or next(read_events(file), {}).get("command") in commands
            run = _run(file) if is_wanted else None
        except OSError:  # such as the record of another user
            continue
        if run is not None:
            yield run


def newest_run(home: Path, *commands: str) -> RunRecord | None:
    """The last run of these commands that ended normally: not stopped, killed or still running."""
    results = (run for run in past_runs(home, *commands) if run.finished and not run.was_stopped)
    return next(results, None)


def last_update(home: Path) -> RunRecord | None:
    """The last sync, repair or rebuild that was not stopped by an error or by Ctrl-C. It may have been killed, or may
    still be running."""
    return next((run for run in past_runs(home, *UPDATES) if not run.was_stopped), None)


def last_bus(home: Path) -> str | None:
    """The place of the chunks from which the index was last updated; None if no record names it."""
    return next((bus for run in past_runs(home, *UPDATES) if (bus := run.facts.get("bus"))), None)


def count_runs(home: Path) -> int:
    return len(_files(home))


def find_run(home: Path, run_id: str) -> Path:
    """The record of a run; the beginning of its id is enough."""
    files = [file for file in _files(home) if file.stem.startswith(run_id)]
    exact = [file for file in files if file.stem == run_id] or files
    if len(exact) == 1:
        return exact[0]
    if not files:
        raise UnknownRun(f"no run in {home / _FOLDER} begins with {run_id!r:.100}; `chunksink runs` lists them")
    examples = ", ".join(file.stem for file in files[:3])
    raise UnknownRun(f"{len(files):,} runs begin with {run_id}, such as {examples}. Use more of the id")


def read_events(file: Path) -> Iterator[dict[str, Any]]:
    """The events of a run, in order, up to a line that cannot be read."""
    with suppress(ValueError):
        yield from (event for event in read_run(file) if isinstance(event, dict))


def _files(home: Path) -> list[Path]:
    """The records, newest first: ids begin with the time."""
    names = [file for file in (home / _FOLDER).glob("*.jsonl") if not file.name.startswith(".")]
    return sorted(names, reverse=True)


def _run(file: Path) -> RunRecord | None:
    """None if no line can be read: the file is new, or not a run record."""
    first: dict[str, Any] = {}
    last: dict[str, Any] = {}
    for event in read_events(file):
        first, last = first or event, event
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
        facts={name: value for name, value in last.items() if name not in _COMMON} if is_finished else {},
    )


def _seconds(started_at: str, ended_at: str) -> float | None:
    try:
        return (datetime.fromisoformat(ended_at) - datetime.fromisoformat(started_at)).total_seconds()
    except (ValueError, TypeError):
        return None


def blank(home: Path, names: Iterable[str]) -> int:
    """Blanks each line with a text that contains one of these names as whole words. Returns how many."""
    as_json = {name: orjson.dumps(name)[1:-1] for name in names}
    blanked = 0
    for file in _files(home):
        data = file.read_bytes()
        present = [re.escape(name) for name, written in as_json.items() if written in data]
        if not present:
            continue
        any_name = re.compile(r"(?<!\w)(?:" + "|".join(present) + r")(?!\w)", re.ASCII)
        with file.open("r+b") as opened:
            start = 0
            for line in data.splitlines(keepends=True):
                if _matches(any_name, line):
                    opened.seek(start)
                    opened.write(_blanked(line))
                    blanked += 1
                start += len(line)
    return blanked


def _matches(any_name: re.Pattern[str], line: bytes) -> bool:
    try:
        return any(any_name.search(text) for text in _texts_in(orjson.loads(line)))
    except ValueError:  # cut off by a kill: it may name the source, and no reader needs it
        return True


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts_in(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if not name.isidentifier():  # such a key is a text, for example why sources were held
                yield name
            if name not in _NEVER_NAME_SOURCES:
                yield from _texts_in(each)


def _blanked(line: bytes) -> bytes:
    """A line of the same length that names no source."""
    end = b"\n" if line.endswith(b"\n") else b""
    try:
        facts = orjson.loads(line)
        kept = orjson.dumps({name: facts[name] for name in _KEPT if name in facts})
    except (ValueError, TypeError):  # cut off by a kill
        kept = b""
    room = len(line) - len(end)
    return (kept if len(kept) <= room else b"").ljust(room) + end
