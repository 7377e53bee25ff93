"""A wrapper around a sink: it retries transient errors until a deadline, limits the write rate and reports faults.

    sink = with_retries(ChromaSink(Server(url)), RetryPolicy(documents_per_second=500), on_fault=faults.append)

`Transient` errors are retried with growing random waits. All other errors are raised at once. `sinks.contract` promises
that calls may be repeated, even if only the answer was lost. Readers are not retried: a person who searches prefers an
error to waiting.
"""

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from chunksink.chunkbus.spans import span
from chunksink.sinks.contract import Build, Marker, Sink, Stored
from chunksink.sinks.document import Family
from chunksink.sinks.errors import SinkError, Transient

P = ParamSpec("P")
T = TypeVar("T")

_RETRIED = frozenset(
    (
        *("builds", "flip", "drop", "shown", "update_settings", "settings_due", "unusable_settings"),  # of a sink
        *("marker", "sign", "count", "delete", "flush"),  # of a build
        *("scrub", "search_settings_due", "update_search_settings"),
    )
)
"""The methods that are simply retried. `create`, `open`, `replace` and those that return iterators are below."""


@dataclass(frozen=True)
class RetryPolicy:
    """How long a call is retried, and how fast documents are written."""

    deadline_seconds: float = 120.0
    """The last attempt begins at most this long after the first one. Only the timeout of the engine's client ends a
    running attempt. It should be shorter than this deadline."""
    first_wait_seconds: float = 0.25
    """The minimum wait. The maximum is twice this at first and doubles with every attempt."""
    longest_wait_seconds: float = 15.0
    documents_per_second: float | None = None
    """The maximum average rate over all builds of the sink."""


@dataclass(frozen=True)
class Fault:
    """A `Transient` error of one attempt (counted from 1), whether a later attempt succeeded or not."""

    sink: str
    call: str
    error: str
    attempt: int


@contextmanager
def naming_bugs(sink: str, call: str) -> Iterator[None]:
    """Add the names of the sink and of the call to an exception that the sink should have translated."""
    try:
        yield
    except SinkError:
        raise
    except Exception as error:
        error.add_note(f"The sink {sink} raised it in {call}")
        raise


@dataclass
class _Caller:
    """Makes the calls of a sink and of its builds."""

    sink: str
    policy: RetryPolicy
    on_fault: Callable[[Fault], object]
    sleep: Callable[[float], None]
    clock: Callable[[], float]
    next_batch: float = -math.inf
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, call: str, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        with span(f"{self.sink} {call}"), naming_bugs(self.sink, call):
            return self._repeated(call, partial(function, *arguments, **named))

    def _repeated(self, call: str, function: Callable[[], T]) -> T:
        started, attempt = self.clock(), 0
        while True:
            attempt += 1
            try:
                return function()
            except Transient as error:
                self.report(call, error, attempt)
                spent = self.clock() - started
                remaining = self.policy.deadline_seconds - spent
                if remaining <= 0:
                    times = "once" if attempt == 1 else f"{attempt} times"
                    # The same error object, to keep its type and cause.
                    error.args = (
                        f"{error} -- tried {call} {times} in {spent:.1f} s. Check that {self.sink} is up, then run the "
                        "command again; finished work is kept",
                    )
                    raise
            first, longest = self.policy.first_wait_seconds, self.policy.longest_wait_seconds
            wait = random.uniform(first, max(first, min(longest, 2 * first * 2.0 ** min(attempt - 1, 60))))
            self.sleep(min(wait, remaining))  # the last attempt begins at the deadline

    def report(self, call: str, error: BaseException, attempt: int) -> None:
        self.on_fault(Fault(self.sink, call, f"{type(error).__name__}: {error}", attempt))

    def await_turn(self, documents: int) -> None:
        """Wait until this many more documents are within the rate limit."""
        if self.policy.documents_per_second is None:
            return
        with self.lock:  # builds of one sink are written by several threads
            now = self.clock()
            turn = max(now, self.next_batch)
            self.next_batch = turn + documents / self.policy.documents_per_second
        if turn > now:
            self.sleep(turn - now)


def with_retries(
    sink: Sink,
    policy: RetryPolicy = RetryPolicy(),
    *,
    on_fault: Callable[[Fault], object] = lambda fault: None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Sink:
    """The sink with all its capabilities. `on_fault` is called in the thread of the call, before the next attempt."""
    return cast(Sink, _RetryingSink(sink, _Caller(sink.name, policy, on_fault, sleep, clock)))


class _Retrying:
    """Has all attributes of the wrapped sink or build. Calls of the methods in `_RETRIED` are retried."""

    def __init__(self, wrapped: Any, call: _Caller) -> None:
        self._wrapped = wrapped
        self._call = call

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._wrapped, name)
        return partial(self._call, name, value) if name in _RETRIED else value


class _RetryingSink(_Retrying):
    _wrapped: Sink

    def create(self, marker: Marker, dimensions: int | None = None) -> Build:
        return self._with_retries(self._call("create", self._wrapped.create, marker, dimensions))

    def open(self, build_id: str) -> Build:
        return self._with_retries(self._call("open", self._wrapped.open, build_id))

    def _with_retries(self, build: Build) -> Build:
        return cast(Build, _RetryingBuild(build, self._call))


class _RetryingBuild(_Retrying):
    _wrapped: Build

    def replace(self, families: Sequence[Family]) -> int:
        self._call.await_turn(sum(len(family.documents) for family in families))
        return self._call("replace", self._wrapped.replace, families)

    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        return self._read("of_families", partial(self._wrapped.of_families, parent_ids, content=content))

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        return self._read("scan", partial(self._wrapped.scan, content=content, vectors=vectors))

    def _read(self, call: str, read: Callable[[], Iterator[Stored]]) -> Iterator[Stored]:
        """Only errors before the first document are retried: to continue later, all ids so far would have to be kept.
        A later `Transient` is reported and raised, and the caller reads again from the beginning."""

        def begin() -> tuple[Stored | None, Iterator[Stored]]:
            documents = read()
            return next(documents, None), documents

        first, rest = self._call(call, begin)
        if first is None:
            return
        yield first
        try:
            with naming_bugs(self._call.sink, call):
                yield from rest
        except Transient as error:
            self._call.report(call, error, 1)
            raise
