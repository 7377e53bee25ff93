"""Retries: which errors, how long, how fast, and what is reported."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from chunksink.sinks.capabilities import (
    ChangedSettings,
    SupportsPrepare,
    SupportsPublicName,
    SupportsReader,
    SupportsScrub,
    SupportsSettings,
    capability,
)
from chunksink.sinks.conformance.samples import DIMENSIONS, family, hashes_in, hashes_of, marker
from chunksink.sinks.contract import Build, Marker, Stored
from chunksink.sinks.errors import NotConfirmed, Refused, SinkError, Transient, Unreachable
from chunksink.sinks.retry import Fault, RetryPolicy, with_retries
from tests.support.memory_sink import MemoryBuild, MemorySink

CALLS: list[tuple[str, Callable[[Any, Any], object]]] = [
    ("create", lambda sink, build: sink.create(marker(), DIMENSIONS)),
    ("open", lambda sink, build: sink.open(build.marker().build_id)),
    ("builds", lambda sink, build: sink.builds()),
    ("flip", lambda sink, build: sink.flip(None, build.marker().build_id)),
    ("drop", lambda sink, build: sink.drop("nobody")),
    ("sign", lambda sink, build: build.sign(marker())),
    ("marker", lambda sink, build: build.marker()),
    ("count", lambda sink, build: build.count()),
    ("replace", lambda sink, build: build.replace([family("a", ["x"])])),
    ("delete", lambda sink, build: build.delete(["0" * 64])),
    ("flush", lambda sink, build: build.flush()),
    ("scan", lambda sink, build: list(build.scan())),
]


class Failing:
    """A memory sink or build whose calls first fail with these errors. Counts the calls."""

    def __init__(self, inner: Any, errors: dict[str, list[BaseException]], made: dict[str, int]) -> None:
        self._inner = inner
        self._errors = errors
        self.made = made

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name in ("name", "wants_vectors", "reader"):
            return value

        def call(*arguments: Any, **named: Any) -> Any:
            self.made[name] = self.made.get(name, 0) + 1
            if self._errors.get(name):
                raise self._errors[name].pop(0)
            answer = value(*arguments, **named)
            return Failing(answer, self._errors, self.made) if name in ("create", "open") else answer

        return call


class Case:
    """A retrying sink on a failing one, with a clock that only sleeping moves."""

    def __init__(self, patience: RetryPolicy | None = None, sink: Any = None) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self.faults: list[Fault] = []
        self.errors: dict[str, list[BaseException]] = {}
        self.made: dict[str, int] = {}
        inner: Any = Failing(sink or MemorySink(), self.errors, self.made)
        self.sink = with_retries(
            inner, patience or RetryPolicy(), on_fault=self.faults.append, sleep=self.sleep, clock=lambda: self.now
        )
        self.signed = marker()
        self.build = self.sink.create(self.signed, DIMENSIONS)
        self.made.clear()

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept.append(seconds)
        self.now += seconds


# --- bugs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_an_untranslated_error_names_the_sink_and_the_call(name: str, call: Callable[[Any, Any], object]) -> None:
    case = Case()
    case.errors[name] = [ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError) as failed:
        call(case.sink, case.build)
    (note,) = failed.value.__notes__
    assert "memory" in note and name in note
    case.errors[name] = [Refused("no")]
    with pytest.raises(Refused) as refused:
        call(case.sink, case.build)
    assert not hasattr(refused.value, "__notes__")


# --- attempts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_every_call_is_retried_and_every_fault_reported(name: str, call: Callable[[Any, Any], object]) -> None:
    case = Case()
    build = case.build
    case.errors[name] = [Unreachable("no one"), NotConfirmed("not yet")]
    call(case.sink, build)
    assert case.made[name] == 3
    assert case.faults == [
        Fault("memory", name, "Unreachable: no one", 1),
        Fault("memory", name, "NotConfirmed: not yet", 2),
    ]
    assert len(case.slept) == 2


@pytest.mark.parametrize("error", [Refused("no"), SinkError("?"), OSError("disk"), KeyboardInterrupt()])
def test_other_errors_are_not_retried(error: BaseException) -> None:
    case = Case()
    before = str(error)
    case.errors["flush"] = [error]
    with pytest.raises(type(error)) as raised:
        case.build.flush()
    assert raised.value is error
    assert (str(error), raised.traceback[-1].name) == (before, "call"), "it keeps its words and where it came from"
    assert (case.made["flush"], case.faults, case.slept) == (1, [], [])


def test_refusal_after_a_fault_ends_the_retries() -> None:
    case = Case()
    case.errors["flush"] = [Transient("busy"), Refused("no")]
    with pytest.raises(Refused, match=r"^no$"):
        case.build.flush()
    assert [fault.attempt for fault in case.faults] == [1]


# --- deadlines ------------------------------------------------------------------------------------------------


def test_waits_grow_are_random_and_bounded() -> None:
    waits: list[list[float]] = []
    for _ in range(20):
        case = Case(RetryPolicy(deadline_seconds=10_000, first_wait_seconds=0.25, longest_wait_seconds=15))
        case.errors["flush"] = [Transient("busy") for _ in range(12)]
        case.build.flush()
        waits.append(case.slept)
    for number, tried in enumerate(zip(*waits, strict=True)):
        most = min(15, 0.5 * 2**number)
        assert all(0.25 <= wait <= most for wait in tried)
        assert len(set(tried)) > 10, "all clients would come back at once"
        assert max(tried) > most / 2, "the waits do not grow"


def test_last_error_is_raised_at_the_deadline() -> None:
    case = Case(RetryPolicy(deadline_seconds=30))
    cause = OSError("connection reset")
    errors: list[BaseException] = [NotConfirmed("not yet") for _ in range(100)]
    for error in errors[3:]:
        error.__cause__ = cause
    case.errors["flush"] = list(errors)
    with pytest.raises(NotConfirmed, match="not yet -- tried flush") as raised:
        case.build.flush()
    tries, taken = case.made["flush"], case.now - 1000
    assert raised.value is errors[tries - 1]
    assert raised.value.__cause__ is cause
    assert 5 < tries < 40
    assert taken == pytest.approx(30), "the last try is made at the deadline, not where the next wait would end"
    assert f"tried flush {tries} times in {taken:.1f} s. Check that memory is up, then run the command again" in str(
        raised.value
    )
    assert [fault.attempt for fault in case.faults] == list(range(1, tries + 1))
    assert {fault.error for fault in case.faults} == {"NotConfirmed: not yet"}


def test_each_call_has_its_own_deadline() -> None:
    case = Case(RetryPolicy(deadline_seconds=5))
    for _ in range(4):
        case.errors["count"] = [Transient("busy")] * 3
        assert case.build.count() == 0
        case.now += 4
    assert case.made["count"] == 16


# --- scans ----------------------------------------------------------------------------------------------------


class Breaking(MemorySink):
    """A build whose scans fail after these numbers of documents, once each."""

    after: Sequence[int] = ()

    def open(self, build_id: str) -> Any:
        build, breaks = super().open(build_id), list(self.after)

        class Scanning(Failing):
            def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
                stop = breaks.pop(0) if breaks else -1
                for number, stored in enumerate(build.scan(content=content, vectors=vectors)):
                    if number == stop:
                        raise Transient(f"away at {number}")
                    yield stored

        return Scanning(build, {}, {})


def broken_scans(*after: int) -> tuple[Case, Build]:
    sink = Breaking()
    sink.after = after
    case = Case(sink=sink)
    case.build.replace([family("a", ["one", "two", "three"])])
    case.build.flush()
    return case, case.sink.open(case.signed.build_id)


def test_scan_that_returned_nothing_is_restarted() -> None:
    case, build = broken_scans(0, 0)
    assert hashes_in(build) == hashes_of([family("a", ["one", "two", "three"])])
    assert [(fault.call, fault.attempt) for fault in case.faults] == [("scan", 1), ("scan", 2)]


def test_scan_that_breaks_halfway_is_reported_and_left_to_the_caller() -> None:
    case, build = broken_scans(2)
    seen: list[Stored] = []
    with pytest.raises(Transient, match=r"^away at 2$"):
        seen.extend(build.scan())
    assert len({stored.id for stored in seen}) == len(seen) == 2
    assert case.faults == [Fault("memory", "scan", "Transient: away at 2", 1)]
    assert hashes_in(build) == hashes_of([family("a", ["one", "two", "three"])])


# --- speed ----------------------------------------------------------------------------------------------------


def test_documents_are_sent_no_faster_than_allowed() -> None:
    case = Case(RetryPolicy(documents_per_second=10))
    other = case.sink.create(marker(), DIMENSIONS)
    started, sent = case.now, 0
    for number in range(20):
        build = other if number % 3 == 0 else case.build
        build.replace([family(f"{number}", ["x"] * 5), family(f"{number} more", ["y"])])
        assert case.now - started == pytest.approx(sent / 10), "the batches before it have had their time"
        sent += 6
    case.now += 60
    before = len(case.slept)
    case.build.replace([family("late", ["x"])])
    case.build.delete(["0" * 64])
    case.build.flush()
    assert len(case.slept) == before, "nobody waits for time that has passed, nor for anything but documents"
    case.build.replace([family("later", ["x"])])
    assert case.slept[-1] == pytest.approx(0.1), "idle time is not saved up"


def test_retried_call_waits_for_its_rate_once() -> None:
    case = Case(RetryPolicy(documents_per_second=1, first_wait_seconds=0.01, longest_wait_seconds=0.01))
    case.build.replace([family("a", ["x"] * 50)])
    case.errors["replace"] = [Transient("busy"), Transient("busy")]
    case.build.replace([family("b", ["x"])])
    assert case.slept == pytest.approx([50, 0.01, 0.01])


# --- the wrapper ----------------------------------------------------------------------------------------------


class Settable(MemorySink):
    """A sink with settings, and with builds that can be scrubbed."""

    def update_settings(self, build_id: str, dimensions: int | None = None) -> ChangedSettings:
        return ChangedSettings((build_id, str(dimensions)))

    def settings_due(self, build_id: str, dimensions: int | None = None) -> list[str]:
        return ["due", build_id, str(dimensions)]

    def unusable_settings(self, build_id: str | None) -> str:
        return f"unusable {build_id}"

    def create(self, marker: Marker, dimensions: int | None = None) -> "ScrubbedBuild":
        return ScrubbedBuild(super().create(marker, dimensions).content, self.wants_vectors)


class ScrubbedBuild(MemoryBuild):
    def scrub(self) -> None:
        self.close()


def test_capabilities_equal_those_of_the_inner_sink() -> None:
    simple, settable = with_retries(MemorySink()), with_retries(Settable())
    assert capability(simple, SupportsReader) is not None
    assert capability(simple, SupportsPublicName) is not None
    assert capability(simple, SupportsSettings) is None
    assert capability(settable, SupportsSettings) is not None
    assert capability(settable, SupportsPrepare) is None
    assert capability(simple.create(marker()), SupportsScrub) is None
    assert capability(settable.create(marker()), SupportsScrub) is not None
    assert capability(None, SupportsReader) is None


class Partial:
    """A sink with one of several methods."""

    def update_settings(self, build_id: str, dimensions: int | None = None) -> ChangedSettings:
        return ChangedSettings()


def test_capability_requires_all_its_methods() -> None:
    assert capability(Partial(), SupportsSettings) is None


@pytest.mark.parametrize(
    ("name", "kind", "arguments", "answer"),
    [
        ("shown", SupportsPublicName, (), None),
        ("update_settings", SupportsSettings, ("b", 3), ChangedSettings(("b", "3"))),
        ("settings_due", SupportsSettings, ("b", 3), ["due", "b", "3"]),
        ("unusable_settings", SupportsSettings, (None,), "unusable None"),
        ("scrub", SupportsScrub, (), None),
    ],
)
def test_calls_of_capabilities_are_retried(name: str, kind: type, arguments: tuple[Any, ...], answer: Any) -> None:
    case = Case(sink=Settable())
    case.errors[name] = [Transient("not now")] * 2
    able: Any = capability(case.build if kind is SupportsScrub else case.sink, kind)
    assert getattr(able, name)(*arguments) == answer
    assert case.made[name] == 3


def test_closing_does_not_wait() -> None:
    case = Case()
    build, sink = case.build, case.sink
    for close in (build.close, sink.close):
        case.errors["close"] = [Transient("gone already")]
        with pytest.raises(Transient, match=r"^gone already$"):
            close()
    assert (case.slept, case.made["close"]) == ([], 2)
