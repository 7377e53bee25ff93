"""A circuit breaker around a reader: after its engine kept one search waiting, the next ones do not wait for it."""

import threading
from functools import partial
from time import monotonic
from typing import Any

from chunksink.sinks.errors import NotConfirmed, SinkError, Unreachable

OPEN_SECONDS = 10.0
_LONG_SECONDS = 1.0
"""An address where nobody is refuses sooner; one that swallows what is sent does not."""


class CircuitBreaker:
    """Has the calls of another reader. After one that took too long all calls fail at once, as that one did. When the
    time is over one call tries, and the others are let through again when it was answered."""

    def __init__(self, reader: Any, seconds: float = OPEN_SECONDS) -> None:
        self._reader = reader
        self._seconds = seconds
        self._lock = threading.Lock()
        self._failure: SinkError | None = None
        self._until = 0.0
        self._refresh_is_due = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._reader, name)
        return partial(self._call, found) if callable(found) else found

    def refresh(self) -> None:
        """Put off until the engine answers again: some know what was written without being asked."""
        if self._failure is None:
            self._call(self._reader.refresh)
        else:
            self._refresh_is_due = True

    def close(self) -> None:
        self._reader.close()

    def _call(self, call: Any, *given: Any, **named: Any) -> Any:
        self._require_closed()
        began = monotonic()
        try:
            if self._refresh_is_due:
                self._refresh_is_due = False  # before: another one may come meanwhile
                self._refresh()
            answer = call(*given, **named)
        except SinkError as error:
            self._until = monotonic() + self._seconds
            self._failure = error if _has_waited(error, monotonic() - began) else None
            raise
        self._failure = None
        return answer

    def _refresh(self) -> None:
        try:
            self._reader.refresh()
        except BaseException:
            self._refresh_is_due = True
            raise

    def _require_closed(self) -> None:
        with self._lock:
            failure, now = self._failure, monotonic()
            if failure is None:
                return
            if now >= self._until:
                self._until = now + self._seconds  # this one tries
                return
        raise type(failure)(*failure.args)


def _has_waited(error: SinkError, seconds: float) -> bool:
    return isinstance(error, NotConfirmed) or (isinstance(error, Unreachable) and seconds > _LONG_SECONDS)
