"""Retries change nothing about a sink's behaviour, even if every first call fails."""

from typing import Any

import pytest

from chunksink.sinks.conformance import SinkConformance, VectorConformance
from chunksink.sinks.conformance.writing import Connect
from chunksink.sinks.errors import Transient
from chunksink.sinks.retry import with_retries
from tests.support.memory_sink import MemorySink


class TestPatientWithALosingEngine(SinkConformance, VectorConformance):
    """Each call has its effect at once, but the first answer is lost. The second attempt succeeds."""

    @pytest.fixture
    def connect(self) -> Connect:
        sink = Losing(MemorySink())
        return lambda: with_retries(sink, sleep=lambda seconds: None)


class Losing:
    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._lost: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        held = getattr(self._inner, name)
        if not callable(held) or name in ("reader", "close"):
            return held

        def call(*arguments: Any, **named: Any) -> Any:
            self._lost ^= {name}
            lost = name in self._lost
            if lost and name == "flush":  # every report is made once, so the call fails before it
                raise Transient("not now")
            answer = held(*arguments, **named)
            if lost:
                raise Transient("the answer is lost")
            return Losing(answer) if name in ("create", "open") else answer

        return call
