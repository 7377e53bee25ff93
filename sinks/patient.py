"""Patience for any sink: what may pass is tried again until a deadline, writing can be slowed, and faults are told.

    sink = PatientSink(ChromaSink.server(url), Patience(documents_per_second=500), on_fault=faults.append)

`Transient` errors are retried, with waits that grow and are random; `Refused` never: it is an answer. Anything else is
a bug and passes. That a call may be repeated is the promise of `sinks.sink`, also where it was done and only its
answer was lost. Readers are handed through as they are: whoever searches would rather hear an error than wait.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from chunksink.sinks.document import Family
from chunksink.sinks.errors import Transient
from chunksink.sinks.sink import Build, Marker, RefusedDocument, Sink, Stored

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """How long a call may be tried, and how fast documents may go in."""

    deadline_seconds: float = 120.0
    """For one call with all its tries: none begins later. One that is under way is not broken off: that is for the
    timeout of the engine's client, which should be the shorter one."""
    first_wait_seconds: float = 0.25
    """The least wait. The longest one possible is twice this at first, and doubles with every try."""
    longest_wait_seconds: float = 15.0
    documents_per_second: float | None = None
    """The most on average, over all builds of the sink: a batch goes when those before it have had their time."""

    def __post_init__(self) -> None:
        if self.documents_per_second is not None and not self.documents_per_second > 0:
            raise ValueError(f"{self.documents_per_second} documents per second would never end: None is no limit")


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
    patience: Patience
    on_fault: Callable[[Fault], object]
    sleep: Callable[[float], None]
    clock: Callable[[], float]
    next_batch: float = -math.inf
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, call: str, function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        started = self.clock()
        first, longest = self.patience.first_wait_seconds, self.patience.longest_wait_seconds
        growing = wait_random_exponential(multiplier=2 * first, min=first, max=longest)

        def left() -> float:
            return self.patience.deadline_seconds - (self.clock() - started)

        def wait(state: RetryCallState) -> float:
            return min(growing(state), max(left(), 0.0))  # the last try begins at the deadline

        def tell(state: RetryCallState) -> None:
            self.tell(call, _error(state), state.attempt_number)

        def give_up(state: RetryCallState) -> NoReturn:
            error, often = _error(state), "once" if state.attempt_number == 1 else f"{state.attempt_number} times"
            # The same error, for its type and its cause say more than any that we could make of it.
            error.args = (
                f"{error} -- {call} was tried {often} in {self.clock() - started:.1f} s: see that {self.sink} "
                "is up, then run again; what was done stays done",
            )
            try:
                raise error
            finally:
                del error  # of this frame, which it holds

        begun: list[RetryCallState] = []
        retrying = Retrying(
            retry=retry_if_exception_type(Transient),
            wait=wait,
            stop=lambda _state: left() <= 0,
            sleep=self.sleep,
            before=begun.append,
            after=tell,
            retry_error_callback=give_up,
        )
        try:
            return retrying(function, *arguments, **named)
        finally:
            # An outcome that is an error holds the frames that hold it, and with them what the caller lets go of.
            for state in begun:
                state.outcome = None

    def tell(self, call: str, error: BaseException, attempt: int) -> None:
        self.on_fault(Fault(self.sink, call, f"{type(error).__name__}: {error}", attempt))

    def await_turn(self, documents: int) -> None:
        """Return when this many more documents are within the limit."""
        if self.patience.documents_per_second is None:
            return
        with self.lock:  # builds of one sink are written by several threads
            now = self.clock()
            turn = max(now, self.next_batch)
            self.next_batch = turn + documents / self.patience.documents_per_second
        if turn > now:
            self.sleep(turn - now)


def _error(state: RetryCallState) -> BaseException:
    return cast(BaseException, state.outcome and state.outcome.exception())


class PatientSink:
    """Another sink, with patience."""

    def __init__(
        self,
        sink: Sink,
        patience: Patience = Patience(),
        *,
        on_fault: Callable[[Fault], object] = lambda fault: None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_fault` is called in the thread that made the call, before it is tried again."""
        self.name, self.wants_vectors = sink.name, sink.wants_vectors
        self._sink = sink
        self._call = _Caller(sink.name, patience, on_fault, sleep, clock)

    @property
    def reader(self) -> Any:
        """The inner sink's own; where it has none, this has none."""
        return cast(Any, self._sink).reader

    @property
    def prepare(self) -> Any:
        """The inner sink's own; it asks nothing of the engine."""
        return cast(Any, self._sink).prepare

    @property
    def shown(self) -> Any:
        """The inner sink's own, with patience; where it has no public name, this has none."""
        return partial(self._call, "shown", cast(Any, self._sink).shown)

    @property
    def update_settings(self) -> Any:
        """Likewise, of builds without settings."""
        return partial(self._call, "update_settings", cast(Any, self._sink).update_settings)

    @property
    def settings_due(self) -> Any:
        """Likewise."""
        return partial(self._call, "settings_due", cast(Any, self._sink).settings_due)

    def create(self, marker: Marker, dimensions: int | None = None) -> "PatientBuild":
        return PatientBuild(self._call("create", self._sink.create, marker, dimensions), self._call)

    def open(self, build_id: str) -> "PatientBuild":
        return PatientBuild(self._call("open", self._sink.open, build_id), self._call)

    def builds(self) -> list[str]:
        return self._call("builds", self._sink.builds)

    def flip(self, old: str | None, new: str) -> None:
        self._call("flip", self._sink.flip, old, new)

    def drop(self, build_id: str) -> None:
        self._call("drop", self._sink.drop, build_id)

    def close(self) -> None:
        self._sink.close()


class PatientBuild:
    """A build of a patient sink."""

    def __init__(self, build: Build, call: _Caller) -> None:
        self._build = build
        self._call = call

    def marker(self) -> Marker | None:
        return self._call("marker", self._build.marker)

    def sign(self, marker: Marker) -> None:
        self._call("sign", self._build.sign, marker)

    def count(self) -> int:
        return self._call("count", self._build.count)

    def replace(self, families: Sequence[Family]) -> None:
        self._call.await_turn(sum(len(family.documents) for family in families))
        self._call("replace", self._build.replace, families)

    def delete(self, parent_ids: Sequence[str]) -> None:
        self._call("delete", self._build.delete, parent_ids)

    def flush(self) -> list[RefusedDocument]:
        return self._call("flush", self._build.flush)

    @property
    def scrub(self) -> Any:
        """The inner build's own, with patience; where it leaves nothing behind, this has none."""
        return partial(self._call, "scrub", cast(Any, self._build).scrub)

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        """Tried again until its first document is there. A `Transient` in the middle is told and raised: to go on,
        we would have to remember every id that was given. Whoever reads then begins anew."""

        def begin() -> tuple[Stored | None, Iterator[Stored]]:
            found = self._build.scan(content=content, vectors=vectors)
            return next(found, None), found

        first, rest = self._call("scan", begin)
        if first is None:
            return
        yield first
        try:
            yield from rest
        except Transient as error:
            self._call.tell("scan", error, 1)
            raise

    def close(self) -> None:
        self._build.close()
