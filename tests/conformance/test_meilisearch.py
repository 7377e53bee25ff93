"""A real Meilisearch server, with vectors and without."""

from __future__ import annotations

import pytest

from chunksink.sinks.conformance import KeywordConformance, SinkConformance
from chunksink.sinks.conformance.writing import Connect
from chunksink.sinks.meilisearch import MeilisearchSink
from tests.engines.servers import MeilisearchServer
from tests.support.meilisearch import SETTINGS


class TestMeilisearch(SinkConformance, KeywordConformance):
    one_hit_a_family = True

    @pytest.fixture
    def connect(self, meilisearch_server: MeilisearchServer) -> Connect:
        server = meilisearch_server
        return lambda: MeilisearchSink(server.url, server.key, settings=SETTINGS, index="conformance")


class TestMeilisearchWithoutVectors(SinkConformance):
    @pytest.fixture
    def connect(self, meilisearch_server: MeilisearchServer) -> Connect:
        server = meilisearch_server
        return lambda: MeilisearchSink(server.url, server.key, settings=SETTINGS, index="bare", vectors=False)
