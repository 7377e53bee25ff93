"""Opening a SQLite file of ours: made where it is missing, migrated where it is older, refused where it is newer."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import filelock
from sqlite_utils import Database, Migrations

from chunkbus.errors import NewerStore, StoreUnreadable

_BUSY_MILLISECONDS = 300_000  # taking in a partition of millions of chunks is one transaction


def open_store(path: Path, migrations: Migrations) -> Database:
    """The database at `path`, for any number of readers beside one writer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        db = Database(path)
        db.execute(f"pragma busy_timeout = {_BUSY_MILLISECONDS}")
        with filelock.FileLock(f"{path}.lock"):  # two processes may both find it new
            db.enable_wal()
            _refuse_newer(db, path, migrations)
            migrations.apply(db)
    except sqlite3.DatabaseError as error:
        if _is_of_the_disk(error):
            raise _disk_error(error, str(path)) from error
        raise StoreUnreadable(f"{path} is not a database of chunksink ({error}); move it away to start anew") from error
    return db


@contextmanager
def write_transaction(db: Database) -> Iterator[None]:
    """A transaction that waits its turn: one that begins by reading is refused, not queued, when it comes to write.

    A disk that is full or fails is an OSError, and nothing of the transaction stays.
    """
    try:
        db.conn.execute("begin immediate")
        yield
        db.conn.commit()
    except BaseException as error:
        with suppress(sqlite3.Error):  # SQLite has done it already, where the disk was to blame
            db.conn.rollback()
        if isinstance(error, sqlite3.Error) and _is_of_the_disk(error):
            raise _disk_error(error, _path_of(db)) from error
        raise


def _is_of_the_disk(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def _disk_error(error: sqlite3.Error, path: str) -> OSError:
    """SQLite tells a full disk from a broken one only sometimes."""
    return OSError(errno.EIO, f"cannot be written ({error}), make room on that disk and run again", path)


def _path_of(db: Database) -> str:
    return str(db.conn.execute("pragma database_list").fetchone()[2])


def _refuse_newer(db: Database, path: Path, migrations: Migrations) -> None:
    known = {migration.name for migration in migrations.pending(Database(memory=True))}
    unknown = [migration.name for migration in migrations.applied(db) if migration.name not in known]
    if unknown:
        raise NewerStore(f"{path} was written by a newer chunksink (step {unknown[0]}); upgrade, or move it away")
