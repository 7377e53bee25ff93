"""Does the memory of a rebuild depend on how many chunks there are, and its time on more than their number?

    python -m bench.rebuild_memory [--chunks 100000] [--against 10000] [--folder FOLDER] [--files | --memory]

A rebuild of fts, which here asks for vectors, so that every text goes through encoder and cache; the encoder costs next
to nothing. With `--files` of jsonl besides, a file for each of ten chunks. With `--memory` of the sink in memory, which
cannot be flat: of the peak is taken off what a process needs that does nothing but fill such a sink. Each number of
chunks runs in a process of its own. Prints a Markdown table. The goal: 1,000,000 chunks in less than 700 MB, and at
most 1.3 times the time per chunk that 100,000 take:

    python -m bench.rebuild_memory --chunks 1000000 --against 100000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import orjson

from bench import homes
from bench.processes import Ran, ours
from chunksink.sinks.contract import Marker
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.memory import MemorySink
from chunksink.sinks.projection import PROJECTION_VERSION

PARTITION = 10_000
FAMILIES = 1_000
"""Written together: each batch has the sink in memory look at all that it holds."""


class Eager(FtsSink):
    """Asks for vectors, and ignores them."""

    wants_vectors = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--against", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where there is room; a million chunks take 10 GB")
    besides = parser.add_mutually_exclusive_group()
    besides.add_argument("--files", dest="besides", action="store_const", const="jsonl", help="with jsonl besides")
    besides.add_argument("--memory", dest="besides", action="store_const", const="memory", help="with memory besides")
    parser.add_argument("--one", nargs=3, metavar=("WHAT", "BUS", "HOME"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        what, bus, home = asked.one
        print(orjson.dumps({"seconds": rebuild(what, Path(bus), Path(home))}).decode())
        return
    small, large = (one(size, asked.folder, asked.besides or "") for size in (asked.against, asked.chunks))
    beside = ", beside the sink in memory" if asked.besides == "memory" else ""
    print(f"| chunks | peak memory{beside} | seconds, for 1,000 chunks | of processors, for 1,000 chunks |")
    print("|---|---|---|---|")
    each = []
    for size, ran in ((asked.against, small), (asked.chunks, large)):
        wall, cpu = (seconds / size * 1000 for seconds in (ran.told["seconds"], ran.cpu))
        print(f"| {size:,} | {ran.peak_mb:.0f} MB | {ran.told['seconds']:.1f}, {wall:.3f} | {ran.cpu:.1f}, {cpu:.3f} |")
        each.append((wall, cpu))
    ratios = [large_ / small_ for small_, large_ in zip(*each, strict=True)]
    print(
        f"\nTime per chunk: {ratios[0]:.2f}, of processors {ratios[1]:.2f}; peak: {large.peak_mb / small.peak_mb:.2f}"
    )


def one(size: int, folder: Path | None, besides: str) -> Ran:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        # By another process, and its memory is not ours.
        bus, home = Path(made) / "bus", Path(made) / "home"
        ours("bench.chunks", bus, "--chunks", str(size), "--partitions", str(max(1, size // PARTITION)))
        print(f"rebuilding {size:,} chunks", file=sys.stderr)
        ran = ours("bench.rebuild_memory", "--one", besides, bus, home)
        if besides != "memory":
            return ran
        alone = ours("bench.rebuild_memory", "--one", "memory alone", bus, home)
        print(f"{size:,} chunks: {ran.peak_mb:.0f} MB, a sink in memory alone {alone.peak_mb:.0f} MB", file=sys.stderr)
        return replace(ran, peak_mb=ran.peak_mb - alone.peak_mb)


def rebuild(what: str, bus: Path, home: Path) -> float:
    started = time.perf_counter()
    if what == "memory alone":
        build = MemorySink().create(Marker("bench", "bench", PROJECTION_VERSION), homes.DIMENSIONS)
        for number, family in enumerate(homes.families(bus), start=1):
            build.replace([family])
            if number % FAMILIES == 0:
                build.flush()
        build.flush()
    else:
        memory = {"memory": MemorySink()} if what == "memory" else {}
        homes.build(bus, home, ["jsonl"] if what == "jsonl" else [], {"fts": Eager(home / "fts"), **memory})
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
