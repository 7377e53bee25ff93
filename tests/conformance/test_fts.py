"""The embedded keyword sink."""

from pathlib import Path

import pytest

from chunksink.sinks.conformance import KeywordConformance, SinkConformance
from chunksink.sinks.conformance.writing import Connect
from chunksink.sinks.fts import FtsSink


class TestFts(SinkConformance, KeywordConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return lambda: FtsSink(tmp_path / "fts")
