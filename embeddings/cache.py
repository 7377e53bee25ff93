"""The vector cache: one SQLite file of (model fingerprint, text hash) -> vector.

It promises:
- a vector is served only for the same text hash and fingerprint, after its row's checksum matched;
- a row that fails is reported as corrupt and never served; `put` replaces it;
- what `put` wrote has been committed when it returns, and survives a kill;
- a float32 vector is never replaced by a bfloat16 one;
- readers are not in the way of a writer, nor a writer of readers; two writers take turns.

`open` salvages a damaged file (see `salvage`) and says so in `salvaged`. How the file is read and written is in
`cachefile`, what the cache can tell about itself in `stats` and `maintenance`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import orjson

from chunksink.embeddings.cachefile import CacheFile, inode
from chunksink.embeddings.encoder import ModelInfo, PrecisionRequest, Vectors, satisfying
from chunksink.embeddings.errors import CacheBusy, CacheDamaged, CacheForeign, CacheUnavailable, VectorRefused
from chunksink.embeddings.references import raw_fingerprint
from chunksink.embeddings.rows import CODES, VectorRow, flaw, seal
from chunksink.embeddings.salvage import SalvageReport, holds_rows, put_aside, sound_rows
from chunksink.embeddings.schema import REMEDY, damaged, locked

_LOOKUP_SIZE = 1000
_COLUMNS = "vector (fingerprint, text_hash, precision, tokens, producer, checksum, vector) VALUES (?, ?, ?, ?, ?, ?, ?)"
_REPLACE = f"INSERT OR REPLACE INTO {_COLUMNS}"
"""As a new row, with an id above all that were there."""
_INSERT = f"""
INSERT INTO {_COLUMNS}
ON CONFLICT (fingerprint, text_hash) DO UPDATE SET
    precision = excluded.precision, tokens = excluded.tokens, producer = excluded.producer,
    checksum = excluded.checksum, vector = excluded.vector
WHERE excluded.precision < vector.precision
"""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a lookup found."""

    positions: np.ndarray[Any, np.dtype[np.intp]]
    """Indices into the hashes that were asked for."""
    vectors: Vectors
    """One row for each position."""
    tokens: np.ndarray[Any, np.dtype[np.int64]]
    """Length in tokens of each text before any cut; 0 where it is not known."""
    corrupt: tuple[bytes, ...]
    """Text hashes whose row is there but failed its check; they count as not found."""
    outdated: tuple[bytes, ...]
    """Text hashes whose row is being recomputed; they count as not found."""


class VectorCache(CacheFile):
    """An open cache. Usable from several threads, one at a time; processes open their own."""

    def __init__(self, path: Path, *, read_only: bool, busy_seconds: float) -> None:
        """Use `open`."""
        super().__init__(path, read_only=read_only, busy_seconds=busy_seconds)
        self.salvaged: tuple[SalvageReport, ...] = ()
        self._producers: dict[tuple[bytes, bytes], int] = {}
        self._outdated: dict[bytes, int] = {}
        """By model: up to this row, vectors count as missing, because they are being recomputed."""

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        read_only: bool = False,
        salvage: bool = True,
        busy_seconds: float = 30.0,
    ) -> Self:
        """Opens a cache; a missing file is made, unless `read_only`. `":memory:"` is a cache for one process.

        With `salvage`, a damaged file is replaced by one with all its sound rows. Raises CacheForeign,
        CacheTooNew, CacheBusy, CacheUnavailable, and CacheDamaged where it may not salvage.
        """
        cache = cls(Path(path), read_only=read_only, busy_seconds=busy_seconds)
        try:
            cache._live()
        except (CacheDamaged, CacheForeign) as exc:
            if isinstance(exc, CacheForeign) and not holds_rows(cache.path):
                raise
            told = exc if isinstance(exc, CacheDamaged) else damaged(cache.path, "it has lost its header")
            if read_only or not salvage:
                raise told from exc
            cache.salvage(str(told))
            cache._live()
        return cache

    # -- vectors ---------------------------------------------------------------------------------------------

    def lookup(
        self,
        fingerprint: str,
        text_hashes: Sequence[bytes],
        *,
        dimension: int,
        request: PrecisionRequest = "auto",
    ) -> Found:
        """All cached vectors of these texts (32 raw bytes each, no two the same) that satisfy the request."""
        key, codes = raw_fingerprint(fingerprint), {CODES[precision] for precision in satisfying(request)}
        place = {text_hash: number for number, text_hash in enumerate(text_hashes)}
        if len(place) != len(text_hashes):
            raise ValueError("the text hashes of one lookup must be distinct")
        positions: list[int] = []
        blobs: list[bytes] = []
        lengths: list[int] = []
        corrupt: list[bytes] = []
        outdated: list[bytes] = []
        last_outdated = self._outdated.get(key, 0)
        for start in range(0, len(text_hashes), _LOOKUP_SIZE):
            some = text_hashes[start : start + _LOOKUP_SIZE]
            marks = ",".join("?" * len(some))
            for number_of_row, text_hash, precision, tokens, digest, vector in self.read(
                "SELECT id, text_hash, precision, tokens, checksum, vector FROM vector "
                f"WHERE fingerprint = ? AND text_hash IN ({marks})",
                (key, *some),
            ):
                number = place.get(text_hash)
                if number is None:  # a damaged index led to another row
                    continue
                if flaw((key, text_hash, precision, tokens, digest, vector), dimension) is not None:
                    corrupt.append(text_hash)
                elif number_of_row <= last_outdated:
                    outdated.append(text_hash)
                elif precision in codes:
                    positions.append(number)
                    blobs.append(vector)
                    lengths.append(tokens)
        vectors = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dimension)
        where, found_tokens = np.array(positions, dtype=np.intp), np.array(lengths, dtype=np.int64)
        return Found(where, vectors, found_tokens, tuple(corrupt), tuple(outdated))

    def outdate(self, fingerprint: str) -> int:
        """From now on lookups here find vectors of this model only if they are computed later; until then each stays
        in the file. Returns the last row that is outdated."""
        [(last,)] = self.read("SELECT coalesce(max(id), 0) FROM vector")
        self._outdated[raw_fingerprint(fingerprint)] = int(last)
        return int(last)

    def put(
        self,
        info: ModelInfo,
        text_hashes: Sequence[bytes],
        vectors: Vectors,
        tokens: Sequence[int] | None = None,
        *,
        replaced: Sequence[bytes] = (),
    ) -> None:
        """Commits vectors of one model; those of the texts that are `replaced` are dropped with the same commit.

        Vectors that are not finite, or of the wrong dimension, are refused with all their siblings.
        """
        if vectors.shape != (len(text_hashes), info.dimension):
            raise VectorRefused(f"{vectors.shape} is not {len(text_hashes)} vectors of {info.dimension} dimensions")
        if not np.isfinite(vectors).all():
            raise VectorRefused("a vector that is not finite must not be cached")
        key, code = raw_fingerprint(info.fingerprint), CODES[info.precision]
        counts = tokens if tokens is not None else [0] * len(text_hashes)
        stored = np.ascontiguousarray(vectors, dtype="<f4")
        rows = [
            seal(key, text_hash, code, int(count), vector.tobytes())
            for text_hash, count, vector in zip(text_hashes, counts, stored, strict=True)
        ]
        self.put_rows(rows, info, replaced={(key, text_hash) for text_hash in replaced})

    def put_rows(
        self, rows: Sequence[VectorRow], info: ModelInfo | None, *, replaced: Collection[tuple[bytes, bytes]] = ()
    ) -> None:
        """Commits sealed rows in one transaction; `info` describes their model, where it is known."""
        with self.transaction() as connection:
            producer = self._register(connection, info) if info else 0
            for row in rows:
                statement = _REPLACE if (row.fingerprint, row.text_hash) in replaced else _INSERT
                connection.execute(
                    statement,
                    (row.fingerprint, row.text_hash, row.precision, row.tokens, producer, row.checksum, row.vector),
                )

    def _register(self, connection: sqlite3.Connection, info: ModelInfo) -> int:
        """The number of (model, libraries, device), recorded when it is first seen."""
        key = raw_fingerprint(info.fingerprint)
        libraries = {"libraries": dict(info.libraries), "device": info.device}
        producer = orjson.dumps(libraries, option=orjson.OPT_SORT_KEYS)
        if (key, producer) not in self._producers:
            details = asdict(info) | {"libraries": dict(info.libraries)}
            for passing in ("libraries", "device", "precision", "requested", "fingerprint", "files"):
                del details[passing]
            connection.execute(
                "INSERT INTO model (fingerprint, name, dimension, max_length, details) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (fingerprint) DO NOTHING",
                (key, info.name, info.dimension, info.max_length, orjson.dumps(details).decode()),
            )
            connection.execute(
                "INSERT OR IGNORE INTO producer (fingerprint, details) VALUES (?, ?)", (key, producer.decode())
            )
            (number,) = connection.execute(
                "SELECT id FROM producer WHERE fingerprint = ? AND details = ?", (key, producer.decode())
            ).fetchone()
            self._producers[key, producer] = number
        return self._producers[key, producer]

    def _forget(self) -> None:
        self._producers.clear()

    # -- salvage ---------------------------------------------------------------------------------------------

    def salvage(self, reason: str = "asked for") -> SalvageReport | None:
        """Replaces the file by one with all its sound rows; None when another process has just done so.

        The damaged file is kept. Models and producers of the rows are recorded again when they are next used.
        """
        with self._lock:
            seen, self._inode = self._inode, 0
            self.close()
            with locked(self.path, alone=True, busy_seconds=self._busy_seconds):
                if seen and seen != inode(self.path):
                    return None
                try:
                    report = self._replace(reason.removesuffix(REMEDY))
                except OSError as exc:  # the disk fails, or has no links
                    raise CacheUnavailable(f"cannot salvage the cache {self.path}: {exc.strerror or exc}") from exc
            self.salvaged += (report,)
            return report

    def _replace(self, reason: str) -> SalvageReport:
        fresh_path = self.path.with_name(f".{self.path.name}.salvage")
        _remove_with_log(fresh_path)
        fresh = VectorCache(fresh_path, read_only=False, busy_seconds=self._busy_seconds)
        try:
            batch: list[VectorRow] = []
            for row in sound_rows(self.path):
                batch.append(row)
                if len(batch) == 2000:
                    fresh.put_rows(batch, None)
                    batch = []
            fresh.put_rows(batch, None)
            (rows,) = fresh.read("SELECT count(*) FROM vector")[0]
            (busy, _, _) = fresh.read("PRAGMA wal_checkpoint(TRUNCATE)")[0]
            if busy:
                raise CacheBusy(f"another process reads {fresh_path}; wait for it or end it")
            fresh.close()
            kept = put_aside(self.path, fresh_path)
        finally:
            fresh.close()
            _remove_with_log(fresh_path)
        return SalvageReport(rows, str(kept), reason)


def _remove_with_log(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", ".lock"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
