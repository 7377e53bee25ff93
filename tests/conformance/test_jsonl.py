"""The sink of plain files."""

from pathlib import Path

import pytest

from sinks.conformance import SinkConformance
from sinks.conformance.writing import Connect
from sinks.jsonl import JsonlSink


class TestJsonl(SinkConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return lambda: JsonlSink(tmp_path / "jsonl")
