"""Bare loops of each engine's own calls: the least time that loading the same documents takes.

    python -m bench.bare_loops BUS FOLDER chroma meilisearch

A bare loop sends what a sink sends, in large batches, and waits until the engine says that it is done. It checks,
removes and records nothing. Documents and vectors are ready beforehand. As a program it runs the named loops at the
same time, and prints the seconds of the slowest.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import numpy as np
import orjson

from bench import corpora
from chunksink.sinks.chroma.handle import GRAPH
from chunksink.sinks.document import Document, Family
from chunksink.sinks.meilisearch.index_settings import find_settings_file, load_index_settings

_EMBEDDED_BATCH, _SERVER_BATCH = 5_000, 2_500


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def meilisearch(families: Sequence[Family]) -> float:
    """Load into the server at MEILI_URL, with vectors and with the settings of the sink."""
    headers = {"Authorization": f"Bearer {os.environ['MEILI_MASTER_KEY']}", "content-type": "application/x-ndjson"}
    http = httpx.Client(base_url=os.environ["MEILI_URL"], headers=headers, timeout=600)
    name = f"bare-{uuid4().hex}"

    def wait() -> None:
        while http.get("/tasks?statuses=enqueued,processing&limit=1").json()["total"]:
            time.sleep(0.05)
        assert http.get(f"/tasks?statuses=failed&indexUids={name}").json()["total"] == 0

    def loop() -> None:
        for documents, vectors in _batches(families, _EMBEDDED_BATCH):
            lines = (
                orjson.dumps(
                    {**document.as_dict(), "_vectors": {"default": {"embeddings": vector, "regenerate": False}}},
                    option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE,
                )
                for document, vector in zip(documents, vectors, strict=True)
            )
            http.post(f"/indexes/{name}/documents", content=b"".join(lines)).raise_for_status()
        wait()

    embedders = {"default": {"source": "userProvided", "dimensions": corpora.DIMENSIONS}}
    settings = {**load_index_settings(find_settings_file(None)), "embedders": embedders}
    with http:
        as_json = {"content-type": "application/json"}
        http.post("/indexes", json={"uid": name, "primaryKey": "id"}, headers=as_json).raise_for_status()
        http.patch(f"/indexes/{name}/settings", json=settings, headers=as_json).raise_for_status()
        wait()
        took = seconds(loop)
        http.delete(f"/indexes/{name}").raise_for_status()
        wait()
    return took


def chroma(families: Sequence[Family], folder: Path) -> float:
    import chromadb

    return _upserts(chromadb.PersistentClient(str(folder)), families, _EMBEDDED_BATCH)


def chroma_server(families: Sequence[Family], url: str) -> float:
    import chromadb

    host, port = url.removeprefix("http://").split(":")
    return _upserts(chromadb.HttpClient(host, int(port)), families, _SERVER_BATCH)


def _upserts(client: Any, families: Sequence[Family], size: int) -> float:
    collection = client.create_collection(f"bare-{uuid4().hex}", configuration={"hnsw": GRAPH}, embedding_function=None)

    def loop() -> None:
        for documents, vectors in _batches(families, size):
            collection.upsert(
                ids=[document.id for document in documents],
                embeddings=vectors,
                metadatas=[_metadata(document) for document in documents],
                documents=[document.text for document in documents],
            )

    took = seconds(loop)
    client.close()
    return took


def _metadata(document: Document) -> dict[str, Any]:
    fields = {name: list(value) if isinstance(value, tuple) else value for name, value in document.as_dict().items()}
    del fields["id"], fields["text"]
    fields.pop("fields", None)
    return fields | {f"fields.{name}": value for name, value in document.fields.items()}  # Chroma stores no objects


def fts(families: Sequence[Family], empty: Path) -> float:
    """Load into a copy of an empty build, with its tables, indexes and triggers."""
    with closing(sqlite3.connect(shutil.copyfile(empty, empty.with_suffix(".bare")), isolation_level=None)) as target:
        columns = [name for _, name, *_ in target.execute("PRAGMA table_info(documents)") if name != "row"]
        insert = f"INSERT INTO documents ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"

        def row_of(document: Document) -> list[Any]:
            fields = {"spaceless": 0, **document.as_dict()}  # all words here have spaces between them
            values = (fields.get(name) for name in columns)
            return [json.dumps(value) if isinstance(value, tuple | list | dict) else value for value in values]

        def loop() -> None:
            for documents, _ in _batches(families, _EMBEDDED_BATCH):
                target.execute("BEGIN IMMEDIATE")
                target.executemany(insert, map(row_of, documents))
                target.execute("COMMIT")

        return seconds(loop)


def jsonl(families: Sequence[Family], folder: Path) -> float:
    """Write a file for each family under another name, sync it to the disk and rename it."""
    folder.mkdir()

    def loop() -> None:
        for family in families:
            aside = folder / f".{family.parent_id}"
            with aside.open("wb") as file:
                for document in family.documents:
                    file.write(orjson.dumps(document.as_dict(), option=orjson.OPT_APPEND_NEWLINE))
                file.flush()
                os.fsync(file.fileno())
            aside.rename(folder / family.parent_id)

    return seconds(loop)


def postgres(families: Sequence[Family], url: str, build: str) -> float:
    """Load by binary COPY into a table with the columns of an empty build, then create its indexes. The server splits
    texts into words."""
    import psycopg
    from pgvector.psycopg import register_vector
    from psycopg.types.json import Jsonb

    words = "to_tsvector('english', coalesce({}, ''))"
    weighted = f"setweight({words.format('title')}, 'A') || setweight({words.format('text')}, 'D')"
    with psycopg.connect(url, autocommit=True) as target:
        register_vector(target)
        run: Callable[[str], psycopg.Cursor[tuple[Any, ...]]] = target.execute
        run("SET maintenance_work_mem = '1GB'")  # as the sink does
        run(f"CREATE TABLE bare (LIKE {build})")
        run("ALTER TABLE bare DROP COLUMN words")
        run(f"ALTER TABLE bare ADD COLUMN words tsvector GENERATED ALWAYS AS ({weighted}) STORED")
        found = run(
            "SELECT attname, atttypid::regtype::text FROM pg_attribute WHERE attrelid = 'bare'::regclass "
            "AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"
        )
        types = dict(found.fetchall())
        indexes = run(
            "SELECT regexp_replace(pg_get_indexdef(indexrelid), 'INDEX .* USING', 'INDEX ON bare USING') "
            f"FROM pg_index WHERE indrelid = '{build}'::regclass"
        ).fetchall()

        def row_of(document: Document, vector: Any) -> list[Any]:
            fields = {**document.as_dict(), "embedding": vector}
            values = (fields.get(name) for name in types)
            return [
                Jsonb(value) if isinstance(value, dict) else list(value) if isinstance(value, tuple) else value
                for value in values
            ]

        def loop() -> None:
            names = ", ".join(f'"{name}"' for name in types)
            for documents, vectors in _batches(families, _EMBEDDED_BATCH):
                with target.cursor() as cursor, cursor.copy(f"COPY bare ({names}) FROM STDIN (FORMAT BINARY)") as copy:
                    copy.set_types(list(types.values()))
                    for row in map(row_of, documents, vectors):
                        copy.write_row(row)
            for (statement,) in indexes:
                run(statement)

        took = seconds(loop)
        run("DROP TABLE bare")
    return took


def _batches(families: Sequence[Family], size: int) -> Iterator[tuple[list[Document], Any]]:
    step = size // corpora.FAMILY
    for start in range(0, len(families), step):
        some = families[start : start + step]
        vectors = np.concatenate([family.vectors for family in some if family.vectors is not None])
        yield [document for family in some for document in family.documents], vectors


def main() -> None:
    bus, folder, *engines = sys.argv[1:]
    families = list(corpora.families(Path(bus)))
    loops = {"chroma": lambda: chroma(families, Path(folder) / "bare"), "meilisearch": lambda: meilisearch(families)}
    with ThreadPoolExecutor(len(engines)) as threads:
        started = [threads.submit(loops[engine]) for engine in engines]
        print(orjson.dumps({"seconds": max(loop.result() for loop in started)}).decode())


if __name__ == "__main__":
    main()
