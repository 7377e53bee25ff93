"""Opening a SQLite file of ours: made where it is missing, migrated where it is older, refused where it is newer."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
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
        raise StoreUnreadable(f"{path} is not a database of chunksink ({error}); move it away to start anew") from error
    return db


@contextmanager
def write_transaction(db: Database) -> Iterator[None]:
    """A transaction that waits its turn: one that begins by reading is refused, not queued, when it comes to write."""
    db.conn.execute("begin immediate")
    try:
        yield
    except BaseException:
        db.conn.rollback()
        raise
    db.conn.commit()


def _refuse_newer(db: Database, path: Path, migrations: Migrations) -> None:
    known = {migration.name for migration in migrations.pending(Database(memory=True))}
    unknown = [migration.name for migration in migrations.applied(db) if migration.name not in known]
    if unknown:
        raise NewerStore(f"{path} was written by a newer chunksink (step {unknown[0]}); upgrade, or move it away")
