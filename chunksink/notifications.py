"""Runs the commands that the configuration names for failed runs (`on_failure`) and for drift (`on_drift`)."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Any

from chunksink.chunkbus.runlog import RunLog
from chunksink.chunkbus.wording import encodable
from chunksink.rebuild.freshness import NO_FAILURES
from chunksink.settings.config import Config

COMMANDS = ("ingest", "sync", "repair", "rebuild", "verify")
_SHOWN_CHARACTERS = 300
_log = logging.getLogger("chunksink.notifications")


@dataclass
class Watched:
    """A run under way. `log` is set as soon as it has a record."""

    log: RunLog | None = None


@contextmanager
def notifying(config: Config, command: str) -> Iterator[Watched]:
    """Run `on_failure` after a failed run, and `on_drift` after a `verify` that found drift. Errors in
    `NO_FAILURES`, such as HomeLocked, do not count as failures. The commands start after the run has released its
    locks. Their problems are logged as warnings."""
    run = Watched()
    try:
        yield run
    except Exception as error:
        if (name := type(error).__name__) not in NO_FAILURES:
            _notify(config, "on_failure", command, run, status="failed", error=name, message=encodable(str(error)))
        raise
    status = run.log.result.get("status") if run.log is not None else None
    if status == "failed":
        _notify(config, "on_failure", command, run)
    elif status == "drift":
        _notify(config, "on_drift", command, run)


def _notify(config: Config, setting: str, command: str, run: Watched, **problem: str) -> None:
    import orjson

    arguments: Sequence[str] | None = getattr(config, setting)
    if arguments is None or command not in COMMANDS:
        return
    log, report = run.log, dict[str, Any](command=command, home=encodable(str(config.home_path.absolute())))
    report |= {"run_id": None} if log is None else {"run_id": log.run_id, **log.result}
    try:
        wrong = _run(arguments, orjson.dumps(report | problem), config.notify_timeout)
    except OSError as error:
        wrong = f"cannot be started: {error.strerror or error}"
    if wrong:
        _log.warning("warning: the %s command %s %s", setting, arguments[0], wrong)


def _run(arguments: Sequence[str], report: bytes, timeout: float) -> str:
    """Run a command with the report on its standard input. Returns what went wrong, or "". OSError if it cannot be
    started."""
    with _memory_file() as errors:  # not a pipe: a process that the command leaves running would keep it open
        process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
        try:
            process.communicate(report, timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            return f"did not end within {timeout:g} s and was killed"
        except BaseException:  # Ctrl-C
            _kill(process)
            raise
        if process.returncode == 0:
            return ""
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
        return f"ended with exit code {process.returncode}" + (f": {lines[-1]:.{_SHOWN_CHARACTERS}}" if lines else "")


def _memory_file() -> IO[bytes]:
    """A file in memory where the system offers it: a full disk must not prevent the notification about it."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("notification"), "w+b")
    return TemporaryFile()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
