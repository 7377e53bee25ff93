"""A sink around a real one, that does something of its own before or after a named call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chunksink.sinks.contract import Marker, Sink
from chunksink.sinks.document import Family

Act = Callable[[], object]


class WatchedSink:
    """Acts at one call of one engine: `Moment("flush", 2)` is before the second flush."""

    def __init__(self, sink: Sink, moment: Moment) -> None:
        self._sink = sink
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        return self._moment.around(name, getattr(self._sink, name))

    def create(self, marker: Marker, dimensions: int | None = None) -> Any:
        create = self._moment.around("create", self._sink.create)
        return _WatchedBuild(create(marker, dimensions), self._moment)

    def open(self, build_id: str) -> Any:
        open_ = self._moment.around("open", self._sink.open)
        return _WatchedBuild(open_(build_id), self._moment)


class _WatchedBuild:
    def __init__(self, build: Any, moment: Moment) -> None:
        self._build = build
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        return self._moment.around(name, getattr(self._build, name))


class Moment:
    """The n-th call of this name, and what is done before it or, `after`, when it has been done."""

    def __init__(self, call: str, number: int, act: Act, *, after: bool = False) -> None:
        self._call = call
        self._left = number
        self._act = act
        self._after = after

    def around(self, name: str, call: Any) -> Any:
        if name != self._call:
            return call

        def watched(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                self._act()
            result = call(*arguments, **named)
            if self._left == 0 and self._after:
                self._act()
            return result

        return watched


def watching(engine: str, moment: Moment) -> Callable[[Sink], Sink]:
    return lambda sink: WatchedSink(sink, moment) if sink.name == engine else sink


class Calls(list[tuple[str, str, frozenset[str]]]):
    """What sinks are told to change, or to read whole: the sink, the call, the families. `wrap=calls` notes it."""

    def __call__(self, sink: Sink) -> Any:
        return _NotedSink(sink, self)

    def note(self, sink: str, call: str, families: Sequence[str] = ()) -> None:
        self.append((sink, call, frozenset(families)))

    def sent(self, sink: str) -> list[str]:
        """The families that the sink was sent, each time that it was."""
        return sorted(
            family for name, call, families in self if (name, call) == (sink, "replace") for family in families
        )


class _NotedSink:
    def __init__(self, sink: Sink, calls: Calls) -> None:
        self._sink = sink
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    def create(self, marker: Marker, dimensions: int | None = None) -> Any:
        self._calls.note(self._sink.name, "create")
        return _NotedBuild(self._sink.create(marker, dimensions), self._sink.name, self._calls)

    def open(self, build_id: str) -> Any:
        return _NotedBuild(self._sink.open(build_id), self._sink.name, self._calls)

    def drop(self, build_id: str) -> None:
        self._calls.note(self._sink.name, "drop")
        self._sink.drop(build_id)


class _NotedBuild:
    def __init__(self, build: Any, sink: str, calls: Calls) -> None:
        self._build = build
        self._sink = sink
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._build, name)

    def replace(self, families: Sequence[Family]) -> None:
        self._calls.note(self._sink, "replace", [family.parent_id for family in families])
        self._build.replace(families)

    def delete(self, parent_ids: Sequence[str]) -> None:
        self._calls.note(self._sink, "delete", parent_ids)
        self._build.delete(parent_ids)

    def sign(self, marker: Marker) -> None:
        self._calls.note(self._sink, "sign")
        self._build.sign(marker)

    def scan(self, **asked: Any) -> Any:
        self._calls.note(self._sink, "scan")
        return self._build.scan(**asked)
