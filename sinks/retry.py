"""A sink around another one: transient errors are retried until a deadline, writing can be slowed, faults reported.

    sink = RetryingSink(ChromaSink(Server(url)), RetryPolicy(documents_per_second=500), on_fault=faults.append)

`Transient` errors are retried, with waits that grow and are random; `Refused` never: it is an answer. Anything else is
a bug and passes. That a call may be repeated is the promise of `sinks.contract`, also where it was done and only its
answer was lost. Readers are not retried: a person who searches would rather see an error than wait.
"""

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar, cast

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
    """How long a call may be tried, and how fast documents may go in."""

    deadline_seconds: float = 120.0
    """For one call with all its tries: none begins later. One that is under way is not broken off: that is for the
    timeout of the engine's client, which should be the shorter one."""
    first_wait_seconds: float = 0.25
    """The least wait. The longest one possible is twice this at first, and doubles with every try."""
    longest_wait_seconds: float = 15.0
    documents_per_second: float | None = None
    """The most on average, over all builds of the sink: a batch goes when those before it have had their time."""


@dataclass(frozen=True)
class Fault:
    """A `Transient` error, mended since or not: which try of which call it was, from 1."""

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
        started, attempt = self.clock(), 0
        while True:
            attempt += 1
            try:
                return function(*arguments, **named)
            except Transient as error:
                self.report(call, error, attempt)
                spent = self.clock() - started
                left = self.policy.deadline_seconds - spent
                if left <= 0:
                    often = "once" if attempt == 1 else f"{attempt} times"
                    # The same error, for its type and its cause say more than any that we could make of it.
                    error.args = (
                        f"{error} -- {call} was tried {often} in {spent:.1f} s: see that {self.sink} is up, then run "
                        "again; what was done stays done",
                    )
                    raise
            self.sleep(min(self._wait(attempt), left))  # the last try begins at the deadline

    def _wait(self, attempt: int) -> float:
        first, longest = self.policy.first_wait_seconds, self.policy.longest_wait_seconds
        return random.uniform(first, max(first, min(longest, 2 * first * 2.0 ** min(attempt - 1, 60))))

    def report(self, call: str, error: BaseException, attempt: int) -> None:
        self.on_fault(Fault(self.sink, call, f"{type(error).__name__}: {error}", attempt))

    def await_turn(self, documents: int) -> None:
        """Return when this many more documents are within the limit."""
        if self.policy.documents_per_second is None:
            return
        with self.lock:  # builds of one sink are written by several threads
            now = self.clock()
            turn = max(now, self.next_batch)
            self.next_batch = turn + documents / self.policy.documents_per_second
        if turn > now:
            self.sleep(turn - now)


class RetryingSink:
    """Another sink with its capabilities, whose calls are retried."""

    def __init__(
        self,
        sink: Sink,
        policy: RetryPolicy = RetryPolicy(),
        *,
        on_fault: Callable[[Fault], object] = lambda fault: None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_fault` is called in the thread that made the call, before it is tried again."""
        self.name, self.wants_vectors = sink.name, sink.wants_vectors
        self._sink = sink
        self._call = _Caller(sink.name, policy, on_fault, sleep, clock)

    def capability(self, kind: type[C]) -> C | None:
        """The inner sink's; retried where it asks the engine, and nobody waits for the answer."""
        found = capability(self._sink, kind)
        return cast(C, self) if found is not None and kind in (SupportsPublicName, SupportsSettings) else found

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
        found = capability(self._build, kind)
        return cast(C, self) if found is not None and kind in (SupportsScrub, SupportsSearchSettings) else found

    def scrub(self) -> None:
        self._call("scrub", required(self._build, SupportsScrub).scrub)

    def search_settings_due(self) -> list[str]:
        return self._call("search_settings_due", required(self._build, SupportsSearchSettings).search_settings_due)

    def update_search_settings(self) -> list[str]:
        update = required(self._build, SupportsSearchSettings).update_search_settings
        return self._call("update_search_settings", update)

    def held(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        return self._read("held", lambda: self._build.held(parent_ids, content=content))

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        return self._read("scan", lambda: self._build.scan(content=content, vectors=vectors))

    def _read(self, call: str, look: Callable[[], Iterator[Stored]]) -> Iterator[Stored]:
        """Tried again until the first document is there. A `Transient` in the middle is reported and raised: to
        continue, every id so far would have to be remembered. The caller reads again from the beginning."""

        def begin() -> tuple[Stored | None, Iterator[Stored]]:
            found = look()
            return next(found, None), found

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
