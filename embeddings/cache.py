"""The vector cache: one SQLite file of (model fingerprint, text hash, context hash) -> vector.

It promises:
- a vector is returned only for the same text, context and fingerprint, if its row's checksum matches;
- a row that fails this check is reported as corrupt and never returned; `put` replaces it on request;
- vectors are committed when `put` returns, and survive a kill;
- a sound vector is replaced by a less precise one only on request;
- readers and a writer in different processes do not block each other; two writers, and threads, take turns.

If SQLite cannot read the file, `open` and `vectors_for` set it aside and create an empty one; `set_aside` lists such
files. `verify` reports the damage, and sets the file aside only with `repair`. Other calls raise CacheDamaged.
`cachefile` opens, reads and writes the file, `stats` describes its content, `maintenance` checks and shrinks it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson

from chunksink.embeddings.cachefile import CacheFile, inode
from chunksink.embeddings.encoder import ModelInfo, PrecisionRequest, Vectors, acceptable_precisions
from chunksink.embeddings.errors import CacheDamaged, WrongVectors
from chunksink.embeddings.references import raw_fingerprint, split_key
from chunksink.embeddings.rows import CODES, COLUMNS, flaw, row_of

Row = tuple[Any, ...]
"""A fingerprint and the values of `COLUMNS`."""

_LOOKUP_SIZE = 1000
_COLUMNS = f"vector (producer, fingerprint, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_REPLACE = f"INSERT OR REPLACE INTO {_COLUMNS}"
"""Replaces a row. The new row gets the highest id, so that it does not count as outdated (see `outdate`)."""
_INSERT_OR_IMPROVE = f"""
INSERT INTO {_COLUMNS}
ON CONFLICT (fingerprint, text_hash, context_hash) DO UPDATE SET
    precision = excluded.precision, tokens = excluded.tokens, producer = excluded.producer,
    checksum = excluded.checksum, vector = excluded.vector
WHERE excluded.precision < vector.precision
"""


@dataclass(frozen=True, slots=True)
class Origin:
    """The model, libraries and device that computed a vector, as the cache records them."""

    fingerprint: str
    model: str
    """Name, dimension, limits and prompts of the model, as JSON."""
    producer: str
    """Library versions and device, as JSON."""

    @classmethod
    def of(cls, info: ModelInfo) -> Self:
        details = asdict(info)
        for name in ("libraries", "device", "runtime", "precision", "requested", "fingerprint", "files"):
            del details[name]
        libraries = {"libraries": dict(info.libraries), "device": info.device}
        producer = orjson.dumps(libraries, option=orjson.OPT_SORT_KEYS).decode()
        return cls(info.fingerprint, orjson.dumps(details).decode(), producer)


@dataclass(frozen=True, slots=True, eq=False)
class LookupResult:
    positions: np.ndarray[Any, np.dtype[np.intp]]
    """Indices into the requested keys."""
    vectors: Vectors
    """A row for each position."""
    lengths: np.ndarray[Any, np.dtype[np.int64]]
    """As in `EncodedBatch.lengths`."""
    corrupt: tuple[bytes, ...]
    """Keys whose row failed its check; they count as not found."""
    outdated: tuple[bytes, ...]
    """Keys whose row is outdated; they count as not found."""


class VectorCache(CacheFile):
    """An open cache. Usable from several threads; each process opens its own."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._outdated: dict[bytes, tuple[int, int]] = {}
        """By model: the inode of the cache file, and the id up to which rows are outdated."""

    @classmethod
    def open(cls, path: Path | str, *, replace_damaged: bool = True) -> Self:
        """Opens a cache, and creates a missing file.

        With `replace_damaged`, a damaged file is set aside and an empty one takes its place; otherwise CacheDamaged.
        Also raises CacheTooNew, CacheBusy and CacheUnavailable.
        """
        cache = cls(Path(path))
        try:
            cache.read("SELECT 1")
        except CacheDamaged:
            cache.close()
            if not replace_damaged:
                raise
            cache.replace_damaged()
        return cache

    def lookup(
        self,
        fingerprint: str,
        keys: Sequence[bytes],
        *,
        dimension: int,
        request: PrecisionRequest = "auto",
    ) -> LookupResult:
        """The cached vectors of these keys that satisfy the request. The keys are raw bytes and distinct."""
        model, codes = raw_fingerprint(fingerprint), {CODES[precision] for precision in acceptable_precisions(request)}
        place = {split_key(key): number for number, key in enumerate(keys)}
        if len(place) != len(keys):
            raise ValueError("the keys of one lookup must be distinct")
        positions: list[int] = []
        blobs: list[bytes] = []
        lengths: list[int] = []
        corrupt: list[bytes] = []
        outdated: list[bytes] = []
        last_outdated = self.last_outdated(fingerprint)
        for start in range(0, len(keys), _LOOKUP_SIZE):
            for row in self.rows(model, keys[start : start + _LOOKUP_SIZE]):
                row_id, text_hash, context_hash, precision, tokens, _, vector = row
                number = place.get((text_hash, context_hash))
                if number is None:  # a damaged index led to another row
                    continue
                if flaw((model, *row[1:]), dimension) is not None:
                    corrupt.append(keys[number])
                elif row_id <= last_outdated:
                    outdated.append(keys[number])
                elif precision in codes:
                    positions.append(number)
                    blobs.append(vector)
                    lengths.append(tokens)
        vectors = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dimension)
        where, found_tokens = np.array(positions, dtype=np.intp), np.array(lengths, dtype=np.int64)
        return LookupResult(where, vectors, found_tokens, tuple(corrupt), tuple(outdated))

    def rows(self, model: bytes, keys: Sequence[bytes]) -> list[tuple[Any, ...]]:
        """The id and `COLUMNS` of the rows with these keys, unchecked. Takes up to a thousand distinct keys."""
        if not keys:
            return []
        pairs = ",".join(["(?,?)"] * len(keys))
        return self.read(
            f"WITH wanted (text, context) AS (VALUES {pairs}) SELECT id, {COLUMNS} FROM wanted CROSS JOIN vector "
            "ON fingerprint = ? AND text_hash = text AND context_hash = context",  # three times as fast as IN
            (*chain.from_iterable(map(split_key, keys)), model),
        )

    def count_rows(self, fingerprint: str) -> int:
        """How many rows a model has."""
        [(rows,)] = self.read("SELECT count(*) FROM vector WHERE fingerprint = ?", (raw_fingerprint(fingerprint),))
        return int(rows)

    def outdate(self, fingerprint: str) -> None:
        """From now on, lookups of this object ignore the model's existing vectors. They stay in the file until they are
        replaced."""
        [(last,)] = self.read("SELECT coalesce(max(id), 0) FROM vector")
        self._outdated[raw_fingerprint(fingerprint)] = (self._inode, int(last))

    def last_outdated(self, fingerprint: str) -> int:
        """Rows of this model up to this id are outdated; 0 if none are, or if a new file has replaced the old one."""
        file, last = self._outdated.get(raw_fingerprint(fingerprint), (0, 0))
        return last if file == inode(self.path) else 0

    def put(
        self,
        info: ModelInfo,
        keys: Sequence[bytes],
        vectors: Vectors,
        tokens: Sequence[int] | None = None,
        *,
        replaced: Collection[bytes] = (),
    ) -> None:
        """Commits vectors of one model. The row of a key in `replaced` is replaced even if it is more precise.

        If a vector is not finite or has the wrong dimension, nothing is committed.
        """
        rows = rows_of_vectors(info, keys, vectors, tokens)
        with self.transaction() as connection:
            producer = _register(connection, Origin.of(info))
            for key, row in zip(keys, rows, strict=True):
                connection.execute(_REPLACE if key in replaced else _INSERT_OR_IMPROVE, (producer, *row))

    def add(self, origin: Origin, rows: Sequence[Row]) -> int:
        """Commits rows that passed `flaw`. Returns how many the cache lacked, or had in lower precision."""
        with self.transaction() as connection:
            producer = _register(connection, origin)
            added = connection.executemany(_INSERT_OR_IMPROVE, ((producer, *row) for row in rows)).rowcount
        return max(added, 0)  # -1 without rows

    def record_segment(self, name: str, rows: int) -> None:
        """Records that all rows of a segment have been added."""
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO segment VALUES (?, ?)", (name, rows))


def rows_of_vectors(
    info: ModelInfo, keys: Sequence[bytes], vectors: Vectors, tokens: Sequence[int] | None
) -> list[Row]:
    """The rows of these vectors; `WrongVectors` if one is not finite or has the wrong dimension."""
    if vectors.shape != (len(keys), info.dimension):
        raise WrongVectors(f"expected {len(keys)} vectors of {info.dimension} dimensions, got shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        raise WrongVectors("a vector that is not finite must not be cached")
    model, code = raw_fingerprint(info.fingerprint), CODES[info.precision]
    counts = tokens if tokens is not None else [0] * len(keys)
    stored = np.ascontiguousarray(vectors, dtype="<f4")
    return [
        row_of(model, key, code, int(count), vector.tobytes())
        for key, count, vector in zip(keys, counts, stored, strict=True)
    ]


def _register(connection: sqlite3.Connection, origin: Origin) -> int:
    """Records the model and its producer (libraries and device). Returns the producer's id."""
    key, details = raw_fingerprint(origin.fingerprint), orjson.loads(origin.model)
    connection.execute(
        "INSERT INTO model (fingerprint, name, dimension, max_length, details) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (fingerprint) DO NOTHING",
        (key, details["name"], details["dimension"], details["max_length"], origin.model),
    )
    connection.execute("INSERT OR IGNORE INTO producer (fingerprint, details) VALUES (?, ?)", (key, origin.producer))
    (number,) = connection.execute(
        "SELECT id FROM producer WHERE fingerprint = ? AND details = ?", (key, origin.producer)
    ).fetchone()
    return int(number)
