"""How long a search takes, and how much of it is ours.

    python -m bench.search_speed [--chunks 100000] [--queries 300] [--folder FOLDER]

A home with fts and embedded Chroma; queries are words of its own chunks, each asked once: first with a vector that is
there, then with the model computing it (all-MiniLM-L6-v2). What the engines take is timed
around their own calls, in the same run. Prints a Markdown table. FOLDER keeps what is prepared for the next time.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from bench import chunks, homes
from chunksink.chunkbus.layout import BusRoot
from chunksink.embeddings.load import load_encoder
from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.state import State
from chunksink.search.legs import Legs
from chunksink.search.query import search
from chunksink.search.query_vectors import Queries
from chunksink.search.question import Mode, Question
from chunksink.settings.config import Config
from chunksink.views import open_view

_WARM = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        measure(options.folder or Path(made), options.chunks, options.queries)


def measure(folder: Path, size: int, count: int) -> None:
    bus, home = folder / f"bus-{size}", folder / f"home-{size}"
    if not bus.exists():
        chunks.make_bus(bus, size, partitions=max(1, size // 1000))
    if not home.exists():
        homes.build(bus, home, ["fts", "chroma"])
    config = Config(chunks=str(bus), home=str(home))
    encoder = load_encoder(DEFAULT_MODEL)
    drawn = homes.Drawn()
    with closing(Queries()) as queries:
        view = open_view(config, queries)
        asked = _questions(bus, home, count + _WARM)
        print(f"{size:,} chunks, {count} queries of 2 to 6 words, 10 hits each\n")
        print("| what | p50 ms | p95 ms | engines' own, p50 | ours beside the engines, median |")
        print("|---|---|---|---|---|")
        rows: tuple[tuple[str, Mode, Callable[[str], Any]], ...] = (
            ("keyword", "keyword", lambda text: drawn.encode([text])[0]),
            ("semantic, vector there", "semantic", lambda text: drawn.encode([text])[0]),
            ("hybrid, vector there", "hybrid", lambda text: drawn.encode([text])[0]),
            ("hybrid, vector computed", "hybrid", lambda text: encoder.encode_queries([text])[0]),
        )
        for name, mode, encode in rows:
            whole, engines = _timed(view.legs, mode, encode, asked)
            ratio = statistics.median(total / engine - 1 for total, engine in zip(whole, engines, strict=True))
            p50, p95 = statistics.median(whole), statistics.quantiles(whole, n=20)[-1]
            print(f"| {name} | {p50:.1f} | {p95:.1f} | {statistics.median(engines):.1f} | {100 * ratio:.0f} % |")
        view.close()


def _timed(legs: Legs, mode: Mode, encode: Callable[[str], Any], asked: list[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of each search, and of the calls of engines and model in it."""
    assert legs.keyword is not None
    assert legs.semantic is not None
    spent = _Spent()
    timed = replace(
        legs,
        keyword=replace(legs.keyword, reader=spent.reader(legs.keyword.reader)),
        semantic=replace(legs.semantic, reader=spent.reader(legs.semantic.reader), encode=spent.call(encode)),
    )
    whole, engines = [], []
    for number, text in enumerate(asked):
        spent.seconds = 0.0
        started = perf_counter()
        answer = search(timed, Question(text, mode=mode))
        took = perf_counter() - started
        assert not answer.unavailable
        if number >= _WARM:
            whole.append(1000 * took)
            engines.append(1000 * spent.seconds)
    return whole, engines


class _Spent:
    """Time spent within calls."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def call(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            started = perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += perf_counter() - started

        return timed

    def reader(self, reader: Any) -> Any:
        return _Reader(reader, self)


class _Reader:
    def __init__(self, reader: Any, spent: _Spent) -> None:
        for name in ("search", "query", "get", "facets", "marker", "snippets", "similarities", "most_score"):
            if hasattr(reader, name):
                setattr(self, name, spent.call(getattr(reader, name)))


def _questions(bus: Path, home: Path, count: int) -> list[str]:
    """Words from chunks all over the bus."""
    from chunksink.rebuild.families import FamilyReader

    drawn = random.Random(5)
    with State.existing(home) as state:
        catalog = Catalog(state)
        families = [family for (family,) in state.db.execute("select family from current order by family")]
        some = list(FamilyReader(BusRoot(bus), catalog).read(catalog.families(sorted(drawn.sample(families, 200)))))
    texts = [document.text for family in some for document in family.documents]
    return [" ".join(drawn.sample(drawn.choice(texts).split(), drawn.randint(2, 6))) for _ in range(count)]


if __name__ == "__main__":
    main()
