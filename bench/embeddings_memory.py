"""Does the memory of `vectors_for` depend on how many chunks there are?

    python -m bench.embeddings_memory [--chunks 50000 200000 800000]

Each number of chunks runs in a process of its own, with an encoder that takes next to nothing, cold and then warm.
Prints a Markdown table with the peak of resident memory.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import Precision, Vectors
from chunksink.embeddings.vectors import vectors_for


class Trivial:
    """384 numbers for any text, at the speed of memory."""

    fingerprint = "ab" * 32
    dimension = 384
    max_length = None
    precision: Precision = "float32"

    def encode(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), self.dimension), dtype=np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, nargs="+", default=[50_000, 200_000, 800_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(peak(options.one))
        return
    print("| chunks | peak memory, MiB |\n|---|---|")
    for chunks in options.chunks:
        command = [sys.executable, "-m", "bench.embeddings_memory", "--one", str(chunks)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        print(f"| {chunks:,} | {done.stdout.strip()} |", flush=True)


def peak(chunks: int) -> int:
    """MiB at most, while the chunks are embedded and then looked up again."""
    with tempfile.TemporaryDirectory() as folder, VectorCache.open(Path(folder) / "vectors.db") as cache:
        for _ in range(2):
            for _ in vectors_for(stream(chunks), Trivial(), cache):
                pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def stream(chunks: int) -> Iterator[tuple[bytes, str]]:
    for number in range(chunks):
        text = f"chunk {number} " + "with some words " * 40
        yield hashlib.sha256(text.encode()).digest(), text


if __name__ == "__main__":
    main()
