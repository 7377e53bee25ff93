"""The cache file: how it is recognised, migrated and locked, and what SQLite's errors about it mean.

One SQLite file in WAL mode, so that readers are never in the way of the writer. `synchronous=NORMAL`: a killed
process loses nothing that was committed; a machine that loses power may lose the last commits, never the file.
Beside it lies `<name>.lock`: held shared while rows are written, alone while the file is made or replaced.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chunksink.chunkbus.shortage import shortage
from chunksink.embeddings.errors import (
    CacheBusy,
    CacheDamaged,
    CacheError,
    CacheForeign,
    CacheFull,
    CacheTooNew,
    CacheUnavailable,
)

if TYPE_CHECKING:
    from sqlite_utils.migrations import Migrations

MAGIC = b"SQLite format 3\x00"
APPLICATION_ID = 0x43534B45
"""Bytes 68 to 71 of the file: CSKE."""
PAGE_SIZE = 8192
"""Five vectors of 384 dimensions to a page."""
IN_MEMORY = Path(":memory:")
REMEDY = "; `chunksink cache verify --repair` sets it aside, and its vectors are computed again"

_START = MAGIC + PAGE_SIZE.to_bytes(2, "big")
_JOURNAL_FORMATS = (b"\1\1", b"\2\2")

_TABLES = """
CREATE TABLE model (
    fingerprint BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    max_length INTEGER,
    details TEXT NOT NULL
);
CREATE TABLE producer (
    id INTEGER PRIMARY KEY,
    fingerprint BLOB NOT NULL,
    details TEXT NOT NULL,
    UNIQUE (fingerprint, details)
);
CREATE TABLE vector (
    id INTEGER PRIMARY KEY,
    fingerprint BLOB NOT NULL,
    text_hash BLOB NOT NULL,
    precision INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    producer INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    vector BLOB NOT NULL
);
CREATE UNIQUE INDEX vector_key ON vector (fingerprint, text_hash);
"""


def migrations() -> Migrations:
    """All steps from an empty file to the present form. Never change a step; add one."""
    from sqlite_utils import Database, Migrations  # slow to import, and it imports click

    steps = Migrations("chunksink.embeddings")

    @steps()
    def m001_vectors(db: Database) -> None:
        for statement in _TABLES.split(";"):
            if statement.strip():
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    return steps


def connect(path: Path, *, read_only: bool, busy_seconds: float) -> sqlite3.Connection:
    """An open connection to a cache in its present form; raises what `errors` lists."""
    if path != IN_MEMORY:
        _recognise(path, read_only)
        name = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
    else:
        name = ":memory:"
    with translated(path):
        connection = sqlite3.connect(
            name,
            uri=path != IN_MEMORY,
            timeout=busy_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
        )
    try:
        with translated(path):
            connection.text_factory = _lenient_text
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA secure_delete = ON")  # who forgets a text wants its vectors overwritten
            connection.execute("PRAGMA cache_size = -65536")
            _bring_up_to_date(connection, path, read_only, busy_seconds)
    except BaseException:
        connection.close()
        raise
    return connection


def _recognise(path: Path, read_only: bool) -> None:
    """Refuses what is not ours, or no longer whole, before SQLite touches it."""
    # Asked before the file is read: whoever makes a cache writes to the file first.
    has_log = _size(Path(f"{path}-wal")) > 0
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        if read_only:
            raise CacheUnavailable(f"there is no cache at {path}") from None
        _make(path)
        return
    except OSError as exc:
        raise CacheUnavailable(f"cannot open the cache {path}: {exc.strerror}") from exc
    if not head and not has_log:
        return
    if len(head) < 100 and head[: len(_START)] == _START[: len(head)]:
        raise damaged(path, f"only {len(head)} bytes of it are left")  # SQLite would begin anew and delete the log
    if not head.startswith(MAGIC) and head[68:72] == _application_id():
        raise damaged(path, "its header is not whole")
    if head.startswith(MAGIC) and head[68:72] in (_application_id(), bytes(4)):
        if head[18:20] not in _JOURNAL_FORMATS:  # SQLite would take it for a file that must not be written
            raise damaged(path, "its header has no known format")
        return
    kind = "a SQLite database, but not a chunksink cache" if head.startswith(MAGIC) else "not a chunksink cache"
    raise CacheForeign(f"{path} is {kind}; move the file away")


def require_ours(path: Path) -> None:
    """Raises CacheForeign unless the header of a damaged file is one of ours, or what is left of one."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except OSError as exc:
        raise CacheUnavailable(f"cannot open the cache {path}: {exc.strerror}") from exc
    if head[: len(_START)] != _START[: len(head)] and head[68:72] != _application_id():
        raise CacheForeign(f"{path} is damaged, and perhaps not a chunksink cache; move the file away")


def _application_id() -> bytes:
    return APPLICATION_ID.to_bytes(4, "big")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _make(path: Path) -> None:
    """An empty file, for its owner alone."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(0o600)
    except OSError as exc:
        raise CacheUnavailable(f"cannot make the cache {path}: {exc.strerror}") from exc


def _bring_up_to_date(connection: sqlite3.Connection, path: Path, read_only: bool, busy_seconds: float) -> None:
    from sqlite_utils import Database

    steps = migrations()
    known, objects = _present()
    with nullcontext() if read_only else locked(path, alone=True, busy_seconds=busy_seconds):
        # In this order, since a reader has no lock: what is read later may only be further on.
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if tables - {steps.migrations_table} and application != APPLICATION_ID:
            raise CacheForeign(f"{path} is a SQLite database, but not a chunksink cache; move the file away")
        applied = _applied(connection, steps)
        newer = applied - known
        if newer and known <= applied:
            raise CacheTooNew(
                f"{path} was written by a newer chunksink (it has {', '.join(sorted(newer))}); "
                "upgrade chunksink or move the file away"
            )
        if newer or (application == APPLICATION_ID and not applied):  # the first step sets it
            raise damaged(path, "its list of migrations is not whole")
        if read_only:
            if known - applied:
                raise CacheUnavailable(f"{path} is not in its present form; open it for writing once")
        else:
            if not tables:
                connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if known - applied:
                steps.apply(Database(connection, execute_plugins=False))
        if not objects <= set(connection.execute(_OBJECTS)):
            raise damaged(path, "its tables are not as they were made")


def _applied(connection: sqlite3.Connection, steps: Migrations) -> set[str]:
    """Not through sqlite_utils, which trusts the names of the columns."""
    table = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (steps.migrations_table,)).fetchone()
    if table is None:
        return set()
    names = connection.execute(f"SELECT name FROM {steps.migrations_table} WHERE migration_set = ?", (steps.name,))
    return {str(name) for (name,) in names}


_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master"


@cache
def _present() -> tuple[frozenset[str], frozenset[tuple[object, ...]]]:
    """Names of all steps, and the tables and indices to which they lead."""
    from sqlite_utils import Database

    steps = migrations()
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        steps.apply(Database(connection, execute_plugins=False))
        objects = frozenset(row for row in connection.execute(_OBJECTS) if row[2] != steps.migrations_table)
        return frozenset(_applied(connection, steps)), objects
    finally:
        connection.close()


@contextmanager
def locked(path: Path, *, alone: bool, busy_seconds: float) -> Iterator[None]:
    """Alone with the file, or sure that it is not replaced meanwhile. The kernel frees a dead process's lock."""
    if path == IN_MEMORY:
        yield
        return
    try:
        handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as exc:
        remedy = shortage(exc)
        kind = CacheUnavailable if remedy is None else CacheFull
        raise kind(f"cannot lock the cache {path}: {exc.strerror}{'; ' if remedy else ''}{remedy or ''}") from exc
    try:
        _wait_for(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, path, busy_seconds)
        yield
    finally:
        os.close(handle)


def _wait_for(handle: int, how: int, path: Path, busy_seconds: float) -> None:
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                held = f"another process has held the cache {path} for {busy_seconds:g} s"
                raise CacheBusy(f"{held}; wait for it or end it") from None
            time.sleep(0.02)
        except OSError as exc:  # a file system without locks
            raise CacheUnavailable(f"cannot lock the cache {path}: {exc.strerror}") from exc
        else:
            return


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """The one place where SQLite's exceptions become ours. Nothing but SQL may stand in the block."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise  # we used the library wrongly: a bug
    except sqlite3.Error as exc:
        raise _translate(exc, path) from exc
    except UnicodeDecodeError as exc:  # sqlite3 could not even read the name of a column, or the message
        raise damaged(path, "a text in it is not UTF-8") from exc


def _translate(exc: sqlite3.Error, path: Path) -> CacheError:
    code = getattr(exc, "sqlite_errorcode", None)
    primary = code & 0xFF if isinstance(code, int) else None
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        return CacheBusy(f"another process holds the cache {path}: {exc}; wait for it or end it")
    if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return CacheFull(f"the cache {path} cannot be used: {exc}; make room on its disk, and run it again")
    if (remedy := shortage(exc)) is not None:
        return CacheFull(f"the cache {path} cannot be used: {exc}; {remedy}, and run it again")
    if primary in (
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOMEM,
    ):
        return CacheUnavailable(f"the cache {path} cannot be used: {exc}")
    # All SQL here is fixed and tested, and no row is large: whatever else SQLite objects to (a missing table,
    # a wrong type, a malformed page) comes from the bytes of the file.
    return damaged(path, str(exc))


def damaged(path: Path, what: str) -> CacheDamaged:
    """The error, with its remedy."""
    return CacheDamaged(f"the cache {path} is damaged: {what}{REMEDY}")


def _lenient_text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
