"""Chroma in this process, and a real Chroma server."""

from pathlib import Path

import pytest

from chunksink.sinks.chroma import ChromaSink
from chunksink.sinks.conformance import SinkConformance, VectorConformance
from chunksink.sinks.conformance.writing import Connect
from tests.conftest import HEAVY
from tests.engines.servers import ChromaServer


class TestChromaEmbedded(SinkConformance, VectorConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return lambda: ChromaSink.embedded(tmp_path / "chroma")


@pytest.mark.skipif(not HEAVY, reason="a process for each test; test_worker has the essence; CHUNKSINK_SOAK_HEAVY")
class TestChromaBeside(SinkConformance):
    """Each build is filled by a process of its own."""

    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        def prepared() -> ChromaSink:
            sink = ChromaSink.embedded(tmp_path / "chroma")
            sink.prepare()
            return sink

        return prepared


class TestChromaServer(SinkConformance, VectorConformance):
    @pytest.fixture
    def connect(self, chroma_server: ChromaServer) -> Connect:
        return lambda: ChromaSink.server(chroma_server.url, prefix="conformance")
