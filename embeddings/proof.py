"""Whether the rows of an export come from the model they name: samples of them are encoded again here.

Of each model and precision 16 rows are needed whose texts stand here, or all where the file has fewer. One that
disagrees refuses the whole file; where too few can be compared, the rows are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import Encoder, ModelInfo, Precision
from chunksink.embeddings.errors import ImportRefused
from chunksink.embeddings.export_file import OpenExport
from chunksink.embeddings.references import TextHash, raw_hash
from chunksink.embeddings.rows import VectorRow, unpack

SAMPLES = 16
LEAST_COSINE = 0.999

_PAGE = 1000

Kind = tuple[bytes, int]
"""Fingerprint and precision."""

EncoderFor = Callable[[ModelInfo], Encoder | None]
"""An encoder with this fingerprint that computes in this precision, or None where there is none. All else that is
said of the model comes from the file, and only helps to find it."""

Texts = Callable[[], Iterable[tuple[TextHash, str]]]
"""The chunks of this machine, as often as they are asked for."""


@dataclass(frozen=True, slots=True)
class Proof:
    """How one model's rows at one precision were proved."""

    fingerprint: str
    model: str
    """Its name, as the file has it."""
    precision: Precision
    checked: int
    """Rows whose text was encoded again; 0 means that they were left out."""
    least_cosine: float | None
    obstacle: str | None = None
    """Why they were left out."""


def prove(cache: VectorCache, export: OpenExport, texts: Texts, encoder_for: EncoderFor) -> dict[Kind, Proof]:
    """Proofs for all models and precisions of the file; `cache` only lends a temporary table."""
    samples = _samples(cache, export, texts)
    wanted = {row.text_hash for sample in samples.values() for row in sample.chosen}
    text_of = {raw: text for text_hash, text in (texts() if wanted else ()) if (raw := raw_hash(text_hash)) in wanted}
    return {kind: _proof(sample, text_of, encoder_for) for kind, sample in sorted(samples.items())}


class _Sample:
    """Rows of one model and precision, spread evenly over those that are offered; memory does not grow with them."""

    def __init__(self, info: ModelInfo) -> None:
        self.info = info
        self.rows = 0
        """In the file, offered or not."""
        self.dimensions: set[int] = set()
        self._kept: dict[bytes, VectorRow] = {}
        self._offered = 0
        self._step = 1

    @property
    def needed(self) -> int:
        return min(SAMPLES, self.rows)

    def offer(self, row: VectorRow) -> None:
        if row.text_hash in self._kept:  # a file that repeats a row gets no more samples by it
            return
        if self._offered % self._step == 0:
            self._kept[row.text_hash] = row
            if len(self._kept) > SAMPLES * 2:  # keep every other one, and look at half as many from here on
                self._kept = dict(islice(self._kept.items(), 0, None, 2))
                self._step *= 2
        self._offered += 1

    @property
    def chosen(self) -> list[VectorRow]:
        kept = list(self._kept.values())
        return kept[:: max(1, len(kept) // SAMPLES)][:SAMPLES]


def _samples(cache: VectorCache, export: OpenExport, texts: Texts) -> dict[Kind, _Sample]:
    """For each model and precision up to 16 of the rows that we have texts for."""
    samples: dict[Kind, _Sample] = {}
    rows = export.rows()
    with cache.temporary(raw_hash(text_hash) for text_hash, _ in texts()) as here:
        while page := list(islice(rows, _PAGE)):
            marks = ",".join("?" * len(page))
            hashes = [row.text_hash for row in page]
            ours = {raw for (raw,) in cache.read(f"SELECT text_hash FROM {here} WHERE text_hash IN ({marks})", hashes)}
            for row in page:
                kind = (row.fingerprint, row.precision)
                if (sample := samples.get(kind)) is None:
                    sample = samples[kind] = _Sample(export.info(row))
                sample.rows += 1
                sample.dimensions.add(len(row.vector) // 4)
                if row.text_hash in ours:
                    sample.offer(row)
    return samples


def _proof(sample: _Sample, text_of: Mapping[bytes, str], encoder_for: EncoderFor) -> Proof:
    info = sample.info
    chosen = [row for row in sample.chosen if row.text_hash in text_of]
    obstacle = _too_few(len(chosen), sample.needed)
    encoder = encoder_for(info) if obstacle is None else None
    if encoder is None:
        obstacle = obstacle or "the model cannot be used here"
        return Proof(info.fingerprint, info.name, info.precision, 0, None, obstacle)
    named = f"model {info.name} ({info.fingerprint}) in {info.precision}"
    if encoder.fingerprint != info.fingerprint or encoder.precision != info.precision:
        raise ImportRefused(f"the encoder for {named} is of another model or precision")
    if sample.dimensions != {encoder.dimension}:
        raise ImportRefused(f"not all of the file's vectors of {named} have {encoder.dimension} dimensions")
    ours = encoder.encode([text_of[row.text_hash] for row in chosen]).astype(np.float64)
    theirs = [unpack(row.vector).astype(np.float64) for row in chosen]
    least = float(np.min([_cosine(our, their) for our, their in zip(ours, theirs, strict=True)]))  # NaN if one is
    if not least >= LEAST_COSINE:
        raise ImportRefused(
            f"the file's vectors are not those of {named}: of {len(chosen)} encoded again, "
            f"one has cosine {least:.5f}; {LEAST_COSINE} is the least"
        )
    return Proof(info.fingerprint, info.name, info.precision, len(chosen), least)


def _too_few(found: int, needed: int) -> str | None:
    if found >= needed:
        return None
    if not found:
        return f"none of its texts stands in the chunks here, and {needed} are needed"
    return f"only {found} of the {needed} texts that are needed stand in the chunks here"


def _cosine(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / length if length else float("nan")
