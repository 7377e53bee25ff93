"""Rebuilds against LangChain and LlamaIndex, and against the slower sink's bare loop.

    python -m bench.rebuild_speed [--cold 600] [--warm 20000] [--rounds 1] [--texts FOLDER]
                                  [--only cold warm bare served]

Cold: the same real model, texts of about 1,050 characters, embedded Chroma; chunksink fills fts besides. Warm: all
vectors are in each one's own cache, nothing is computed, the stores are new. Each is a process of its own, timed from
inside, from reading the chunks to the last document stored (ours: verified and flipped); imports and loading of the
model are told apart. Warm, the others store five fields of a chunk, and in another turn all that it has, as ours does.
They take turns; a ratio is the median of the rounds' ratios.

Bare: a warm rebuild against the bare loop of `bench.sinks_speed` that sends the same documents to Chroma alone; the
goal is 1.18 at most. Served: the same with Meilisearch instead of fts, against bare loops of both, one by
one and at once. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from bench import homes
from bench.chunks import make_bus
from bench.embeddings_speed import even, read
from bench.processes import ours, peer
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.resolve import resolve_model
from chunksink.embeddings.settings import EncoderSettings, open_encoder
from chunksink.embeddings.vectors import vectors_for
from chunksink.rebuild.rebuild import Rebuild
from chunksink.rebuild.state import cache_file
from chunksink.settings.config import MEILI_URL
from chunksink.settings.index_settings import find_settings_file, load_index_settings
from chunksink.sinks.document import Family
from tests.engines.servers import run_meilisearch

WORDS = 150  # about 1,050 characters
PEERS = ("langchain", "llamaindex")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cold", type=int, default=600, help="chunks")
    parser.add_argument("--warm", type=int, default=20_000, help="chunks")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=["cold", "warm", "bare", "served"])
    parser.add_argument("--texts", type=Path, help="folder of Markdown or text files, for the model")
    parser.add_argument("--one", nargs=3, metavar=("WHAT", "BUS", "HOME"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        what, bus, home = asked.one
        print(orjson.dumps(_ONE[what](Path(bus), Path(home))).decode())
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if "cold" in asked.only:
            cold(folder, asked.cold, asked.rounds, asked.texts)
        if {"warm", "bare"} & set(asked.only):
            warm(folder, asked.warm, asked.rounds, asked.only)
        if "served" in asked.only:
            served(folder, asked.warm, asked.rounds)


def cold(folder: Path, size: int, rounds: int, texts: Path | None) -> None:
    some = even(read(texts), size)
    assert len(some[-1]) == len(some[0]), f"{texts or 'the corpus'} has no {size} texts"
    bus = make_bus(folder / "cold-bus", size, texts=some).path
    model = str(resolve_model(network=False).folder)
    candidates: dict[str, Callable[[Path], Any]] = {"chunksink, fts and chroma": lambda place: one("cold", bus, place)}
    for name in PEERS:
        candidates[f"{name}, chroma"] = partial(_peer_cold, name, bus, model)
    table(f"Cold, {size:,} texts of about 1,050 characters", take_turns(folder, candidates, rounds), size)


def warm(folder: Path, size: int, rounds: int, only: Sequence[str]) -> None:
    bus, filled = _cached(folder, size)
    candidates: dict[str, Callable[[Path], Any]] = {}

    def start_from(name: str, place: Path) -> Path:
        shutil.copytree(filled / name, place)
        return place

    candidates["chunksink, fts and chroma"] = lambda place: one("warm", bus, start_from("chunksink", place))
    if "bare" in only:
        candidates["bare loop, chroma"] = lambda place: one("bare", bus, place)
    if "warm" in only:
        for name in PEERS:
            for fields, more in (("five fields", ()), ("all fields", ("--whole",))):
                if peer(name, "fill", bus, filled / name / fields, *more) is not None:
                    candidates[f"{name}, chroma, {fields}"] = partial(
                        _peer_warm, name, bus, start_from, f"{name}/{fields}", more
                    )
    table(f"Warm, {size:,} chunks, all vectors cached", take_turns(folder, candidates, rounds), size)


def served(folder: Path, size: int, rounds: int) -> None:
    bus, filled = _cached(folder, size)

    def call(what: str, place: Path) -> Any:
        if what == "served":
            shutil.copytree(filled / "chunksink", place)
        with run_meilisearch() as server:  # each turn finds an empty one
            return one(what, bus, place, {MEILI_URL: server.url, "MEILI_MASTER_KEY": server.key})

    candidates: dict[str, Callable[[Path], Any]] = {
        "chunksink, meilisearch and chroma": partial(call, "served"),
        "bare loop, meilisearch": partial(call, "bare_served"),
        "bare loop, chroma": partial(call, "bare"),
        "both bare loops at once": partial(call, "bare_both"),
    }
    table(f"Warm, {size:,} chunks, all vectors cached", take_turns(folder, candidates, rounds), size)


def _cached(folder: Path, size: int) -> tuple[Path, Path]:
    """A bus, and a folder that has a home with the vectors of all its texts."""
    bus, filled = folder / "warm-bus", folder / "filled"
    if not filled.exists():
        make_bus(bus, size, partitions=max(1, size // 1000), words=WORDS)
        one("fill", bus, filled / "chunksink")
    return bus, filled


def _peer_cold(name: str, bus: Path, model: str, place: Path) -> Any:
    return peer(name, "cold", bus, place, "--model", model)


def _peer_warm(
    name: str, bus: Path, start_from: Callable[[str, Path], Path], filled: str, more: Sequence[str], place: Path
) -> Any:
    return peer(name, "warm", bus, start_from(filled, place), *more)


def one(what: str, bus: Path, home: Path, environment: Mapping[str, str] | None = None) -> Any:
    return ours("bench.rebuild_speed", "--one", what, bus, home, environment=environment)


def take_turns(folder: Path, candidates: dict[str, Callable[[Path], Any]], rounds: int) -> dict[str, list[Any]]:
    took: dict[str, list[Any]] = {name: [] for name in candidates}
    for number in range(rounds):
        for name, call in candidates.items():
            place = folder / "turn"
            ran = call(place)
            shutil.rmtree(place, ignore_errors=True)
            print(f"round {number + 1} of {rounds}: {name}: {ran and ran.told}", file=sys.stderr)
            if ran is not None:
                took[name].append(ran.told)
    return took


def table(title: str, took: dict[str, list[Any]], size: int) -> None:
    first = next(iter(took.values()))
    print(f"\n{title}, rounds: {len(first)}\n")
    print("| | ready in | rebuilt in | chunks per second | its time against ours |\n|---|---|---|---|---|")
    for name, rounds in took.items():
        if not rounds:
            print(f"| {name} | not installed | | | |")
            continue
        assert all(told["chunks"] == size for told in rounds), rounds
        ready, seconds = (statistics.median(told[key] for told in rounds) for key in ("ready", "seconds"))
        ratio = statistics.median(told["seconds"] / own["seconds"] for own, told in zip(first, rounds, strict=True))
        print(f"| {name} | {ready:.1f} s | {seconds:.1f} s | {size / seconds:,.0f} | {ratio:.2f} |", flush=True)


def rebuilt_cold(bus: Path, home: Path) -> dict[str, Any]:
    # The peers cut texts where the model ends; so here too.
    return _rebuilt(bus, home, lambda: open_encoder(EncoderSettings(long_texts="truncate"), network=False))


def rebuilt_warm(bus: Path, home: Path) -> dict[str, Any]:
    return _rebuilt(bus, home, Never)


def rebuilt_served(bus: Path, home: Path) -> dict[str, Any]:
    return _rebuilt(bus, home, Never, "meilisearch")


class Never(homes.Drawn):
    """Every vector must come from the cache."""

    def encode(self, texts: Sequence[str]) -> Any:
        raise AssertionError(f"{len(texts)} texts had no vector")


def _rebuilt(bus: Path, home: Path, make_encoder: Callable[[], Any], keywords: str = "fts") -> dict[str, Any]:
    started = time.perf_counter()
    home.mkdir(parents=True, exist_ok=True)
    with homes.opened(bus, home, [keywords, "chroma"]) as work, homes.embedder(home, make_encoder()) as embedder:
        chroma: Any = work.sink("chroma")
        chroma.prepare(wait=True)  # ready, as the peers are
        ready = time.perf_counter()
        work.refresh(reread=True)
        done = Rebuild(work, embedder).run().outcome.done
        chunks = work.catalog.counts().chunks
        seconds = time.perf_counter() - ready
    assert set(done.written.values()) == {chunks}, done.written  # what an engine refused took no time
    return {"ready": ready - started, "seconds": seconds, "chunks": chunks}


def fill(bus: Path, home: Path) -> dict[str, Any]:
    """A home that has nothing but its cache."""
    home.mkdir(parents=True)
    documents = (document for family in homes.families(bus) for document in family.documents)
    texts = ((document.text_hash, document.text) for document in documents)
    with VectorCache.open(cache_file(home)) as cache:
        return {"chunks": sum(1 for _ in vectors_for(texts, homes.Drawn(), cache))}


def bare(bus: Path, folder: Path) -> dict[str, Any]:
    from bench.sinks_speed import bare_chroma

    return _bare(bus, lambda families: bare_chroma(folder / "bare", families))


def bare_served(bus: Path, _: Path) -> dict[str, Any]:
    return _bare(bus, _load_meilisearch)


def bare_both(bus: Path, folder: Path) -> dict[str, Any]:
    """What the engines alone take that share the processors."""
    from bench.sinks_speed import bare_chroma

    def load(families: list[Family]) -> float:
        with ThreadPoolExecutor(2) as threads:
            loops = (
                threads.submit(_load_meilisearch, families),
                threads.submit(bare_chroma, folder / "bare", families),
            )
            return max(loop.result() for loop in loops)

    return _bare(bus, load)


def _load_meilisearch(families: list[Family]) -> float:
    from bench.sinks_speed import bare_meilisearch

    settings = load_index_settings(find_settings_file(None))
    return bare_meilisearch(os.environ[MEILI_URL], os.environ["MEILI_MASTER_KEY"], settings)(Path(), families)


def _bare(bus: Path, load: Callable[[list[Family]], float]) -> dict[str, Any]:
    started = time.perf_counter()
    families = list(homes.families(bus))
    ready = time.perf_counter()
    seconds = load(families)
    count = sum(len(family.documents) for family in families)
    return {"ready": ready - started, "seconds": seconds, "chunks": count}


_ONE = {
    "cold": rebuilt_cold,
    "warm": rebuilt_warm,
    "served": rebuilt_served,
    "fill": fill,
    "bare": bare,
    "bare_served": bare_served,
    "bare_both": bare_both,
}

if __name__ == "__main__":
    main()
