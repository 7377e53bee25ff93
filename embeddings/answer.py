"""What an endpoint's answer of status 200 holds: the vectors asked for, or why it is no such answer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson

from chunksink.embeddings.encoder import Vectors


class OddAnswer(Exception):
    """Not what was asked for. Without a message its own words say most."""


class WrongCount(OddAnswer):
    """Another number of vectors than of texts."""

    def __init__(self, asked: int, got: int) -> None:
        super().__init__(f"asked for {asked:,} vector{'s' * (asked != 1)}, got {got:,}")
        self.got = got


def vectors_in(content: bytes, expected: int) -> Vectors:
    """In the order of the request; what is not finite is left to those who keep vectors."""
    entries = _entries(content)
    if len(entries) != expected:
        raise WrongCount(expected, len(entries))
    if not all("index" in entry for entry in entries):
        raise OddAnswer("no index says which text a vector is for")
    placed = {entry["index"]: entry.get("embedding") for entry in entries if isinstance(entry["index"], int)}
    if sorted(placed) != list(range(expected)):
        raise OddAnswer(f"the indexes of its vectors are not 0 to {expected - 1:,}, each once")
    try:
        vectors = np.array([placed[number] for number in range(expected)], dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        vectors = np.empty(0, dtype=np.float32)
    if vectors.ndim != 2:
        raise OddAnswer("its vectors are not lists of numbers, all of one length")
    return vectors


def _entries(content: bytes) -> list[dict[str, Any]]:
    try:
        try:
            answer = orjson.loads(content)
        except orjson.JSONDecodeError:
            answer = json.loads(content)  # takes the NaN that some servers write
        entries = answer["data"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise OddAnswer from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise OddAnswer
    return entries
