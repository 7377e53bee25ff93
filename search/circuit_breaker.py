"""A circuit breaker around a reader: after one search waited too long for the engine, the next ones fail at once."""

import threading
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any, ParamSpec, TypeVar, cast

from chunksink.sinks.errors import NotConfirmed, SinkError, Transient
from chunksink.sinks.reader import Reader

P = ParamSpec("P")
R = TypeVar("R", bound=Reader)
T = TypeVar("T")

OPEN_SECONDS = 10.0
_LONG_SECONDS = 1.0
"""A `Transient` error opens the breaker if the call took longer than this; a refused connection fails sooner.
`NotConfirmed` always opens it."""


def with_circuit_breaker(reader: R, seconds: float = OPEN_SECONDS) -> R:
    """Wrap a reader. The wrapper has the same capabilities.

    After a call that failed slowly, or was not confirmed, all calls fail at once with the same error. After `seconds`,
    one call tries the engine. If it fails the same way, the breaker stays open; otherwise all calls go through.
    """
    return cast(R, _CircuitBreaker(reader, seconds))


class _CircuitBreaker:
    """Has all attributes of the reader. Calls of its methods, except `close`, go through `_call`."""

    def __init__(self, reader: Reader, seconds: float) -> None:
        self._reader = reader
        self._seconds = seconds
        self._lock = threading.Lock()
        self._failure: SinkError | None = None
        self._until = 0.0
        self._refresh_is_due = False

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._reader, name)
        return partial(self._call, value) if callable(value) else value

    def refresh(self) -> None:
        """Postponed while the breaker is open. Some readers refresh without asking the engine, so a success would close
        the breaker too early."""
        if self._failure is None:
            self._call(self._reader.refresh)
        else:
            self._refresh_is_due = True

    def close(self) -> None:
        self._reader.close()

    def _call(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._raise_if_open()
        began = monotonic()
        try:
            if self._refresh_is_due:
                self._refresh_is_due = False  # before the call: another refresh may be requested during it
                self._refresh()
            answer = call(*args, **kwargs)
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

    def _raise_if_open(self) -> None:
        with self._lock:
            failure, now = self._failure, monotonic()
            if failure is None:
                return
            if now >= self._until:
                self._until = now + self._seconds  # this call tries the engine
                return
        raise type(failure)(*failure.args)


def _has_waited(error: SinkError, seconds: float) -> bool:
    return isinstance(error, NotConfirmed) or (isinstance(error, Transient) and seconds > _LONG_SECONDS)
