"""The vector cache: one SQLite file of (model fingerprint, text hash) -> vector.

It promises:
- a vector is served only for the same text hash and fingerprint, after its row's checksum matched;
- a row that fails is reported as corrupt and never served; `put` replaces it;
- what `put` wrote has been committed when it returns, and survives a kill;
- a float32 vector is never replaced by a bfloat16 one;
- readers are not in the way of a writer, nor a writer of readers; two writers take turns.

`open` salvages a damaged file (see `salvage`) and says so in `salvaged`. What the cache can tell about itself is
in `maintenance`, how it travels in `exchange`.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import orjson

from embeddings.encoder import ModelInfo, PrecisionRequest, Vectors
from embeddings.errors import CacheBusy, CacheDamaged, CacheForeign, VectorRefused
from embeddings.references import raw_fingerprint
from embeddings.rows import CODES, Row, checksum, codes_for, seal
from embeddings.salvage import SalvageReport, holds_rows, put_aside, sound_rows
from embeddings.schema import IN_MEMORY, connect, locked, translated

_LOOKUP_SIZE = 1000
_INSERT = """
INSERT INTO vector (fingerprint, text_hash, precision, tokens, producer, checksum, vector)
VALUES (?, ?, ?, ?, ?, ?, ?)
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


class VectorCache:
    """An open cache. Usable from several threads, one at a time; processes open their own."""

    def __init__(self, path: Path, *, read_only: bool, busy_seconds: float) -> None:
        """Use `open`."""
        self.path = path
        self.read_only = read_only
        self.salvaged: tuple[SalvageReport, ...] = ()
        self._busy_seconds = busy_seconds
        self._lock = threading.RLock()
        self._producers: dict[tuple[bytes, bytes], int] = {}
        self._connection: sqlite3.Connection | None = None
        self._inode = 0

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
            if read_only or not salvage:
                remedy = "`chunksink cache verify --repair` salvages its sound rows"
                raise CacheDamaged(f"the cache {path} is damaged; {remedy}") from exc
            cache.salvage(str(exc))
            cache._live()
        return cache

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file; the cache opens it again when it is used again (an in-memory one starts empty)."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

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
        key, codes = raw_fingerprint(fingerprint), codes_for(request)
        place = {text_hash: number for number, text_hash in enumerate(text_hashes)}
        if len(place) != len(text_hashes):
            raise ValueError("the text hashes of one lookup must be distinct")
        positions: list[int] = []
        blobs: list[bytes] = []
        lengths: list[int] = []
        corrupt: list[bytes] = []
        size = 4 * dimension
        for start in range(0, len(text_hashes), _LOOKUP_SIZE):
            some = text_hashes[start : start + _LOOKUP_SIZE]
            marks = ",".join("?" * len(some))
            for text_hash, precision, tokens, digest, vector in self.read(
                "SELECT text_hash, precision, tokens, checksum, vector FROM vector "
                f"WHERE fingerprint = ? AND text_hash IN ({marks})",
                (key, *some),
            ):
                number = place.get(text_hash)
                if number is None:  # a damaged index led to another row
                    continue
                if not _is_sound(key, text_hash, precision, tokens, digest, vector, size):
                    corrupt.append(text_hash)
                elif precision in codes:
                    positions.append(number)
                    blobs.append(vector)
                    lengths.append(tokens)
        vectors = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dimension)
        where, found_tokens = np.array(positions, dtype=np.intp), np.array(lengths, dtype=np.int64)
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():  # a sealed row holds finite numbers only; an older or foreign writer may differ
            corrupt += [text_hashes[position] for position in where[~finite]]
            where, vectors, found_tokens = where[finite], vectors[finite], found_tokens[finite]
        return Found(where, vectors, found_tokens, tuple(corrupt))

    def put(
        self,
        info: ModelInfo,
        text_hashes: Sequence[bytes],
        vectors: Vectors,
        tokens: Sequence[int] | None = None,
        *,
        corrupt: Sequence[bytes] = (),
    ) -> None:
        """Commits vectors of one model; rows named `corrupt` are dropped first.

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
        self.put_rows(rows, info, corrupt=[(key, text_hash) for text_hash in corrupt])

    def put_rows(
        self, rows: Sequence[Row], info: ModelInfo | None, *, corrupt: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        """Commits sealed rows in one transaction; `info` describes their model, where it is known."""
        with self.transaction() as connection:
            producer = self._register(connection, info) if info else 0
            connection.executemany("DELETE FROM vector WHERE fingerprint = ? AND text_hash = ?", corrupt)
            connection.executemany(
                _INSERT,
                (
                    (row.fingerprint, row.text_hash, row.precision, row.tokens, producer, row.checksum, row.vector)
                    for row in rows
                ),
            )

    def _register(self, connection: sqlite3.Connection, info: ModelInfo) -> int:
        """The number of (model, libraries, device), recorded when it is first seen."""
        key = raw_fingerprint(info.fingerprint)
        libraries = {"libraries": dict(info.libraries), "device": info.device}
        producer = orjson.dumps(libraries, option=orjson.OPT_SORT_KEYS)
        if (key, producer) not in self._producers:
            details = asdict(info) | {"libraries": dict(info.libraries)}
            for passing in ("libraries", "device", "precision", "requested", "fingerprint"):
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

    # -- the file, for this package ------------------------------------------------------------------------

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a short query; for long scans ask page by page, so that no read transaction stays open."""
        with self._lock, translated(self.path):
            return self._live().execute(sql, parameters).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One write transaction, alone among writers; rolled back when the block raises."""
        with self._lock, translated(self.path), ExitStack() as held:
            # Opening may need the file alone, so it comes before the shared lock; then nobody may have replaced it.
            connection = self._live()
            held.enter_context(locked(self.path, alone=False, busy_seconds=self._busy_seconds))
            while not self._is_current():
                held.close()
                connection = self._live()
                held.enter_context(locked(self.path, alone=False, busy_seconds=self._busy_seconds))
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                self._producers.clear()
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def temporary(self, text_hashes: Iterable[bytes]) -> Iterator[str]:
        """Name of a temporary table with these text hashes; it is on disk, and only this connection sees it."""
        with self._lock, translated(self.path):
            connection = self._live()
            connection.execute("CREATE TEMP TABLE wanted (text_hash BLOB PRIMARY KEY) WITHOUT ROWID")
            connection.execute("BEGIN")  # deferred: takes no lock on the cache itself
            try:
                connection.executemany(
                    "INSERT OR IGNORE INTO wanted VALUES (?)", ((text_hash,) for text_hash in text_hashes)
                )
            finally:
                connection.execute("COMMIT")
        try:
            yield "temp.wanted"
        finally:
            with self._lock, translated(self.path):
                self._live().execute("DROP TABLE IF EXISTS temp.wanted")

    def shrink(self) -> None:
        """Gives the space of dropped rows back to the file system."""
        with self._lock, translated(self.path):
            self._producers.clear()  # some may have been dropped too
            connection = self._live()
            connection.executescript("PRAGMA incremental_vacuum")  # a script runs it to its end
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _live(self) -> sqlite3.Connection:
        """The connection; a new one if another process has put a salvaged file in place of ours."""
        if self._connection is not None and not self._is_current():
            self.close()
        if self._connection is None:
            self._producers.clear()
            self._inode = _inode(self.path)
            self._connection = connect(self.path, read_only=self.read_only, busy_seconds=self._busy_seconds)
            self._inode = _inode(self.path)
        return self._connection

    def _is_current(self) -> bool:
        return self.path == IN_MEMORY or self._inode == _inode(self.path)

    def salvage(self, reason: str = "asked for") -> SalvageReport | None:
        """Replaces the file by one with all its sound rows; None when another process has just done so.

        The damaged file is kept. Models and producers of the rows are recorded again when they are next used.
        """
        with self._lock:
            seen, self._inode = self._inode, 0
            self.close()
            with locked(self.path, alone=True, busy_seconds=self._busy_seconds):
                if seen and seen != _inode(self.path):
                    return None
                report = self._replace(reason)
            self.salvaged += (report,)
            return report

    def _replace(self, reason: str) -> SalvageReport:
        fresh_path = self.path.with_name(f".{self.path.name}.salvage")
        _remove_with_log(fresh_path)
        fresh = VectorCache(fresh_path, read_only=False, busy_seconds=self._busy_seconds)
        try:
            batch: list[Row] = []
            for row in sound_rows(self.path):
                batch.append(row)
                if len(batch) == 2000:
                    fresh.put_rows(batch, None)
                    batch = []
            fresh.put_rows(batch, None)
            (rows,) = fresh.read("SELECT count(*) FROM vector")[0]
            (busy, _, _) = fresh.read("PRAGMA wal_checkpoint(TRUNCATE)")[0]
            if busy:
                raise CacheBusy(f"another process reads {fresh_path}")
            fresh.close()
            kept = put_aside(self.path, fresh_path)
        finally:
            fresh.close()
            _remove_with_log(fresh_path)
        return SalvageReport(rows, str(kept), reason)


def _is_sound(
    key: bytes, text_hash: bytes, precision: object, tokens: object, digest: object, vector: object, size: int
) -> bool:
    """`rows.flaw` for the hot path: the same checks, finiteness left to the caller, who has all vectors at once."""
    try:
        return len(vector) == size and checksum(key, text_hash, precision, tokens, vector) == digest  # type: ignore[arg-type]
    except Exception:  # whatever the disk gave us in place of a blob or a number
        return False


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _remove_with_log(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", ".lock"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
