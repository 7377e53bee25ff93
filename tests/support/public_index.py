"""A Meilisearch index under a public name, and what other programs find in it."""

from collections.abc import Callable
from pathlib import Path

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.sinks.meilisearch import MeilisearchSink
from tests.engines.servers import MeilisearchServer
from tests.support.home import Engines, Home
from tests.support.local_engines import fts
from tests.support.meilisearch import SETTINGS


def meilisearch_in(
    server: MeilisearchServer, index: str, settings: dict[str, object] = SETTINGS
) -> Callable[[Path], MeilisearchSink]:
    return lambda _home: MeilisearchSink(server.url, server.key, settings=settings, index=index)


def home_with(folder: Path, sink: Callable[[Path], MeilisearchSink], chunks: Path | None = None) -> Home:
    """A home with this index and its own keyword index."""
    engines: Engines = {"fts": fts, "meilisearch": sink}
    return Home(folder / "home", FolderRoot(chunks or folder / "chunks"), *engines.values(), engines=engines)


def server_sink(home: Home) -> MeilisearchSink:
    sink = home.makers[1](home.folder)
    assert isinstance(sink, MeilisearchSink)
    return sink


def texts_in(sink: MeilisearchSink) -> set[str]:
    found = sink._connection.send(f"/indexes/{sink._indexes.public}/documents/fetch", {"limit": 100})
    return {document["text"] for document in found["results"]}


def public_texts(home: Home) -> set[str]:
    sink = server_sink(home)
    found = texts_in(sink)
    sink.close()
    return found


def texts(*sources: list[Record]) -> set[str]:
    return {str(record["text"]) for records in sources for record in records}
