"""A wrapper around a sink: it retries transient errors until a deadline, limits the write rate and reports faults.

    sink = RetryingSink(ChromaSink(Server(url)), RetryPolicy(documents_per_second=500), on_fault=faults.append)

`Transient` errors are retried with growing random waits. `Refused` and all other errors pass. `sinks.contract` promises
that calls may be repeated, even if only the answer was lost. Readers are not retried: a person who searches prefers an
error to waiting.
"""

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar, cast

from chunksink.chunkbus.spans import span
from chunksink.sinks.capabilities import (
    SupportsPublicName,
    SupportsScrub,
    SupportsSearchSettings,
    SupportsSettings,
    capability,
    required,
)
from chunksink.sinks.contract import Build, Marker, RefusedDocument, Sink, Stored
from chunksink.sinks.document import Family
from chunksink.sinks.errors import Transient

C = TypeVar("C")
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """How long a call is retried, and how fast documents are written."""

    deadline_seconds: float = 120.0
    """No attempt of a call begins later. A running attempt is not interrupted; that is up to the timeout of the
    engine's client, which should be shorter."""
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
        with span(f"{self.sink} {call}"):
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
                        f"{error} -- tried {call} {times} in {spent:.1f} s. Check that {self.sink} is up, then run it "
                        "again; finished work is kept",
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


class RetryingSink:
    """A sink and its capabilities, with retries."""

    def __init__(
        self,
        sink: Sink,
        policy: RetryPolicy = RetryPolicy(),
        *,
        on_fault: Callable[[Fault], object] = lambda fault: None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_fault` is called in the thread of the call, before the next attempt."""
        self.name, self.wants_vectors = sink.name, sink.wants_vectors
        self._sink = sink
        self._call = _Caller(sink.name, policy, on_fault, sleep, clock)

    def capability(self, kind: type[C]) -> C | None:
        """The inner sink's capability. Calls to the engine are retried, except those of readers."""
        inner = capability(self._sink, kind)
        return cast(C, self) if inner is not None and kind in (SupportsPublicName, SupportsSettings) else inner

    def create(self, marker: Marker, dimensions: int | None = None) -> "RetryingBuild":
        return RetryingBuild(self._call("create", self._sink.create, marker, dimensions), self._call)

    def open(self, build_id: str) -> "RetryingBuild":
        return RetryingBuild(self._call("open", self._sink.open, build_id), self._call)

    def builds(self) -> list[str]:
        return self._call("builds", self._sink.builds)

    def flip(self, old: str | None, new: str) -> None:
        self._call("flip", self._sink.flip, old, new)

    def drop(self, build_id: str) -> None:
        self._call("drop", self._sink.drop, build_id)

    def shown(self) -> Marker | None:
        return self._call("shown", required(self._sink, SupportsPublicName).shown)

    def update_settings(self, build_id: str, dimensions: int | None = None) -> list[str]:
        settings = required(self._sink, SupportsSettings)
        return self._call("update_settings", settings.update_settings, build_id, dimensions)

    def settings_due(self, build_id: str, dimensions: int | None = None) -> list[str]:
        settings = required(self._sink, SupportsSettings)
        return self._call("settings_due", settings.settings_due, build_id, dimensions)

    def close(self) -> None:
        self._sink.close()


class RetryingBuild:
    """A build of a retrying sink."""

    def __init__(self, build: Build, call: _Caller) -> None:
        self._build = build
        self._call = call

    def marker(self) -> Marker | None:
        return self._call("marker", self._build.marker)

    def sign(self, marker: Marker) -> None:
        self._call("sign", self._build.sign, marker)

    def count(self) -> int:
        return self._call("count", self._build.count)

    def replace(self, families: Sequence[Family]) -> int:
        self._call.await_turn(sum(len(family.documents) for family in families))
        return self._call("replace", self._build.replace, families)

    def delete(self, parent_ids: Sequence[str]) -> None:
        self._call("delete", self._build.delete, parent_ids)

    def flush(self) -> list[RefusedDocument]:
        return self._call("flush", self._build.flush)

    def capability(self, kind: type[C]) -> C | None:
        inner = capability(self._build, kind)
        return cast(C, self) if inner is not None and kind in (SupportsScrub, SupportsSearchSettings) else inner

    def scrub(self) -> None:
        self._call("scrub", required(self._build, SupportsScrub).scrub)

    def search_settings_due(self) -> list[str]:
        return self._call("search_settings_due", required(self._build, SupportsSearchSettings).search_settings_due)

    def update_search_settings(self) -> list[str]:
        update = required(self._build, SupportsSearchSettings).update_search_settings
        return self._call("update_search_settings", update)

    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        return self._read("of_families", lambda: self._build.of_families(parent_ids, content=content))

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        return self._read("scan", lambda: self._build.scan(content=content, vectors=vectors))

    def _read(self, call: str, read: Callable[[], Iterator[Stored]]) -> Iterator[Stored]:
        """Retries until the first document. A later `Transient` is reported and raised, because continuing would need a
        record of all ids so far. The caller reads again from the beginning."""

        def begin() -> tuple[Stored | None, Iterator[Stored]]:
            documents = read()
            return next(documents, None), documents

        first, rest = self._call(call, begin)
        if first is None:
            return
        yield first
        try:
            yield from rest
        except Transient as error:
            self._call.report(call, error, 1)
            raise

    def close(self) -> None:
        self._build.close()
