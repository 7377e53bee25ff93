"""The reference passes its own suite, with vectors and without."""

import pytest

from chunksink.sinks.conformance import SinkConformance, VectorConformance
from chunksink.sinks.conformance.writing import Connect
from chunksink.sinks.memory import MemorySink


class TestMemory(SinkConformance, VectorConformance):
    @pytest.fixture
    def connect(self) -> Connect:
        sink = MemorySink()
        return lambda: sink


class TestMemoryWithoutVectors(SinkConformance):
    @pytest.fixture
    def connect(self) -> Connect:
        sink = MemorySink(wants_vectors=False)
        return lambda: sink
