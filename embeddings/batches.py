"""Encodes many texts in batches: the encoder's own, or slices of the texts for an encoder without batches."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from itertools import chain

import numpy as np

from chunksink.embeddings.encoder import BatchEncoder, EncodedBatch, Encoder
from chunksink.embeddings.errors import TextRefused

_CALL_SECONDS = 1.0


def encoded_batches(encoder: Encoder, texts: Sequence[str]) -> Generator[EncodedBatch]:
    """The encoder's own batches, or slices that take it about a second each."""
    if isinstance(encoder, BatchEncoder):
        yield from encoder.encode_batches(texts)
        return
    start, size = 0, 1  # the speed of the encoder is not known yet
    while start < len(texts):
        positions = range(start, min(start + size, len(texts)))
        started = time.monotonic()
        yield from _isolated(encoder, texts, positions)
        seconds = max(time.monotonic() - started, 1e-3)
        size = max(1, min(1024, 8 * size, int(len(positions) * _CALL_SECONDS / seconds)))
        start = positions.stop


def _isolated(encoder: Encoder, texts: Sequence[str], positions: range) -> Iterator[EncodedBatch]:
    """One call; if the encoder refuses a text, halves of the batch until only that text is left out."""
    try:
        rows = encoder.encode([texts[position] for position in positions])
    except TextRefused as exc:
        if len(positions) > 1:
            middle = positions.start + len(positions) // 2
            yield from chain(
                _isolated(encoder, texts, range(positions.start, middle)),
                _isolated(encoder, texts, range(middle, positions.stop)),
            )
            return
        nothing = np.full((1, encoder.dimension), np.nan, dtype=np.float32)
        yield EncodedBatch(positions, nothing, [0], {positions.start: str(exc)})
    else:
        yield EncodedBatch(positions, np.asarray(rows, dtype=np.float32), [0] * len(positions))
