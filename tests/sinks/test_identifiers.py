"""Identifiers in code and configuration are found whole and by their parts, in every keyword engine."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from chunksink.sinks.capabilities import SupportsReader
from chunksink.sinks.conformance.samples import DIMENSIONS, fill, marker, records, with_vectors
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.postgres import PostgresOptions
from chunksink.sinks.postgres.reader import PostgresReader
from chunksink.sinks.postgres.sink import PostgresSink
from chunksink.sinks.projection import project_family
from tests.engines.servers import MeilisearchServer, PostgresServer
from tests.support.capabilities import required
from tests.support.meilisearch import served

TEXTS = {
    "camel": "Set sortOrder to a field of the table.",
    "header": "The proxy adds X-Request-Id to each call.",
    "variable": "Read DATABASE_URL from the environment.",
    "compound": "Write an email to the database administrator.",
    "language": "Compile it with a C++ compiler.",
    "noise": "Put each request in order, sort mail by id, base the data on a url, and call C.",
}


@pytest.fixture(scope="module", params=("fts", "meilisearch", "postgres"))
def reader(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    meilisearch_server: MeilisearchServer,
    postgres_server: PostgresServer,
) -> Iterator[Any]:
    with ExitStack() as stack:
        sink: Any = FtsSink(tmp_path_factory.mktemp("identifiers"))
        if request.param == "meilisearch":
            sink = stack.enter_context(contextmanager(served)(meilisearch_server)).sink()
        if request.param == "postgres":
            sink = PostgresSink(PostgresOptions(postgres_server.url, schema="identifiers"))
        stack.callback(sink.close)
        build = stack.enter_context(closing(sink.create(marker(), DIMENSIONS)))
        fill(build, [with_vectors(project_family(records(f"{name}.md", [text]))) for name, text in TEXTS.items()])
        yield stack.enter_context(closing(required(sink, SupportsReader).reader(build.marker().build_id)))


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("sortOrder", "camel"),
        ("sort order field", "camel"),
        ("X-Request-Id", "header"),
        ("request id header proxy", "header"),
        ("DATABASE_URL", "variable"),
        ("database url", "variable"),
        ("e-mail administrator", "compound"),
        ("C++", "language"),
    ],
)
def test_identifier_comes_first(reader: Any, query: str, name: str) -> None:
    if query == "sort order field" and isinstance(reader, PostgresReader):
        pytest.skip("PostgreSQL does not find the word that two words form")
    [document] = reader.get([reader.search(query)[0].id])
    assert document.filename == f"{name}.md"


def test_joined_words_find_the_word_typed_apart_and_together(tmp_path: Path) -> None:
    """No document has both spellings."""
    with closing(FtsSink(tmp_path)) as sink, closing(sink.create(marker(), DIMENSIONS)) as build:
        fill(build, [with_vectors(project_family(records("camel.md", [TEXTS["camel"]])))])
        with closing(sink.reader(build.marker().build_id)) as reader:
            assert len(reader.search("sort order")) == len(reader.search("the Sort-Order")) == 1
            assert reader.search('"sort order"') == []
            assert reader.snippets("sort order", [hit.id for hit in reader.search("sort order")])
