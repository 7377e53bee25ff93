"""A public name on the real server, and a sink for it."""

from collections.abc import Iterator

import pytest

from chunksink.sinks.meilisearch import MeilisearchSink
from tests.engines.servers import MeilisearchServer
from tests.support.meilisearch import Server, served


@pytest.fixture
def server(meilisearch_server: MeilisearchServer) -> Iterator[Server]:
    yield from served(meilisearch_server)


@pytest.fixture
def sink(server: Server) -> Iterator[MeilisearchSink]:
    sink = server.sink()
    yield sink
    sink.close()
