"""How fast vectors are computed, compared with `SentenceTransformer.encode` with its defaults.

`--set device=cuda count=2000` measures on a GPU, `batch=256` gives the library larger batches than its default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bench import corpora
from bench.bare_loops import seconds as seconds_of
from bench.harness import Case, Figure, Measurement, Value, ratio

if TYPE_CHECKING:
    from chunksink.embeddings.encoder import PrecisionRequest

LIBRARY = "SentenceTransformer.encode"
AUTO, FLOAT32, INT8 = "auto", "float32", "int8"
_OLD_PROCESSOR = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
"""Keeps OpenVINO and torch from using newer instructions."""


def measure(case: Measurement) -> None:
    from sentence_transformers import SentenceTransformer

    from chunksink.embeddings.load import load_encoder
    from chunksink.embeddings.resolve import resolve_model
    from chunksink.embeddings.settings import EncoderSettings

    folder, device = str(resolve_model(network=False).folder), case.text("device")
    library = SentenceTransformer(folder, device=device, local_files_only=True)
    precisions: dict[str, PrecisionRequest] = {AUTO: "auto", FLOAT32: "float32", INT8: "int8"}
    encoders = {
        # The library truncates long texts at the model's limit; so does this.
        name: load_encoder(EncoderSettings(folder, precision, "truncate"), device=device)
        for name, precision in precisions.items()
        if device == "cpu" or name != INT8
    }
    case.note(f"`auto` is {encoders[AUTO].info.precision} on {device}, by {encoders[AUTO].info.runtime}")
    candidates: dict[str, Callable[[Sequence[str]], Any]] = {
        LIBRARY: lambda texts: library.encode(list(texts), batch_size=case.number("batch"), show_progress_bar=False),
        **{name: encoder.encode for name, encoder in encoders.items()},
    }
    corpus = corpora.prose(case.data)
    count = case.number("count")
    for kind, texts in (("even", corpora.even(corpus, count)), ("mixed", corpora.mixed(corpus, 2 * count))):
        for encode in candidates.values():
            encode(texts[:16])
        took = case.turns({name: partial(seconds_of, partial(encode, texts)) for name, encode in candidates.items()})
        for name, seconds in took.items():
            case.keep(f"{name}, {kind} lengths, texts a second", [len(texts) / each for each in seconds])
            if f"{name}, {kind} lengths" in {figure.name for figure in case.case.figures}:
                case.found(f"{name}, {kind} lengths", ratio(took[LIBRARY], seconds))


def measure_old_processor(case: Measurement) -> None:
    os.environ.update(_OLD_PROCESSOR)  # before the libraries are imported
    measure(case)


_SIZES: dict[str, tuple[Value, Value]] = {
    "count": (64, 256),
    "rounds": (3, 5),
    "device": ("cpu", "cpu"),
    "batch": (32, 32),
}
CASES = (
    Case(
        "embeddings",
        "texts a second against SentenceTransformer.encode with its defaults (float32, batches of 32)",
        (
            Figure(f"{AUTO}, even lengths", at_least=2.5),
            Figure(f"{INT8}, even lengths", at_least=3.8),
            Figure(f"{FLOAT32}, even lengths"),
            Figure(f"{AUTO}, mixed lengths"),
            Figure(f"{INT8}, mixed lengths"),
        ),
        measure,
        _SIZES,
    ),
    Case(
        "embeddings-avx2",
        "the same without bfloat16 and VNNI: both libraries are limited to AVX2",
        (
            Figure(f"{FLOAT32}, even lengths", at_least=1.25),
            Figure(f"{INT8}, even lengths", at_least=2),
        ),
        measure_old_processor,
        _SIZES,
    ),
)
