"""Checks that a rebuild's memory is constant and its time linear in the number of chunks.

`python -m bench.memory` is the command line with two changes: its encoder generates vectors from the hashes of texts,
and fts requests vectors. So every text passes encoder, cache and sink, and no model uses memory.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from hashlib import sha256

from bench import corpora
from bench.harness import Case, Figure, Measurement
from bench.processes import Ran, python
from chunksink.embeddings.encoder import EncodedBatch, Encoder, ModelInfo

PARTITION = 10_000


class HashEncoder(Encoder):
    """An encoder that takes almost no time."""

    def __init__(self) -> None:
        fingerprint = sha256(b"drawn").hexdigest()
        self.info = ModelInfo("drawn", fingerprint, corpora.DIMENSIONS, None, "float32", "float32", "windows")

    def _run(self, texts: Sequence[str], prompt: str, contexts: Sequence[str] = ()) -> Generator[EncodedBatch]:
        yield EncodedBatch(range(len(texts)), corpora.drawn(texts), [0] * len(texts))

    def close(self) -> None:
        """Nothing to release."""


def measure(case: Measurement) -> None:
    small, large = (case.number(name) for name in ("against", "chunks"))
    started = _rebuild(case, 1).seconds
    ran = {size: _rebuild(case, size) for size in (small, large)}
    per_chunk = {}
    for size, one in ran.items():
        seconds = one.seconds - started
        per_chunk[size] = seconds / size
        for what, value in (("seconds", seconds), ("processor seconds", one.cpu), ("peak MB", one.peak_mb)):
            case.keep(f"{size:,} chunks, {what}", [value])
    case.found("peak memory", ran[large].peak_mb)
    case.found("time per chunk, against a tenth of the chunks", per_chunk[large] / per_chunk[small])


def _rebuild(case: Measurement, size: int) -> Ran:
    sinks = {"CHUNKSINK_SINKS": case.text("sinks")}
    bus = corpora.shared_bus(case.shared, size, partitions=max(1, size // PARTITION))
    return python("bench.memory", "rebuild", "--chunks", bus, "--home", case.empty(), environment=sinks)


CASES = (
    Case(
        "rebuild-memory",
        "a rebuild of fts, with vectors that cost nothing",
        (
            Figure("peak memory", "MB", at_most=700),
            Figure("time per chunk, against a tenth of the chunks", "of the baseline's time", at_most=1.3),
        ),
        measure,
        {"chunks": (100_000, 1_000_000), "against": (10_000, 100_000), "sinks": ("fts", "fts")},
    ),
)


def main() -> None:
    from chunksink.command_line import cli
    from chunksink.embeddings import settings
    from chunksink.sinks.fts import FtsSink

    vars(settings)["open_encoder"] = lambda *_arguments, **_named: HashEncoder()
    FtsSink.wants_vectors = True
    cli.main()


if __name__ == "__main__":
    main()
