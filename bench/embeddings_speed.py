"""Speed of the embeddings package against `SentenceTransformer.encode` with its defaults, in one run.

    python bench/embeddings_speed.py [--texts FOLDER] [--rounds 5] [--count 64] [--rows 100000]

Prints a Markdown table. All candidates take turns in every round, and a ratio is the median of the rounds' ratios,
so that other work on the machine slows them alike. Long texts are truncated, as the library does.
The cold path is compared with the encoder alone in the same way; the figures include reading the stream.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from embeddings import ModelInfo, TransformerEncoder, VectorCache, load_encoder, resolve_model, vectors_for  # noqa: E402

SHARED = ROOT.parent / "shared" / "data" / "rust-book"
Candidates = dict[str, Callable[[Sequence[str]], Any]]


def main() -> None:
    options = arguments()
    corpus = read(options.texts)
    folder = resolve_model(network=False).folder
    from sentence_transformers import SentenceTransformer

    library = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    full = load_encoder(str(folder), precision="float32", long_texts="truncate", device="cpu")
    auto = load_encoder(str(folder), precision="auto", long_texts="truncate", device="cpu")
    candidates: Candidates = {
        "SentenceTransformer.encode, float32, batch 32": lambda texts: library.encode(
            list(texts), batch_size=32, show_progress_bar=False
        ),
        "chunksink, float32": full.encode,
        f"chunksink, auto ({auto.precision})": auto.encode,
    }
    print(f"Load before: {os.getloadavg()[0]:.2f}; cores: {os.cpu_count()}; rounds: {options.rounds}\n")
    print("| what | texts | chunks/s (median) | ratio (median of rounds) |\n|---|---|---|---|")
    for kind, texts in (
        ("about 1,050 characters", even(corpus, options.count)),
        ("mixed lengths", mixed(corpus, options.count * 2)),
    ):
        compare(kind, texts, candidates, options.rounds)
    cold(mixed(corpus, options.count * 4), auto, options.rounds)
    warm(options.rows)
    print(f"\nLoad after: {os.getloadavg()[0]:.2f}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, default=SHARED, help="folder of Markdown or text files")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=64, help="texts of even length; of mixed length twice as many")
    parser.add_argument("--rows", type=int, default=100_000, help="cached vectors for the lookup")
    return parser.parse_args()


def read(folder: Path) -> str:
    """All text of the folder, or made-up words where it is not there."""
    files = sorted(path for pattern in ("*.md", "*.txt") for path in folder.rglob(pattern)) if folder.is_dir() else []
    if files:
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


def timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def compare(kind: str, texts: Sequence[str], candidates: Candidates, rounds: int) -> None:
    for encode in candidates.values():
        encode(texts[:16])
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, encode in candidates.items():
            seconds[name].append(timed(lambda encode=encode: encode(texts)))  # type: ignore[misc]
    first = next(iter(seconds.values()))
    for name, took in seconds.items():
        ratio = statistics.median(base / own for base, own in zip(first, took, strict=True))
        print(f"| {name} | {kind} | {len(texts) / statistics.median(took):.1f} | {ratio:.2f} |", flush=True)


def cold(texts: Sequence[str], encoder: TransformerEncoder, rounds: int) -> None:
    """Read, look up, encode, commit; against the encoder alone on the same texts."""
    stream = [(hashlib.sha256(f"{number} {text}".encode()).digest(), text) for number, text in enumerate(texts)]
    alone, whole = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            alone.append(timed(lambda: encoder.encode(texts)))
            with VectorCache.open(Path(folder) / f"{number}.db") as cache:
                whole.append(timed(lambda cache=cache: sum(1 for _ in vectors_for(stream, encoder, cache))))  # type: ignore[misc]
    ratio = statistics.median(path / own for path, own in zip(whole, alone, strict=True))
    print(
        f"| encoder alone, {encoder.precision} | mixed lengths | {len(texts) / statistics.median(alone):.1f} | 1.00 |"
    )
    print(
        f"| cold path: read, look up, encode, commit | mixed lengths | {len(texts) / statistics.median(whole):.1f} "
        f"| {ratio:.3f} times the encoder's time |",
        flush=True,
    )


def warm(rows: int) -> None:
    """Bulk lookup of cached vectors of 384 dimensions, in the order they were written and in random order."""
    info = ModelInfo("bench", "ab" * 32, 384, 256, "float32", "float32", "truncate")
    generator = np.random.default_rng(0)
    hashes = [generator.bytes(32) for _ in range(rows)]
    vectors = generator.standard_normal((4000, 384)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder, VectorCache.open(Path(folder) / "warm.db") as cache:
        took = timed(
            lambda: [
                cache.put(info, some, vectors[: len(some)])
                for some in (hashes[start : start + 4000] for start in range(0, rows, 4000))
            ]
        )
        print(f"| put | {rows:,} vectors of 384 dimensions | {rows / took:,.0f} | |")
        for order in ("as written", "shuffled"):
            best = min(timed(lambda: look_up(cache, info, hashes)) for _ in range(3))
            print(f"| bulk lookup, {order} | {rows:,} vectors of 384 dimensions | {rows / best:,.0f} | |", flush=True)
            random.Random(3).shuffle(hashes)


def look_up(cache: VectorCache, info: ModelInfo, hashes: Sequence[bytes]) -> None:
    for start in range(0, len(hashes), 2048):
        some = hashes[start : start + 2048]
        assert len(cache.lookup(info.fingerprint, some, dimension=384).positions) == len(some)


if __name__ == "__main__":
    main()
