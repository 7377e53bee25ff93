"""The sink of plain files."""

from pathlib import Path

import pytest

from chunksink.sinks.conformance import SinkConformance
from chunksink.sinks.conformance.writing import Connect
from chunksink.sinks.jsonl import JsonlSink


class TestJsonl(SinkConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return lambda: JsonlSink(tmp_path / "jsonl")
