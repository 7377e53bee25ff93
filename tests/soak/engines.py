"""The engines that killed runs write to, and how a reader finds the sources in each."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path

import httpx

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.sinks.chroma import ChromaReader, EmbeddedChromaSink, handle
from chunksink.sinks.contract import Sink
from chunksink.sinks.fts.sink import FILE
from chunksink.sinks.meilisearch import MeilisearchSink
from tests.crash.homes import home_in as home_of_files
from tests.engines.servers import MeilisearchServer
from tests.support.home import Home
from tests.support.local_engines import chroma, fts

SETTINGS = Path(__file__).parents[2] / "meilisearch-settings.json"
_MANY = 1000


def home_in(folder: Path, root: FolderRoot, beside: str, server: MeilisearchServer | None) -> Home:
    """A home of fts and of another engine: both embedded, or the other one a real server with vectors."""
    if beside == "jsonl":
        return home_of_files(folder, root)
    makers: dict[str, Callable[[Path], Sink]] = {"fts": fts}
    if beside == "chroma":
        # Large builds save their vectors from time to time. A kill during that can break them.
        handle.GRAPH |= {"batch_size": 10, "sync_threshold": 10}
        makers[beside] = chroma
    elif server is not None:
        makers[beside] = partial(meilisearch, server)
    return Home(folder, root, *makers.values(), engines=makers)


def meilisearch(server: MeilisearchServer, home: Path) -> Sink:
    settings = json.loads(SETTINGS.read_text(encoding="utf-8"))
    return MeilisearchSink(server.url, server.key, settings=settings, index=public_index(home))


def public_index(home: Path) -> str:
    return f"soak{hashlib.sha256(str(home).encode()).hexdigest()[:10]}"


def drop_builds(home: Home) -> None:
    """Including builds that are not in the home's folder."""
    for maker in home.makers:
        with closing(maker(home.folder)) as sink:
            for build in sink.builds():
                sink.drop(build)


Look = Callable[[str], set[str]]
"""The families that a build holds."""


@contextmanager
def looking(name: str, home: Path, server: MeilisearchServer | None) -> Iterator[Look]:
    """A reader of a sink with this name."""
    looks: dict[str, Callable[[], AbstractContextManager[Look]]] = {
        "fts": lambda: _looking_into_fts(home),
        "chroma": lambda: _looking_into_chroma(home),
    }
    if server is not None:
        looks["meilisearch"] = lambda: _looking_into_meilisearch(home, server)
    with looks[name]() as look:
        yield look


@contextmanager
def _looking_into_fts(home: Path) -> Iterator[Look]:
    def look(build: str) -> set[str]:
        file = home / "fts" / build / FILE
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=60)) as db:
            return {parent for (parent,) in db.execute("select distinct parent_id from documents")}

    yield look


@contextmanager
def _looking_into_chroma(home: Path) -> Iterator[Look]:
    """Reads with `get`: vectors would be shown as they were when the build was opened. It stays open while the same
    folder is live."""
    opened: dict[tuple[str, int], ChromaReader] = {}

    def close() -> None:
        while opened:
            opened.popitem()[1].close()

    def look(build: str) -> set[str]:
        folder = home / "chroma" / build
        this = build, folder.stat().st_ino if folder.exists() else 0
        if this not in opened:
            close()
            opened[this] = EmbeddedChromaSink(folder.parent).reader(build)
        with opened[this]._in_use() as handle, handle.calling() as collection:  # reads behind the interface
            found = collection.get(include=["metadatas"])
        return {str(held["parent_id"]) for held in found["metadatas"] or []}

    try:
        yield look
    finally:
        close()


@contextmanager
def _looking_into_meilisearch(home: Path, server: MeilisearchServer) -> Iterator[Look]:
    """Reads under the public name, as other programs do, regardless of the pointer."""
    key = {"Authorization": f"Bearer {server.key}"}
    with httpx.Client(base_url=server.url, headers=key, timeout=60, trust_env=False) as http:

        def look(_build: str) -> set[str]:
            wanted = {"fields": ["parent_id"], "limit": _MANY}
            answer = http.post(f"/indexes/{public_index(home)}/documents/fetch", json=wanted).raise_for_status().json()
            assert answer["total"] <= _MANY
            return {document["parent_id"] for document in answer["results"]}

        yield look
