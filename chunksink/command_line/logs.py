"""`--log-format json`: one JSON object per line on standard error, for programs that collect logs.

With it, notes, errors, progress, the events of runs and the log messages of libraries take the same form. The result of
a command still goes to standard output.
"""

import logging
import threading
from datetime import UTC, datetime

from chunksink.chunkbus.wording import encodable

_OWN = logging.getLogger("chunksink")
_NOTES = logging.getLogger("chunksink.notes")
_handler: logging.Handler | None = None


class _Lines(logging.Formatter):
    """A line without a run id gets that of the last line that had one."""

    _run_id: str | None = None

    def format(self, record: logging.LogRecord) -> str:
        import orjson

        self._run_id = getattr(record, "run_id", self._run_id)
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": getattr(record, "severity", record.levelname.lower()),
            "event": getattr(record, "event", "log"),
            "run_id": self._run_id,
            "message": encodable(record.getMessage()),
        }
        if record.exc_info:
            line["traceback"] = encodable(self.formatException(record.exc_info))
        return orjson.dumps(line).decode()


def use_json() -> None:
    global _handler
    if _handler is None:
        _handler = logging.StreamHandler()
        _handler.setFormatter(_Lines())
        _OWN.setLevel(logging.INFO)
        logging.getLogger().addHandler(_handler)
        logging.captureWarnings(True)
        threading.excepthook = _log_thread


def use_text() -> None:
    global _handler
    if _handler is not None:
        logging.getLogger().removeHandler(_handler)
        logging.captureWarnings(False)
        threading.excepthook = threading.__excepthook__
        _OWN.setLevel(logging.NOTSET)
        _handler = None


def _log_thread(end: "threading.ExceptHookArgs") -> None:
    if end.exc_type is SystemExit:
        return
    message = f"a thread ended with an unknown error, {end.exc_type.__name__}: {end.exc_value}"
    write(message, severity="critical", event="bug", error=end.exc_value)


def is_json() -> bool:
    return _handler is not None


def write(message: str, *, severity: str = "info", event: str = "note", error: BaseException | None = None) -> None:
    """Log a message of a command."""
    _NOTES.info("%s", encodable(message), extra={"severity": severity, "event": event}, exc_info=error)
