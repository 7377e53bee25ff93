"""The suite on every sink, with the real engines. The reference sink passes it, too."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chunksink.sinks.chroma import ChromaSink, EmbeddedChromaSink, Server
from chunksink.sinks.conformance import KeywordConformance, SinkConformance, VectorConformance
from chunksink.sinks.conformance.reading import FAMILIES, open_reader
from chunksink.sinks.conformance.writing import Connect
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.jsonl import JsonlSink
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.postgres import PostgresOptions
from chunksink.sinks.postgres.sink import PostgresSink
from tests.conftest import HEAVY
from tests.engines.servers import ChromaServer, MeilisearchServer, PostgresServer
from tests.support.meilisearch import SETTINGS
from tests.support.memory_sink import MemorySink

ROUNDS, MANY = (25, 700) if HEAVY else (5, 150)


class OnServer:
    """Outside `make soak`, the tests of its reader share a build."""

    @pytest.fixture(scope="function" if HEAVY else "class")
    @classmethod
    def reader(cls, connect: Connect) -> Iterator[Any]:
        yield from open_reader(connect, FAMILIES)


class TestMemory(SinkConformance, VectorConformance):
    @pytest.fixture
    def connect(self) -> Connect:
        sink = MemorySink()
        return lambda: sink


class TestFts(SinkConformance, KeywordConformance):
    many = MANY

    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return lambda: FtsSink(tmp_path / "fts")


class TestJsonl(SinkConformance):
    many = MANY

    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return lambda: JsonlSink(tmp_path / "jsonl")


class TestChromaEmbedded(SinkConformance, VectorConformance):
    many = MANY

    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return lambda: EmbeddedChromaSink(tmp_path / "chroma")


@pytest.mark.skipif(not HEAVY, reason="a process for each test; test_worker has the essence; CHUNKSINK_SOAK_HEAVY")
class TestChromaBeside(SinkConformance):
    """A separate process fills each build."""

    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        def prepared() -> ChromaSink:
            sink = EmbeddedChromaSink(tmp_path / "chroma")
            sink.prepare()
            return sink

        return prepared


class TestChromaServer(OnServer, SinkConformance, VectorConformance):
    rounds, many = ROUNDS, MANY

    @pytest.fixture(scope="class")
    @classmethod
    def connect(cls, chroma_server: ChromaServer) -> Connect:
        return lambda: ChromaSink(Server(chroma_server.url, prefix="conformance"))


class TestMeilisearch(OnServer, SinkConformance, KeywordConformance):
    one_hit_per_family = True
    rounds, many = ROUNDS, MANY

    @pytest.fixture(scope="class")
    @classmethod
    def connect(cls, meilisearch_server: MeilisearchServer) -> Connect:
        server = meilisearch_server
        return lambda: MeilisearchSink(server.url, server.key, settings=SETTINGS, index="conformance")


@pytest.mark.skipif(not HEAVY, reason="differs from the one above in the vectors alone; CHUNKSINK_SOAK_HEAVY")
class TestMeilisearchWithoutVectors(SinkConformance):
    @pytest.fixture
    def connect(self, meilisearch_server: MeilisearchServer) -> Connect:
        server = meilisearch_server
        return lambda: MeilisearchSink(server.url, server.key, settings=SETTINGS, index="bare", vectors=False)


class TestPostgres(OnServer, SinkConformance, KeywordConformance, VectorConformance):
    rounds, many = ROUNDS, MANY

    @pytest.fixture(scope="class")
    @classmethod
    def connect(cls, postgres_server: PostgresServer) -> Connect:
        options = PostgresOptions(postgres_server.url, schema="conformance")
        return lambda: PostgresSink(options)
