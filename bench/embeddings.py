"""Vectors against `SentenceTransformer.encode` with its defaults.

`--set device=cuda count=2000` measures on a GPU, `batch=256` gives the library larger batches than its default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bench import corpora
from bench.bare_loops import seconds as seconds_of
from bench.harness import Case, Figure, Measurement, ratio

OURS = "chunksink"
LIBRARY = "SentenceTransformer.encode"


def measure(case: Measurement) -> None:
    from sentence_transformers import SentenceTransformer

    from chunksink.embeddings.load import load_encoder
    from chunksink.embeddings.resolve import resolve_model

    folder, device = str(resolve_model(network=False).folder), case.text("device")
    library = SentenceTransformer(folder, device=device, local_files_only=True)
    full, auto = (
        # The library cuts long texts where the model ends; so here too.
        load_encoder(folder, precision=precision, long_texts="truncate", device=device)
        for precision in ("float32", "auto")
    )
    case.note(f"`auto` is {auto.precision} on {device}")
    candidates: dict[str, Callable[[Sequence[str]], Any]] = {
        LIBRARY: lambda texts: library.encode(list(texts), batch_size=case.number("batch"), show_progress_bar=False),
        f"{OURS}, float32": full.encode,
        OURS: auto.encode,
    }
    corpus = corpora.prose(case.data)
    count = case.number("count")
    for kind, texts in (("even", corpora.even(corpus, count)), ("mixed", corpora.mixed(corpus, 2 * count))):
        for encode in candidates.values():
            encode(texts[:16])
        took = case.turns({name: partial(seconds_of, partial(encode, texts)) for name, encode in candidates.items()})
        for name, seconds in took.items():
            case.keep(f"{name}, {kind} lengths, texts a second", [len(texts) / each for each in seconds])
        case.found(f"texts of {kind} lengths", ratio(took[LIBRARY], took[OURS]))


CASES = (
    Case(
        "embeddings",
        "texts a second against SentenceTransformer.encode with its defaults (float32, batches of 32)",
        (
            Figure("texts of even lengths"),
            Figure("texts of mixed lengths"),
        ),
        measure,
        {"count": (32, 64), "rounds": (3, 5), "device": ("cpu", "cpu"), "batch": (32, 32)},
    ),
)
