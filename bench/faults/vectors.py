"""The embedding function of all tools: its vectors depend on the text and the model alone.

A trial's folder has the name of the model in `model`. If there is a file `failure`, the first call with a text that
has the word in it fails, and removes the file. A text with the word `corpus.POISON` always fails.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from bench.faults.corpus import POISON

DIMENSIONS = 64


class EmbeddingFailed(Exception):
    """There are no vectors for this batch. `of_text`: because of one of its texts."""

    def __init__(self, message: str, *, of_text: bool) -> None:
        super().__init__(message)
        self.of_text = of_text


def model_of(folder: Path) -> str:
    return (folder / "model").read_text()


def vectors(folder: Path, texts: Sequence[str]) -> list[list[float]]:
    """The first number of a vector is positive for model a and negative for model b."""
    failure = folder / "failure"
    if failure.exists() and any(failure.read_text() in text for text in texts):
        failure.unlink()
        raise EmbeddingFailed("the model failed once", of_text=False)
    if any(POISON in text for text in texts):
        raise EmbeddingFailed("the model has no vector for a text", of_text=True)
    sign = 1.0 if model_of(folder) == "a" else -1.0
    return [[sign, *_drawn(text)] for text in texts]


def _drawn(text: str) -> list[float]:
    return [byte / 256 - 0.5 for byte in hashlib.shake_128(text.encode()).digest(DIMENSIONS - 1)]
