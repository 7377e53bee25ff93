"""An oversized document is indexed, shortened or left out. Its neighbours are always indexed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.sinks import chroma as chroma_sink
from chunksink.sinks.contract import Sink
from chunksink.sinks.values import MAX_MEMBERS
from tests.conftest import HEAVY
from tests.engines.servers import ChromaServer, MeilisearchServer
from tests.support.bus import commit, projected, source
from tests.support.home import Home
from tests.support.local_engines import chroma, fts, jsonl
from tests.support.meilisearch import Server, served

pytestmark = pytest.mark.promise(7)


def members(number: int) -> list[str]:
    return [f"member {place}" for place in range(number)]


LARGE: dict[str, dict[str, Any]] = {
    "as many as are read": {name: members(MAX_MEMBERS) for name in ("tags", "authors", "headings")},
    "6,000 tags": {"tags": members(6_000)},
    "15,025 authors": {"authors": members(15_025)},
    "15,025 headings": {"headings": members(15_025)},
    "all lists": {name: members(40_000) for name in ("tags", "authors", "headings")},
    "a title of a megabyte": {"title": "long " * 200_000},
    "a source of 100 kB": {"path": "folder/" * 15_000 + "file.md"},
    "deep metadata": {"metadata": {"deep": [[[[[["x"] * 9] * 9] * 9] * 9] * 9]}},
}
NEIGHBOUR = source("docs/neighbour.md", "a neighbour")


@pytest.fixture
def meilisearch(meilisearch_server: MeilisearchServer) -> Iterator[Server]:
    yield from served(meilisearch_server)


def test_large_document_in_embedded_engines_harms_no_other(tmp_path: Path) -> None:
    add_large_documents(tmp_path, fts, jsonl, chroma)


@pytest.mark.skipif(not HEAVY, reason="a megabyte of text is indexed by servers; CHUNKSINK_SOAK_HEAVY")
def test_large_document_on_servers_harms_no_other(
    chroma_server: ChromaServer, meilisearch: Server, tmp_path: Path
) -> None:
    def on_chroma(_home: Path) -> Sink:
        return chroma_sink.ChromaSink(chroma_sink.Server(chroma_server.url, prefix="large"))

    add_large_documents(tmp_path, on_chroma, lambda _home: meilisearch.sink())


def add_large_documents(folder: Path, *makers: Callable[[Path], Sink]) -> None:
    home = Home(folder / "home", FolderRoot(folder / "chunks"), *makers)
    commit(home.root, "p", NEIGHBOUR)
    home.rebuild()
    sources = [source("docs/long.md", "word " * 200_000)]
    sources += [source(f"docs/{name}.md", f"text of {name}", **fields) for name, fields in LARGE.items()]
    commit(home.root, "large", [record for records in sources for record in records])
    home.sync()
    assert home.verify(deep=True).ok
    wanted = {document.id for document in projected(NEIGHBOUR, *sources)}
    for name, held in home.contents().items():
        assert {document.id for document in held} == wanted - set(home.refused()[name])
        assert projected(NEIGHBOUR)[0] in held
