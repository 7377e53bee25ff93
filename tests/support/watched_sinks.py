"""Wrappers of real sinks that act before or after a call, or record calls."""

from collections.abc import Callable
from functools import partial
from typing import Any

from chunksink.sinks.contract import Marker, Sink

Act = Callable[[], object]
Wrap = Callable[[Sink], Any]


class WrappedBuild:
    """Forwards every call to a real build."""

    def __init__(self, build: Any) -> None:
        self._build = build

    def __getattr__(self, name: str) -> Any:
        return getattr(self._build, name)


class _WrappedSink:
    """Forwards every call to a real sink, except that its builds are wrapped."""

    def __init__(self, sink: Any, wrap: Callable[[Any], WrappedBuild]) -> None:
        self._sink = sink
        self._wrap = wrap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    def create(self, marker: Marker, dimensions: int | None = None) -> WrappedBuild:
        return self._wrap(self._sink.create(marker, dimensions))

    def open(self, build_id: str) -> WrappedBuild:
        return self._wrap(self._sink.open(build_id))


def with_builds(engine: str, wrap: Callable[[Any], WrappedBuild]) -> Wrap:
    """Wrap the builds of this engine; with "", those of all engines."""
    return lambda sink: _WrappedSink(sink, wrap) if engine in ("", sink.name) else sink


class Moment:
    """The n-th call with this name, and what to do before it or, with `after`, after it."""

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


def raising(error: BaseException) -> Callable[..., None]:
    """An action that raises an error, or ends the run like a kill."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


Around = Callable[[str, Any], Any]
"""Takes an attribute's name and value of a sink or build, and returns its replacement."""


class _AroundBuild(WrappedBuild):
    def __init__(self, build: Any, around: Around) -> None:
        super().__init__(build)
        self._around = around

    def __getattr__(self, name: str) -> Any:
        return self._around(name, getattr(self._build, name))


class _AroundSink(_WrappedSink):
    def __init__(self, sink: Sink, around: Around) -> None:
        super().__init__(sink, lambda build: _AroundBuild(build, around))
        self._around = around

    def __getattr__(self, name: str) -> Any:
        return self._around(name, getattr(self._sink, name))

    def create(self, marker: Marker, dimensions: int | None = None) -> WrappedBuild:
        return self._wrap(self._around("create", self._sink.create)(marker, dimensions))

    def open(self, build_id: str) -> WrappedBuild:
        return self._wrap(self._around("open", self._sink.open)(build_id))


def watching(engine: str, moment: Moment) -> Wrap:
    """Acts at one call of one engine: `Moment("flush", 2, act)` is before the second flush."""
    return lambda sink: _AroundSink(sink, moment.around) if sink.name == engine else sink


class Calls(list[tuple[str, str, frozenset[str]]]):
    """Records calls that change a sink or read it whole: sink, call, families. Use as `wrap=calls`."""

    def __call__(self, sink: Sink) -> Any:
        return _AroundSink(sink, partial(self._around, sink.name))

    def sent(self, sink: str) -> list[str]:
        """The families in each call that sent families to the sink."""
        return sorted(
            family for name, call, families in self if (name, call) == (sink, "replace") for family in families
        )

    def _around(self, sink: str, name: str, call: Any) -> Any:
        if name not in ("create", "drop", "replace", "delete", "sign", "scan"):
            return call

        def noted(*arguments: Any, **named: Any) -> Any:
            about = arguments[0] if name in ("replace", "delete") else ()
            self.append((sink, name, frozenset(getattr(each, "parent_id", each) for each in about)))
            return call(*arguments, **named)

        return noted
