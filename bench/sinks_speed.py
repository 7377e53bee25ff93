"""How fast sinks load and replace, against the best bare loop of the same engine's calls in the same run.

    python -m bench.sinks_speed [--documents 50000] [--rounds 1] [--only meilisearch chroma chroma-server fts jsonl]

Vectors are ready beforehand. A bare loop sends the same documents to the same engine in batches as large as the engine
likes, waits until it says that it is done, and checks, removes and records nothing. Candidates take turns; a ratio is
the median of the rounds' ratios; the goal is 1.18 at most. Then 500 families of 10 are replaced in the full index, by
Meilisearch in two batches of work at most: one that adds and one that deletes. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import orjson

from chunksink.settings.index_settings import find_settings_file, load_index_settings
from chunksink.sinks.chroma import ChromaSink
from chunksink.sinks.chroma import rows as chroma_rows
from chunksink.sinks.conformance.samples import marker, records
from chunksink.sinks.document import Document, Family
from chunksink.sinks.fts import FtsSink, schema
from chunksink.sinks.fts.build import _UPSERT, _row
from chunksink.sinks.jsonl import JsonlSink
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.projection import project_family
from tests.engines.servers import MeilisearchServer, run_chroma, run_meilisearch

DIMENSIONS = 384
GOAL = 1.18
IN_FAMILY = 10
BATCH = 500  # families between flushes
WORDS = [
    "harbour",
    "tide",
    "keel",
    "anchor",
    "rudder",
    "bilge",
    "lantern",
    "chart",
    "compass",
    "gale",
    "sail",
    "mast",
    "rope",
    "dock",
    "buoy",
    "reef",
    "current",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=["meilisearch", "chroma", "chroma-server", "fts", "jsonl"])
    options = parser.parse_args()
    families = make_families(options.documents // IN_FAMILY)
    changed = make_families(500, version="2")
    settings = load_index_settings(find_settings_file(None))
    print(f"{options.documents:,} documents in {len(families):,} families, rounds: {options.rounds}\n")
    print(
        "| sink | load, documents per second | bare loop "
        f"| time against the bare loop, at most {GOAL} | 500 families replaced in | batches of work for it |"
    )
    print("|---|---|---|---|---|---|")
    with run_meilisearch() as server, run_chroma() as chroma:
        for name, load, bare in (
            (
                "meilisearch",
                partial_sink(lambda _: meilisearch(server, settings), lambda: batches_of(server)),
                bare_meilisearch(server.url, server.key, settings),
            ),
            ("chroma", partial_sink(lambda folder: ChromaSink.embedded(folder)), bare_chroma),
            ("chroma-server", partial_sink(lambda _: ChromaSink.server(chroma.url)), bare_chroma_server(chroma.url)),
            ("fts", partial_sink(FtsSink), bare_fts),
            ("jsonl", partial_sink(JsonlSink), bare_jsonl),
        ):
            if name in options.only:
                measure(name, load, bare, families, changed, options.rounds)
        if {"meilisearch", "chroma"} <= set(options.only):
            side_by_side(server, settings, families)


Load = Callable[[Path, Sequence[Family], Sequence[Family]], tuple[float, float, int | None]]
"""Seconds to load, and to replace; in how many of the server's batches it was replaced, where it has such."""
Bare = Callable[[Path, Sequence[Family]], float]


def measure(
    name: str, load: Load, bare: Bare, families: Sequence[Family], changed: Sequence[Family], rounds: int
) -> None:
    ours, theirs, replaced, work = [], [], [], []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            if number % 2:  # who comes first has the colder machine
                theirs.append(bare(Path(folder) / "bare", families))
            seconds, again, batches = load(Path(folder) / "ours", families, changed)
            ours.append(seconds)
            replaced.append(again)
            work += [] if batches is None else [batches]
            if not number % 2:
                theirs.append(bare(Path(folder) / "bare", families))
        print(f"{name}: round {number + 1} of {rounds}", file=sys.stderr)
    count = sum(len(family.documents) for family in families)
    speed = f"{count / statistics.median(ours):,.0f}"
    other = f"{count / statistics.median(theirs):,.0f}"
    ratio = f"{statistics.median(o / t for o, t in zip(ours, theirs, strict=True)):.2f}"
    most = max(work, default="")
    print(f"| {name} | {speed} | {other} | {ratio} | {statistics.median(replaced):.1f} s | {most} |", flush=True)


def partial_sink(make: Callable[[Path], Any], batches: Callable[[], int] | None = None) -> Load:
    def load(folder: Path, families: Sequence[Family], changed: Sequence[Family]) -> tuple[float, float, int | None]:
        sink = make(folder)
        signed = marker()
        build = sink.create(signed, DIMENSIONS)
        seconds = timed(lambda: fill(build, families))
        assert build.count() == sum(len(family.documents) for family in families)
        before = batches() if batches else 0
        again = timed(lambda: fill(build, changed))
        work = batches() - before if batches else None
        assert build.count() == sum(len(family.documents) for family in families)
        build.close()
        sink.drop(signed.build_id)
        sink.close()
        return seconds, again, work

    return load


def fill(build: Any, families: Sequence[Family]) -> None:
    for start in range(0, len(families), BATCH):
        build.replace(families[start : start + BATCH])
    assert build.flush() == []


def join(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def side_by_side(server: MeilisearchServer, settings: dict[str, Any], families: Sequence[Family]) -> None:
    """Both engines at once: how long, against one after the other?"""
    with tempfile.TemporaryDirectory() as folder:
        sinks: list[Any] = [meilisearch(server, settings), ChromaSink.embedded(Path(folder))]
        builds = [sink.create(marker(), DIMENSIONS) for sink in sinks]
        alone = sum(timed(partial(fill, build, families)) for build in builds)
        builds = [sink.create(marker(), DIMENSIONS) for sink in sinks]
        threads = [threading.Thread(target=fill, args=(build, families)) for build in builds]
        together = timed(partial(join, threads))
        print(f"\nmeilisearch and chroma side by side take {together / alone:.2f} of the time of one after the other")
        for build in builds:
            build.close()


def timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def make_families(count: int, version: str = "1") -> list[Family]:
    generator = np.random.default_rng(int(version))
    vectors = generator.standard_normal((count * IN_FAMILY, DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    families = []
    for number in range(count):
        texts = [" ".join(generator.choice(WORDS, 150)) + f" {number} {index}" for index in range(IN_FAMILY)]
        documents = project_family(records(f"docs/{number // 100}/{number}.md", texts, version=version))
        families.append(Family(documents, vectors[number * IN_FAMILY : (number + 1) * IN_FAMILY]))
    return families


def meilisearch(server: MeilisearchServer, settings: dict[str, Any]) -> MeilisearchSink:
    return MeilisearchSink(server.url, server.key, settings=settings, index=f"b{marker().build_id}")


def batches_of(server: MeilisearchServer) -> int:
    """How many batches of work the server has done."""
    answer = httpx.get(f"{server.url}/batches?limit=1", headers={"Authorization": f"Bearer {server.key}"})
    return int(answer.json()["total"])


def bare_meilisearch(url: str, key: str, settings: dict[str, Any]) -> Bare:
    def load(_: Path, families: Sequence[Family]) -> float:
        http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=600)
        name = f"bare{marker().build_id}"

        def task(answer: httpx.Response) -> int:
            return int(answer.json()["taskUid"])

        def wait(number: int) -> None:
            while (state := http.get(f"/tasks/{number}").json())["status"] in ("enqueued", "processing"):
                time.sleep(0.05)
            assert state["status"] == "succeeded", state

        wait(task(http.post("/indexes", json={"uid": name, "primaryKey": "id"})))
        embedders = {"default": {"source": "userProvided", "dimensions": DIMENSIONS}}
        wait(task(http.patch(f"/indexes/{name}/settings", json={**settings, "embedders": embedders})))

        def loop() -> None:
            sent = []
            for documents, vectors in batches(families, 5000):
                lines = (
                    orjson.dumps(
                        {
                            **document.fields(),
                            "_vectors": {"default": {"embeddings": vector, "regenerate": False}},
                        },
                        option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE,
                    )
                    for document, vector in zip(documents, vectors, strict=True)
                )
                headers = {"content-type": "application/x-ndjson"}
                sent.append(task(http.post(f"/indexes/{name}/documents", content=b"".join(lines), headers=headers)))
            for number in sent:
                wait(number)

        seconds = timed(loop)
        wait(task(http.delete(f"/indexes/{name}")))
        http.close()
        return seconds

    return load


def bare_chroma(folder: Path, families: Sequence[Family]) -> float:
    import chromadb

    with quiet_chroma():
        return bare_upserts(chromadb.PersistentClient(str(folder)), "chunks", families, 5000)


def bare_chroma_server(url: str) -> Bare:
    import chromadb

    def load(_: Path, families: Sequence[Family]) -> float:
        host, port = url.removeprefix("http://").split(":")
        with quiet_chroma():
            return bare_upserts(chromadb.HttpClient(host, int(port)), f"bare-{marker().build_id}", families, 2500)

    return load


def bare_upserts(client: Any, name: str, families: Sequence[Family], size: int) -> float:
    collection = client.create_collection(name, configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)

    def loop() -> None:
        for documents, vectors in batches(families, size):
            collection.upsert(
                ids=[document.id for document in documents],
                embeddings=vectors,
                metadatas=[chroma_rows.metadata(document, ()) for document in documents],
                documents=[document.text for document in documents],
            )

    seconds = timed(loop)
    client.close()
    return seconds


@contextmanager
def quiet_chroma() -> Iterator[None]:
    os.environ["ANONYMIZED_TELEMETRY"] = "False"
    yield


def bare_fts(folder: Path, families: Sequence[Family]) -> float:
    folder.mkdir()
    schema.lay_out(folder / "fts.db")
    connection = schema.connect(folder / "fts.db")

    def loop() -> None:
        for documents, _ in batches(families, 5000):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_UPSERT, map(_row, documents))
            connection.execute("COMMIT")

    seconds = timed(loop)
    connection.close()
    return seconds


def bare_jsonl(folder: Path, families: Sequence[Family]) -> float:
    """A file a family, written aside, brought to the disk and renamed: the calls that the sink makes, and no other."""
    folder.mkdir()

    def loop() -> None:
        for family in families:
            aside = folder / f".{family.parent_id}"
            with aside.open("wb") as file:
                for document in family.documents:
                    file.write(orjson.dumps(document.fields(), option=orjson.OPT_APPEND_NEWLINE))
                file.flush()
                os.fsync(file.fileno())
            aside.rename(folder / family.parent_id)

    return timed(loop)


def batches(families: Sequence[Family], size: int) -> Iterator[tuple[list[Document], Any]]:
    step = size // IN_FAMILY
    for start in range(0, len(families), step):
        some = families[start : start + step]
        vectors = np.concatenate([family.vectors for family in some if family.vectors is not None])
        yield [document for family in some for document in family.documents], vectors


if __name__ == "__main__":
    main()
