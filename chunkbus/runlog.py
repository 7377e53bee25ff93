"""Run records: a file of JSON lines for each run, written during the run, so that it survives a crash.

The first line has `event: started`. The last line of a run that was not killed has `event: finished`.
"""

import logging
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import orjson

from chunksink.chunkbus.findings import Finding
from chunksink.chunkbus.spans import annotate, span

KEPT = 1000
"""How many run records to keep; older ones are deleted, except some of `LASTING`."""
LASTING = ("verify", "repair", "rebuild")
"""Commands whose records are kept longer: a sync every few minutes must not push out the last weekly `verify`."""
KEPT_LASTING = 100
_TIME = "%Y%m%dT%H%M%S%fZ"
_SEVERITIES = {"ok": "info", "interrupted": "info", "failed": "error"}
"""The severity for each status of a run; `warning` for others. A finding has its own severity."""
_log = logging.getLogger("chunksink.runs")
_ID = re.compile(r"[0-9]{8}T[0-9]{12}Z-[0-9a-f]{6}")


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def new_run_id(at: datetime | None = None) -> str:
    """Ids sort by time, and are unique even for processes that start at the same moment."""
    return f"{at or datetime.now(UTC):{_TIME}}-{secrets.token_hex(3)}"


def _next_id(folder: Path) -> str:
    """An id that sorts after all existing ones, even if the clock was set back."""
    run_id = new_run_id()
    newest = max((file.stem for file in folder.glob("*.jsonl") if _ID.fullmatch(file.stem)), default="")
    if newest > run_id:
        with suppress(ValueError, OverflowError):  # not one of our ids
            return new_run_id(datetime.strptime(newest[:22], _TIME) + timedelta(microseconds=1))
    return run_id


class RunLog:
    """The record of one run in `<home>/runs/`. Each event is handed to the operating system before the call returns."""

    def __init__(self, home: Path, command: str) -> None:
        folder = home / "runs"
        self._home = home
        self.run_id = _next_id(folder)
        self.path = folder / f"{self.run_id}.jsonl"
        self._command = command
        self._file: BinaryIO | None = None
        self._span = ExitStack()
        self.result: dict[str, Any] = {}
        """The status and the facts passed to `finish`; empty until then."""

    def __enter__(self) -> "RunLog":
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.parent.mkdir(exist_ok=True)
        self.path.touch(0o600, exist_ok=False)
        self._file = self.path.open("ab", buffering=0)
        self.write("started", command=self._command)
        _remove_oldest(self.path)
        self._span.enter_context(span(f"run {self._command}", run_id=self.run_id))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self.result:
            stopped = isinstance(error, KeyboardInterrupt | BrokenPipeError)  # by the user, or by closing its output
            with suppress(OSError):  # the original error is more important
                self.finish("interrupted" if stopped else "failed", error=type(error).__name__)
        if self._file is not None:
            self._file.close()
        self._span.__exit__(kind, error, trace)

    def write(self, event: str, **facts: Any) -> None:
        if self._file is None:
            raise RuntimeError("a RunLog can be written only inside its `with` block")
        line = {"event": event, "run_id": self.run_id, "at": utc_now(), **facts}
        if _log.isEnabledFor(logging.INFO):
            self._announce(event, facts)
        try:
            _write_whole(self._file, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            error.filename = str(self.path)
            raise

    def _announce(self, event: str, facts: Mapping[str, Any]) -> None:
        """Log the event for programs that collect logs; the record has all of its facts."""
        shown = [
            f"{name} {value}"
            for name, value in facts.items()
            if isinstance(value, str | int | float) and name != "command"
        ]
        status = "ok" if event == "started" else facts.get("status", "")
        severity = str(facts.get("severity", _SEVERITIES.get(status, "warning")))
        message = f"{self._command} {event}" + (f": {', '.join(shown)}" if shown else "")
        _log.info("%.1000s", message, extra={"severity": severity, "event": event, "run_id": self.run_id})

    def finding(self, finding: Finding) -> None:
        self.write("finding", **asdict(finding))

    def finish(self, status: str, **facts: Any) -> None:
        self.write("finished", status=status, **facts)
        self.result = {"status": status, **facts}
        annotate(status=status)


def _remove_oldest(opened: Path) -> None:
    """Deletes the oldest records, whose ids sort first. A run that still writes to a deleted record does not notice."""
    lasting = 0
    for file in sorted(opened.parent.glob("*.jsonl"))[:-KEPT][::-1]:
        if lasting < KEPT_LASTING and _command(file) in LASTING:
            lasting += 1
        elif file != opened:
            file.unlink(missing_ok=True)  # another run may have deleted it


def _command(file: Path) -> str | None:
    with suppress(OSError, ValueError):
        for event in read_run(file):
            return str(event.get("command"))
    return None


def _write_whole(file: BinaryIO, line: bytes) -> None:
    """Writes the whole line or, if the disk is full, nothing."""
    start = file.tell()
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        file.truncate(start)
        file.seek(start)
        raise


def read_run(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a run, without an unfinished last line."""
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return  # a run in progress may still be writing this line
            yield orjson.loads(line)
