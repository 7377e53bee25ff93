"""A sink around a real one, that does something of its own before or after a named call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sinks.sink import Marker, Sink

Act = Callable[[], object]

SINK_CALLS = ("create", "flip", "drop")
BUILD_CALLS = ("marker", "replace", "flush", "scan")


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
