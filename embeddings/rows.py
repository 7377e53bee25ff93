"""The stored form of a cached vector, with a checksum.

The checksum covers model fingerprint and key (the hashes of text and context), the precision, the length of the text
and the vector. So a row can be checked alone, on any machine, even if the index or the file around it is damaged.
"""

from __future__ import annotations

import hashlib
import math
import struct

import numpy as np

from chunksink.embeddings.context import CONTEXT_BYTES
from chunksink.embeddings.encoder import Precision
from chunksink.embeddings.references import TEXT_BYTES, split_key

CODES: dict[Precision, int] = {"float32": 1, "bfloat16": 2, "int8": 3}
"""The stored number of each precision. A lower number is more precise."""

PRECISIONS: dict[int, Precision] = {code: precision for precision, code in CODES.items()}

COLUMNS = "text_hash, context_hash, precision, tokens, checksum, vector"
"""`flaw` checks rows that consist of a fingerprint, followed by these columns."""

_NUMBERS = struct.Struct("<BI")
_MAX_TOKENS = 2**32 - 1
_NUMBER = np.dtype("<f4")


def checksum(fingerprint: bytes, key: bytes, precision: int, tokens: int, vector: bytes) -> bytes:
    """The checksum of a row, 16 bytes."""
    numbers = _NUMBERS.pack(precision, tokens)
    return hashlib.sha256(b"".join((fingerprint, key, numbers, vector))).digest()[:16]


def row_of(fingerprint: bytes, key: bytes, precision: int, tokens: int, vector: bytes) -> tuple[bytes | int, ...]:
    """The fingerprint, then the values of `COLUMNS`."""
    tokens = min(max(tokens, 0), _MAX_TOKENS)
    digest = checksum(fingerprint, key, precision, tokens, vector)
    return fingerprint, *split_key(key), precision, tokens, digest, vector


def flaw(row: tuple[object, ...], dimension: int | None = None) -> str | None:
    """Why a row that was read from the file is bad, or None. A damaged file may have values of any type."""
    match row:
        case bytes(model), bytes(text_hash), bytes(context_hash), int(precision), int(tokens), digest, bytes(vector):
            pass
        case _:
            return "wrong types"
    if not 0 <= tokens <= _MAX_TOKENS:
        return "invalid length"
    if precision not in PRECISIONS:
        return "unknown precision"
    if not len(model) == len(text_hash) == TEXT_BYTES or len(context_hash) not in (0, CONTEXT_BYTES):
        return "not a key"
    if digest != checksum(model, text_hash + context_hash, precision, tokens, vector):
        return "checksum mismatch"
    if len(vector) % 4 or not vector or (dimension is not None and len(vector) != 4 * dimension):
        return "wrong dimension"
    numbers = np.frombuffer(vector, dtype=_NUMBER)
    # The dot product is a fast check, but it may overflow although all numbers are finite.
    if not math.isfinite(numbers.dot(numbers)) and not np.isfinite(numbers).all():
        return "not finite"
    return None
