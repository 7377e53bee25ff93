"""The embedding function of all tools: its vectors depend on the text and the model alone.

The file `model` in a trial's folder has the name of the model. If there is a file `failure`, the first call with a text
that contains its word fails, and removes the file. A text with the word `corpus.POISON` always fails.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from bench.faults.corpus import POISON

DIMENSIONS = 64


class ModelFailed(Exception):
    """No vectors are available at the moment."""


class TextFailed(Exception):
    """One of these texts will never have a vector."""


def vectors(texts: Sequence[str]) -> list[list[float]]:
    """The first number is positive for model a and negative for model b: `stores` recognises a row's model by it."""
    failure = Path("failure")
    if failure.exists() and any(failure.read_text() in text for text in texts):
        failure.unlink()
        raise ModelFailed("the model failed once")
    if any(POISON in text for text in texts):
        raise TextFailed("the model has no vector for a text")
    sign = 1.0 if Path("model").read_text() == "a" else -1.0
    drawn = (hashlib.shake_128(text.encode()).digest(DIMENSIONS - 1) for text in texts)
    return [[sign, *(byte / 256 - 0.5 for byte in digest)] for digest in drawn]
