"""What an index of a million to ten billion chunks needs, from the unit costs in the newest results.

    python -m bench.scale_model [--embed SECONDS] [--units FILE]

The first build is simulated block by block: encoders compute vectors, and one writer for each home takes the blocks
that are ready. `--embed` is the processor time of a thousand vectors, for another model or a GPU. docs/scale.md shows
the output and explains it.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import orjson

from bench.processes import ROOT

UNITS = max(file for file in (ROOT / "bench" / "results").glob("*.json") if b'"units"' in file.read_bytes())
SIZES = (10**6, 10**8, 10**10)
INDEXES: Mapping[str, tuple[str, ...]] = {
    "fts and Chroma": ("fts", "chroma"),
    "Meilisearch and Chroma": ("meilisearch", "chroma"),
    "PostgreSQL": ("postgres",),
}
MEMORY, DISK = 32 * 2**30, 2**40
"""Of a machine for one home and its engines, in bytes."""
SHARE_OF_MEMORY = 0.7
"""The share for the graph of vectors. The rest is for queries, the file cache and the system."""
GRAPH_BYTES = 1000 * (384 * 4 + 2 * 16 * 4)
"""The memory of a thousand vectors in the graph, each with 384 numbers and 32 links of four bytes."""
HOURS = 24
"""The limit for a first build. A repair that writes everything takes as long."""
_BLOCKS = 2000


@dataclass(frozen=True)
class Units:
    """Seconds of one processor, and bytes, for a thousand chunks."""

    figures: Mapping[str, float]

    @classmethod
    def read(cls, file: Path, embed: float | None = None) -> Units:
        measured = orjson.loads(file.read_bytes())["cases"]["units"]["figures"]
        figures = {name: figure["value"] for name, figure in measured.items()}
        return cls(figures if embed is None else figures | {"embed": embed})

    def writing(self, sinks: Sequence[str]) -> float:
        """The work of the one writer of a home, including the engines on its machine."""
        return self.figures["validate"] + max(self.figures[f"load {sink}"] for sink in sinks)

    def on_disk(self, sinks: Sequence[str]) -> float:
        """The bytes of a home and its engines during a rebuild, with three generations: previous, live and new."""
        engines = sum(self.figures[f"{sink}, bytes"] for sink in sinks)
        return self.figures["vector cache, bytes"] + self.figures["records of a home, bytes"] + 3 * engines


def measured_on(file: Path) -> str:
    """The machine and the day of unit costs."""
    results = orjson.loads(file.read_bytes())
    return f"{results['machine']['processor']}, {results['date'][:10]}"


def limits(units: Units, sinks: Sequence[str]) -> dict[str, float]:
    """The largest number of chunks in one home, for each limiting resource."""
    return {
        "memory": 1000 * MEMORY * SHARE_OF_MEMORY / GRAPH_BYTES,
        "disk": 1000 * DISK / units.on_disk(sinks),
        "the writer": 1000 * HOURS * 3600 / units.writing(sinks),
    }


@dataclass(frozen=True)
class Build:
    """A simulated first build of one home."""

    hours: float
    encoders_busy: float
    """Share of the time."""
    writer_busy: float


def simulate(chunks: float, encoders: int, embed: float, write: float) -> Build:
    """`encoders` compute equal blocks; one writer takes each block when it is ready and the previous one has been
    written. `embed` and `write` are seconds for a thousand chunks."""
    block = chunks / 1000 / _BLOCKS
    free = [0.0] * min(encoders, _BLOCKS)
    share = encoders / len(free)  # several real encoders are one simulated encoder
    written = 0.0
    for _ in range(_BLOCKS):
        ready = heapq.heappop(free) + block * embed / share
        heapq.heappush(free, ready)
        written = max(written, ready) + block * write
    computing = _BLOCKS * block * embed / encoders
    return Build(written / 3600, computing / written, _BLOCKS * block * write / written)


def rows(units: Units) -> Iterator[list[str]]:
    """For each size and index: the number of homes and encoders, and the cost of the first build."""
    for chunks in SIZES:
        for name, sinks in INDEXES.items():
            most = limits(units, sinks)
            first = min(most, key=most.__getitem__)
            homes = ceil(chunks / most[first])
            encoders = ceil(chunks / 1000 * units.figures["embed"] / (0.9 * HOURS * 3600) / homes)
            build = simulate(chunks / homes, encoders, units.figures["embed"], units.writing(sinks))
            yield [
                f"{chunks:,}",
                name,
                f"{homes:,}",
                f"{homes * encoders:,}",
                f"{build.hours:.1f} h",
                "encoders" if build.encoders_busy > build.writer_busy else "writer",
                size(chunks / 1000 * units.figures["chunks, bytes"]),
                size(chunks / 1000 * units.on_disk(sinks)),
            ]


def size(amount: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} PB"


def markdown(head: Sequence[str], lines: Iterator[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(line)} |" for line in lines)


def costs(units: Units) -> Iterator[str]:
    lines = ([name, _amount(name, value)] for name, value in units.figures.items())
    yield from markdown(["a thousand chunks", "cost"], lines)


def capacities(units: Units) -> Iterator[str]:
    each = {name: limits(units, sinks) for name, sinks in INDEXES.items()}
    lines = ([name, *(f"{number / 1e6:,.0f} million" for number in most.values())] for name, most in each.items())
    yield from markdown(["index", *(f"limit by {what}" for what in each["PostgreSQL"])], lines)


def builds(units: Units) -> Iterator[str]:
    head = [
        "chunks",
        "index",
        "homes",
        "encoder cores",
        "first build",
        "busiest",
        "chunks on disk",
        "homes and engines",
    ]
    yield from markdown(head, rows(units))


def _amount(name: str, value: float) -> str:
    return size(value) if name.endswith("bytes") else f"{value:.3g} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embed", type=float, help="seconds for a thousand vectors")
    parser.add_argument("--units", type=Path, default=UNITS)
    options = parser.parse_args()
    units = Units.read(options.units, options.embed)
    for table in (costs, capacities, builds):
        print(*table(units), "", sep="\n")


if __name__ == "__main__":
    main()
