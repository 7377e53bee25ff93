"""The file of the cache: a SQLite database in WAL mode, which `chunkbus.store` opens, migrates and locks.

A killed process loses nothing that was committed. A power failure may lose the last commits, never the file.
If SQLite cannot read the file, calls raise `CacheDamaged`; `replace_damaged` renames the file and creates an empty one.
If another process has done that, the next call uses the new file.
"""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from chunksink.chunkbus.errors import NewerStore, StoreUnreadable
from chunksink.chunkbus.shortage import shortage
from chunksink.chunkbus.store import explained, open_store, opening, write_transaction
from chunksink.embeddings.errors import (
    CacheBusy,
    CacheDamaged,
    CacheOutOfResources,
    CacheTooNew,
    CacheUnavailable,
)
from chunksink.embeddings.references import split_key

if TYPE_CHECKING:
    from sqlite_utils import Database, Migrations

REMEDY = "; `chunksink cache verify --repair` sets it aside, and its vectors are computed again"

_APPLICATION_ID = 0x43534B45
"""Bytes 68 to 71 of the file: CSKE."""
_PAGE_SIZE = 16384
"""Nine vectors of 384 dimensions to a page, or five of 768. With pages of half the size, the file would be 12 % larger
for 384 dimensions, and 24 % for 768."""
_NEW_FILE_PRAGMAS = (f"page_size = {_PAGE_SIZE}", "auto_vacuum = incremental")
_PRAGMAS = (
    "synchronous = normal",
    "cell_size_check = on",
    "secure_delete = on",  # the vectors of a forgotten text must be overwritten
    "cache_size = -65536",
)
_BATCH_ROWS = 5000
_TABLES = (
    """CREATE TABLE model (
    fingerprint BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    max_length INTEGER,
    details TEXT NOT NULL
)""",
    """CREATE TABLE producer (
    id INTEGER PRIMARY KEY,
    fingerprint BLOB NOT NULL,
    details TEXT NOT NULL,
    UNIQUE (fingerprint, details)
)""",
    """CREATE TABLE vector (
    id INTEGER PRIMARY KEY,
    fingerprint BLOB NOT NULL,
    text_hash BLOB NOT NULL,
    precision INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    producer INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    vector BLOB NOT NULL,
    context_hash BLOB NOT NULL
)""",
    "CREATE UNIQUE INDEX vector_key ON vector (fingerprint, text_hash, context_hash)",
    "CREATE TABLE segment (name TEXT PRIMARY KEY, rows INTEGER NOT NULL)",
)
"""Exactly as SQLite stores them: `_database` compares them with the tables of the file. `segment` lists imported
segments."""


def _migrations() -> Migrations:
    from sqlite_utils import Migrations  # slow to import, and it imports click

    steps = Migrations("chunksink.embeddings")

    @steps()
    def create_tables(db: Database) -> None:
        for statement in _TABLES:
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")

    return steps


class CacheFile:
    """The file below a `VectorCache`. All threads of a process share one connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._db: Database | None = None
        self._inode = 0
        self.set_aside: tuple[str, ...] = ()
        """The new names of the damaged files that this object has replaced."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. The next use opens it again."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a short query."""
        with self._lock, _translated(self.path):
            return self._database().conn.execute(sql, parameters).fetchall()

    def scan(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a long query, in batches. Read all of them before writing anything."""
        with self._lock, _translated(self.path):
            cursor = self._database().conn.execute(sql, parameters)
            batch = cursor.fetchmany(_BATCH_ROWS)
        while batch:
            yield batch
            with self._lock, _translated(self.path):
                batch = cursor.fetchmany(_BATCH_ROWS)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction that excludes other writers. It is rolled back if the block or the commit raises."""
        with self._lock, _translated(self.path):
            db = self._database()
            try:
                with write_transaction(db):
                    yield db.conn
            except BaseException:
                self.close()  # in case the rollback failed
                raise

    def temporary_table(self, keys: Iterable[bytes]) -> str:
        """Writes these keys to a temporary table of `text_hash` and `context_hash`, and returns its name. The next call
        replaces it. Errors raised by `keys` pass through unchanged."""
        rows = map(split_key, keys)
        columns = "text_hash BLOB, context_hash BLOB, PRIMARY KEY (text_hash, context_hash)"
        self.read("DROP TABLE IF EXISTS temp.wanted")
        self.read(f"CREATE TEMP TABLE wanted ({columns}) WITHOUT ROWID")
        while batch := list(islice(rows, _BATCH_ROWS)):
            with self._lock, _translated(self.path), self._database().conn as connection:
                connection.executemany("INSERT OR IGNORE INTO temp.wanted VALUES (?, ?)", batch)
        return "temp.wanted"

    def shrink(self) -> None:
        """Returns the space of dropped rows to the file system."""
        with self._lock, _translated(self.path):
            connection = self._database().conn
            connection.executescript("PRAGMA incremental_vacuum")  # `execute` would run its first step only
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def replace_damaged(self) -> str | None:
        """Renames the damaged file and creates an empty one. Returns the new name, or None if another process has just
        done the same."""
        with self._lock, _translated(self.path):
            seen = self._inode
            self.close()
            with opening(self.path):
                if seen != inode(self.path):
                    return None
                kept = _set_aside(self.path)
            self.set_aside += (kept,)
            self._database()
            return kept

    def _database(self) -> Database:
        """The open database. If another process has set the file aside, the new file is opened."""
        if self._db is not None and self._inode != inode(self.path):
            self.close()
        if self._db is None:
            self._inode = inode(self.path)
            self._db = open_store(
                self.path, _migrations(), pragmas=_PRAGMAS, new_file_pragmas=_NEW_FILE_PRAGMAS, one_thread=False
            )
            self._db.conn.text_factory = partial(str, encoding="utf-8", errors="replace")
            self._inode = inode(self.path)
            if not {(sql,) for sql in _TABLES} <= set(self._db.execute("SELECT sql FROM sqlite_master")):
                raise _damaged(self.path, "its tables have changed")
        return self._db


def _set_aside(path: Path) -> str:
    """Renames the file and its log. The log goes first: if it stayed after a crash, SQLite would replay it into the
    new file."""
    number = 1
    while (kept := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    with suppress(FileNotFoundError):
        Path(f"{path}-wal").rename(f"{kept}-wal")
    Path(f"{path}-shm").unlink(missing_ok=True)
    path.rename(kept)
    return str(kept)


def inode(path: Path) -> int:
    """The inode of the file at this path; 0 if there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Translates errors of SQLite and of the store. The block must contain nothing but SQL."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise  # a bug: we used the library wrongly
    except NewerStore as exc:
        raise CacheTooNew(str(exc)) from exc
    except OSError as exc:
        raise _unavailable(exc, path) from exc
    except (sqlite3.Error, StoreUnreadable, UnicodeDecodeError) as exc:
        if isinstance(cause := explained(exc, path), OSError):
            raise _unavailable(cause, path) from exc
        # All our SQL is fixed and tested, and no row is large. So any other error (a missing table, a wrong type, a
        # malformed page) is caused by the content of the file.
        raise _damaged(path, str(exc.__cause__ or exc)) from exc


def _unavailable(error: OSError, path: Path) -> CacheUnavailable | CacheBusy:
    remedy = None if error.errno == errno.EIO else shortage(error)  # with EIO the message already has a remedy
    what = f"the cache {path}: {error.strerror or error}{f'; {remedy}' if remedy else ''}"
    if error.errno == errno.EBUSY:
        return CacheBusy(what)
    return CacheOutOfResources(what) if remedy or error.errno == errno.EIO else CacheUnavailable(what)


def _damaged(path: Path, what: str) -> CacheDamaged:
    return CacheDamaged(f"the cache {path} is damaged: {what}{REMEDY}")
