"""Does the memory of a rebuild depend on how many chunks there are, and its time on more than their number?

    python -m bench.rebuild_memory [--chunks 100000] [--against 10000] [--folder FOLDER] [--files]

A rebuild of fts, which here asks for vectors, so that every text goes through encoder and cache; the encoder costs next
to nothing. With `--files` of jsonl besides, a file for each of ten chunks. Each number of chunks runs in a process of
its own. Prints a Markdown table. The goal: 1,000,000 chunks in less than 700 MB, and at most 1.3 times the time per
chunk that 100,000 take:

    python -m bench.rebuild_memory --chunks 1000000 --against 100000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import orjson

from bench import homes
from bench.processes import Ran, ours
from sinks.fts import FtsSink

PARTITION = 10_000


class Eager(FtsSink):
    """Asks for vectors, and ignores them."""

    wants_vectors = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--against", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where there is room; a million chunks take 10 GB")
    parser.add_argument("--files", action="store_true", help="with jsonl besides")
    parser.add_argument("--one", type=Path, nargs=2, metavar=("BUS", "HOME"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        print(orjson.dumps({"seconds": rebuild(*asked.one, files=asked.files)}).decode())
        return
    small, large = (one(size, asked.folder, files=asked.files) for size in (asked.against, asked.chunks))
    print("| chunks | peak memory | seconds, for 1,000 chunks | of processors, for 1,000 chunks |\n|---|---|---|---|")
    each = []
    for size, ran in ((asked.against, small), (asked.chunks, large)):
        wall, cpu = (seconds / size * 1000 for seconds in (ran.told["seconds"], ran.cpu))
        print(f"| {size:,} | {ran.peak_mb:.0f} MB | {ran.told['seconds']:.1f}, {wall:.3f} | {ran.cpu:.1f}, {cpu:.3f} |")
        each.append((wall, cpu))
    ratios = [large_ / small_ for small_, large_ in zip(*each, strict=True)]
    print(
        f"\nTime per chunk: {ratios[0]:.2f}, of processors {ratios[1]:.2f}; peak: {large.peak_mb / small.peak_mb:.2f}"
    )


def one(size: int, folder: Path | None, *, files: bool) -> Ran:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        # By another process, and its memory is not ours.
        bus, home = Path(made) / "bus", Path(made) / "home"
        ours("bench.chunks", bus, "--chunks", str(size), "--partitions", str(max(1, size // PARTITION)))
        print(f"rebuilding {size:,} chunks", file=sys.stderr)
        return ours("bench.rebuild_memory", "--one", bus, home, *(["--files"] if files else []))


def rebuild(bus: Path, home: Path, *, files: bool) -> float:
    started = time.perf_counter()
    homes.build(bus, home, ["jsonl"] if files else [], {"fts": Eager(home / "fts")})
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
