"""The file in which a cache travels. `exchange` writes and reads it.

Layout: the magic line; one line of JSON (the models); the rows; 32 bytes of sha256 over all of that. A row is its
model's number (2 bytes), precision (1), length in tokens (4), bytes of vector (4), text hash (32), checksum (16),
vector; integers are little-endian. Nothing in a file that was read is believed: `BadExport` says what is wrong.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson

from chunksink.embeddings.encoder import ModelInfo
from chunksink.embeddings.errors import BadExport, ExchangeError
from chunksink.embeddings.rows import KEY_BYTES, PRECISIONS, VectorRow, flaw

MAGIC = b"chunksink vectors 1\n"
MOST_MODELS = 1 << 16

_HEAD = struct.Struct("<HBII32s16s")
_DIGEST_BYTES = 32
_MAX_HEADER = 16_000_000
_MAX_VECTOR = 1 << 20


def head_of(models: Sequence[dict[str, Any]]) -> bytes:
    """What comes before the rows; each model has its `fingerprint`, `name`, `dimension` and `details`."""
    return MAGIC + orjson.dumps({"models": models}) + b"\n"


def packed(row: VectorRow, model: int) -> bytes:
    """One row of the model with this number."""
    head = _HEAD.pack(model, row.precision, row.tokens, len(row.vector), row.text_hash, row.checksum)
    return head + row.vector


@dataclass(frozen=True, slots=True)
class OpenExport:
    """An export whose checksum has matched."""

    path: Path
    file: BinaryIO
    keys: list[bytes]
    models: list[dict[str, Any]]
    start: int
    """Offset of the first row."""
    end: int

    def rows(self) -> Iterator[VectorRow]:
        """All rows, from the first; each has proved itself. Only one run through the file at a time."""
        _seek(self.file, self.start, self.path)
        left = self.end - self.start
        while left:
            head = _read(self.file, min(_HEAD.size, left), self.path)
            if len(head) != _HEAD.size:
                raise BadExport(f"{self.path} ends within a row")
            number, precision, tokens, size, text_hash, digest = _HEAD.unpack(head)
            left -= _HEAD.size + size
            if number >= len(self.keys) or size > _MAX_VECTOR or left < 0:
                raise BadExport(f"{self.path} holds a row that cannot be read")
            row = VectorRow(self.keys[number], text_hash, precision, tokens, digest, _read(self.file, size, self.path))
            reason = flaw(row)
            if reason is not None:
                raise BadExport(f"{self.path} holds a bad row: {reason}")
            yield row

    def info(self, row: VectorRow) -> ModelInfo:
        """What the file says of a row's model; only the fingerprint and the row itself are more than hearsay."""
        model = self.models[self.keys.index(row.fingerprint)]
        details = model["details"]
        precision = PRECISIONS[row.precision]
        max_length = details.get("max_length")
        unit: Literal["tokens", "characters"] = "characters" if details.get("length_unit") == "characters" else "tokens"
        return ModelInfo(
            name=str(model.get("name", "")),
            fingerprint=row.fingerprint.hex(),
            dimension=len(row.vector) // 4,
            max_length=max_length if isinstance(max_length, int) and 0 < max_length < 2**63 else None,
            precision=precision,
            requested=precision,
            long_texts="windows" if details.get("long_texts") == "windows" else "truncate",
            length_unit=unit,
            query_prompt=str(details.get("query_prompt", "")),
            passage_prompt=str(details.get("passage_prompt", "")),
            source=str(details.get("source", "")),
            device="import",
        )


def checked(file: BinaryIO, path: Path) -> OpenExport:
    """The export in this file, after its checksum has matched."""
    if _read(file, len(MAGIC), path) != MAGIC:
        raise BadExport(f"{path} is not an export of vectors that this chunksink can read")
    end = _seek(file, 0, path, os.SEEK_END) - _DIGEST_BYTES
    _seek(file, 0, path)
    digest = hashlib.sha256()
    left = end
    while left > 0 and (part := _read(file, min(left, 1 << 20), path)):
        digest.update(part)
        left -= len(part)
    if left or _read(file, _DIGEST_BYTES, path) != digest.digest():
        raise BadExport(f"{path} is damaged or cut off: its checksum does not match")
    _seek(file, len(MAGIC), path)
    line = _line(file, path)
    start = len(MAGIC) + len(line)
    try:
        models = orjson.loads(line)["models"]
        keys = [bytes.fromhex(model["fingerprint"]) for model in models]
        whole = all(len(key) == KEY_BYTES for key in keys) and all(isinstance(each["details"], dict) for each in models)
    except (ValueError, TypeError, KeyError, IndexError) as exc:
        raise BadExport(f"{path} has a header that cannot be read") from exc
    if not whole or len(set(keys)) != len(keys) or start > end:
        raise BadExport(f"{path} has a header that cannot be read")
    return OpenExport(path, file, keys, models, start, end)


# -- only what reads the file may be blamed on it ----------------------------------------------------------------


def _read(file: BinaryIO, size: int, path: Path) -> bytes:
    try:
        return file.read(size)
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def _line(file: BinaryIO, path: Path) -> bytes:
    try:
        return file.readline(_MAX_HEADER)
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def _seek(file: BinaryIO, offset: int, path: Path, whence: int = os.SEEK_SET) -> int:
    try:
        return file.seek(offset, whence)
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def _unreadable(path: Path, exc: OSError) -> ExchangeError:
    return ExchangeError(f"cannot read {path}: {exc.strerror or exc}")
