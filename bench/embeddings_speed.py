"""Speed of the embeddings package against `SentenceTransformer.encode` with its defaults, in one run.

    python -m bench.embeddings_speed [--texts FOLDER] [--rounds 5] [--count 64] [--rows 100000] [--patience 30]
                                     [--device cpu] [--batch 32]

Prints a Markdown table. All candidates take turns in every round, and a ratio is the median of the rounds' ratios,
so that other work on the machine slows them alike; `--patience` waits for an idle machine before each timing.
Long texts are truncated, as the library does. The cold path is compared with the encoder alone in the same way.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import ModelInfo, Vectors
from chunksink.embeddings.load import load_encoder
from chunksink.embeddings.resolve import resolve_model
from chunksink.embeddings.transformer import TransformerEncoder
from chunksink.embeddings.vectors import vectors_for

Candidates = dict[str, Callable[[Sequence[str]], Any]]


def main() -> None:
    options = arguments()
    corpus = read(options.texts)
    folder = resolve_model(network=False).folder
    from sentence_transformers import SentenceTransformer

    device, batch = options.device, options.batch
    library = SentenceTransformer(str(folder), device=device, local_files_only=True)
    full = load_encoder(str(folder), precision="float32", long_texts="truncate", device=device)
    auto = load_encoder(str(folder), precision="auto", long_texts="truncate", device=device)
    candidates: Candidates = {
        f"SentenceTransformer.encode, float32, batch {batch}": lambda texts: library.encode(
            list(texts), batch_size=batch, show_progress_bar=False
        ),
        "chunksink, float32": full.encode,
        f"chunksink, auto ({auto.precision})": auto.encode,
    }
    print(f"Load before: {os.getloadavg()[0]:.2f}; cores: {os.cpu_count()}; rounds: {options.rounds}\n")
    print("| what | texts | per second, median (best) | ratio (median of rounds) |\n|---|---|---|---|")
    for kind, texts in (
        ("about 1,050 characters", even(corpus, options.count)),
        ("mixed lengths", mixed(corpus, options.count * 2)),
    ):
        compare(kind, texts, candidates, options.rounds, options.patience)
    cold(mixed(corpus, options.count * 4), auto, options.rounds, options.patience)
    warm(options.rows, options.patience)
    print(f"\nLoad after: {os.getloadavg()[0]:.2f}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, help="folder of Markdown or text files; made-up words without it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=64, help="texts of even length; of mixed length twice as many")
    parser.add_argument("--rows", type=int, default=100_000, help="cached vectors for the lookup")
    parser.add_argument("--device", default="cpu", help="cpu or cuda, of all of them")
    parser.add_argument("--batch", type=int, default=32, help="texts at once in SentenceTransformer.encode")
    parser.add_argument("--patience", type=float, default=0.0, help="seconds to wait for an idle machine, each time")
    return parser.parse_args()


def read(folder: Path | None) -> str:
    """All text of the folder, or made-up words."""
    if folder is not None:
        files = sorted(path for pattern in ("*.md", "*.txt") for path in folder.rglob(pattern))
        if not files:
            raise SystemExit(f"{folder} holds no .md or .txt file")
        return "\n\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)
    randomly = random.Random(1)
    words = ["".join(randomly.choices("etaoinshrdlu", k=randomly.randint(2, 9))) for _ in range(5000)]
    return " ".join(randomly.choices(words, k=200_000))


def even(corpus: str, count: int, size: int = 1050) -> list[str]:
    return [corpus[start * size : (start + 1) * size] for start in range(count)]


def mixed(corpus: str, count: int) -> list[str]:
    """Lengths as chunks have them: log-normal around 500 characters, some of them long."""
    randomly, texts, start = random.Random(2), [], 0
    for _ in range(count):
        size = int(min(3000, max(20, randomly.lognormvariate(6.2, 0.9))))
        start = start if start + size < len(corpus) else 0
        texts.append(corpus[start : start + size])
        start += size
    return texts


@dataclass(frozen=True)
class Took:
    wall: float
    cpu: float


def timed(call: Callable[[], Any], patience: float = 0.0) -> Took:
    wait_until_idle(patience)
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return Took(time.perf_counter() - wall, time.process_time() - cpu)


def wait_until_idle(patience: float) -> None:
    """Waits for others on the machine to be quiet for half a second, but not for ever."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        idle, whole = jiffies()
        time.sleep(0.5)
        later_idle, later_whole = jiffies()
        if later_idle - idle > 0.95 * (later_whole - whole):
            return


def jiffies() -> tuple[int, int]:
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return fields[3], sum(fields)


def compare(kind: str, texts: Sequence[str], candidates: Candidates, rounds: int, patience: float) -> None:
    for encode in candidates.values():
        encode(texts[:16])
    took: dict[str, list[Took]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, encode in candidates.items():
            took[name].append(timed(partial(encode, texts), patience))
    first = next(iter(took.values()))
    for name, own in took.items():
        speed = len(texts) / statistics.median(each.wall for each in own)
        best = len(texts) / min(each.wall for each in own)
        ratio = statistics.median(base.wall / each.wall for base, each in zip(first, own, strict=True))
        print(f"| {name} | {kind} | {speed:.1f} ({best:.1f}) | {ratio:.2f} |", flush=True)


def _read_all(stream: list[tuple[bytes, str]], encoder: TransformerEncoder, cache: VectorCache) -> int:
    return sum(1 for _ in vectors_for(stream, encoder, cache))


def cold(texts: Sequence[str], encoder: TransformerEncoder, rounds: int, patience: float) -> None:
    """Read, look up, encode, commit; against the encoder alone on the same texts."""
    stream = [(hashlib.sha256(f"{number} {text}".encode()).digest(), text) for number, text in enumerate(texts)]
    alone, whole = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            alone.append(timed(lambda: encoder.encode(texts), patience))
            with VectorCache.open(Path(folder) / f"{number}.db") as cache:
                whole.append(timed(partial(_read_all, stream, encoder, cache), patience))
    wall = statistics.median(path.wall / own.wall for path, own in zip(whole, alone, strict=True))
    cpu = statistics.median(path.cpu for path in whole) / statistics.median(own.cpu for own in alone)
    for name, took, ratio in (
        (f"encoder alone, {encoder.precision}", alone, "1"),
        ("cold path: read, look up, encode, commit", whole, f"takes {wall:.3f} of the time, {cpu:.3f} of the CPU time"),
    ):
        speeds = [len(texts) / each.wall for each in took]
        print(f"| {name} | mixed lengths | {statistics.median(speeds):.1f} ({max(speeds):.1f}) | {ratio} |", flush=True)


def warm(rows: int, patience: float) -> None:
    """Bulk lookup of cached vectors of 384 dimensions, in the order they were written and in random order."""
    info = ModelInfo("bench", "ab" * 32, 384, 256, "float32", "float32", "truncate")
    generator = np.random.default_rng(0)
    hashes = [generator.bytes(32) for _ in range(rows)]
    vectors = generator.standard_normal((4000, 384)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder, VectorCache.open(Path(folder) / "warm.db") as cache:
        took = timed(lambda: put(cache, info, hashes, vectors))
        print(f"| put | {rows:,} vectors of 384 dimensions | {rows / took.wall:,.0f} | |")
        for order in ("as written", "shuffled"):
            best = min(timed(lambda: look_up(cache, info, hashes), patience).wall for _ in range(3))
            print(f"| bulk lookup, {order} | {rows:,} vectors of 384 dimensions | {rows / best:,.0f} | |", flush=True)
            random.Random(3).shuffle(hashes)


def put(cache: VectorCache, info: ModelInfo, hashes: Sequence[bytes], vectors: Vectors) -> None:
    for start in range(0, len(hashes), len(vectors)):
        some = hashes[start : start + len(vectors)]
        cache.put(info, some, vectors[: len(some)])


def look_up(cache: VectorCache, info: ModelInfo, hashes: Sequence[bytes]) -> None:
    for start in range(0, len(hashes), 2048):
        some = hashes[start : start + 2048]
        assert len(cache.lookup(info.fingerprint, some, dimension=384).positions) == len(some)


if __name__ == "__main__":
    main()
