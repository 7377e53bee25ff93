"""Kinds of damage to a database file."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path


def half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def foreign(file: Path) -> None:
    file.write_bytes(b"no database " * 1000)


def inside(file: Path) -> None:
    """All pages exist, and one has wrong content."""
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 4096 // 2 * 4096)
        opened.write(b"\xff" * 4096)


def emptied(file: Path, table: str) -> None:
    """The first page of a table or an index has only zeros."""
    overwrite(file, table, bytes)


def overwrite(file: Path, table: str, content: Callable[[int], bytes]) -> None:
    """Replace the first page of a table or an index; `content` makes that many bytes."""
    with closing(sqlite3.connect(file)) as db:
        db.execute("pragma wal_checkpoint(truncate)")
        (page,) = db.execute("select rootpage from sqlite_master where name = ?", [table]).fetchone()
        (size,) = db.execute("pragma page_size").fetchone()
    with file.open("r+b") as opened:
        opened.seek((page - 1) * size)
        opened.write(content(size))


def newer(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at) "
            "select migration_set, 'to come', '' from _sqlite_migrations limit 1"
        )
    db.close()
