"""Opens our SQLite files: creates a missing one, migrates an older one, refuses a newer one."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import filelock

from chunksink.chunkbus.errors import NewerStore, StoreUnreadable
from chunksink.chunkbus.shortage import shortage

if TYPE_CHECKING:
    from sqlite_utils import Database, Migrations

_BUSY_MILLISECONDS = 300_000  # one transaction reads a partition of millions of chunks
_OPENING_SECONDS = 10.0
_CACHE_KIB = 16_384  # inserts of one transaction touch pages all over an index
_ROOM = "make room on that disk and on the one for temporary files, and run again"
_MEANINGS = {
    # SQLite does not always distinguish a full disk from a broken one.
    (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR): (errno.EIO, f"cannot be written ({{}}), {_ROOM}"),
    (sqlite3.SQLITE_CANTOPEN,): (errno.EIO, f"cannot be opened ({{}}), check its permissions, or {_ROOM}"),
    (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM): (errno.EROFS, "may not be written ({}), correct its permissions"),
    (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL): (
        errno.EBUSY,
        "another process is using it ({}), wait until it has finished",
    ),
}


def open_store(
    path: Path,
    migrations: Migrations,
    *,
    pragmas: Sequence[str] = (),
    new_file_pragmas: Sequence[str] = (),
    one_thread: bool = True,
) -> Database:
    """The database at `path`. Any number of connections may read it; writers take turns.

    `pragmas` apply to the connection, `new_file_pragmas` to a new file. If several threads share the connection (not
    `one_thread`), the caller must let only one use it at a time.
    """
    from sqlite_utils import Database  # not needed for a validation

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        path.touch(0o600)  # it may contain texts
    try:
        with ExitStack() as on_failure:
            db = Database(sqlite3.connect(path, check_same_thread=one_thread))
            on_failure.callback(db.close)
            for pragma in (f"busy_timeout = {_BUSY_MILLISECONDS}", f"cache_size = -{_CACHE_KIB}", *pragmas):
                db.execute(f"pragma {pragma}")
            with opening(path):  # two processes may both find it new
                for pragma in new_file_pragmas if not path.stat().st_size else ():
                    db.execute(f"pragma {pragma}")
                db.enable_wal()
                _refuse_newer(db, path, migrations)
                migrations.apply(db)
            on_failure.pop_all()
            return db
    except (sqlite3.DatabaseError, KeyError) as error:  # a damaged list of migrations lacks a column
        raise explained(error, path) or _foreign(error, path) from error


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """Keeps other processes from opening the store at `path`. Raises OSError (EBUSY) if one takes too long."""
    try:
        with filelock.FileLock(f"{path}.lock", timeout=_OPENING_SECONDS):
            yield
    except filelock.Timeout as error:
        busy = "another process is opening or migrating it, wait until it has finished"
        raise OSError(errno.EBUSY, busy, str(path)) from error


class Store:
    """A store that is open until its block ends. Several processes may open it at once."""

    def __init__(self, path: Path, migrations: Migrations) -> None:
        self.path = path
        self.db = open_store(path, migrations)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.db.close()
        if (explanation := explained(error, self.path)) is not None:
            raise explanation from error


def explained(error: BaseException | None, path: Path | str) -> Exception | None:
    """Translates a SQLite error into one with a remedy; None for bugs and other errors.

    `open_store`, `write_transaction` and the end of a `Store` block raise the translated error.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return _foreign(error, path)
    if code == sqlite3.SQLITE_CORRUPT:
        return damaged(path, error)
    if error is not None and code and (remedy := shortage(error)) is not None:
        return OSError(errno.EIO, f"cannot be used ({error}), {remedy}, and run again", str(path))
    for codes, (number, meaning) in _MEANINGS.items():
        if code in codes:
            return OSError(number, meaning.format(error), str(path))
    return None


def damaged(path: Path | str, why: object) -> StoreUnreadable:
    return StoreUnreadable(f"{path} is damaged ({why}); move it away, and the next run makes a new one")


def _foreign(error: BaseException | None, path: Path | str) -> StoreUnreadable:
    return StoreUnreadable(
        f"{path} is not a database of chunksink ({error}); move it away, and the next run makes a new one"
    )


@contextmanager
def write_transaction(db: Database) -> Iterator[None]:
    """A transaction that waits for other writers, and is rolled back if it fails.

    It takes the write lock first. If it began by reading and another one wrote meanwhile, SQLite would refuse its first
    write without waiting.
    """
    try:
        db.conn.execute("begin immediate")
        yield
        db.conn.commit()
    except BaseException as error:
        with suppress(sqlite3.Error):  # after a disk error SQLite has already done it
            db.conn.rollback()
        if isinstance(error, sqlite3.Error) and (explanation := explained(error, _path_of(db))) is not None:
            raise explanation from error
        raise


def rewrite(db: Database) -> None:
    """Removes deleted data from the file, where it would stay until it is overwritten, and from its log, where it would
    stay until the last connection closes."""
    db.execute("vacuum")
    busy, _, _ = db.execute("pragma wal_checkpoint(truncate)").fetchone()
    if busy:
        raise OSError(
            errno.EBUSY, "is being read, so its log still contains deleted data: run this again", _path_of(db)
        )


def _path_of(db: Database) -> str:
    return str(db.conn.execute("pragma database_list").fetchone()[2])


def _refuse_newer(db: Database, path: Path, migrations: Migrations) -> None:
    from sqlite_utils import Database

    with closing(Database(memory=True)) as empty:
        ours = {migration.name for migration in migrations.pending(empty)}
    unknown = [migration.name for migration in migrations.applied(db) if migration.name not in ours]
    if unknown:
        raise NewerStore(f"{path} was written by another version of chunksink ({unknown[0]}); upgrade, or move it away")
