"""SQLite's errors as ours, once: here its codes and messages are known, and nowhere else."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chunksink.chunkbus.shortage import shortage
from chunksink.sinks.errors import MEND, BuildBroken, OutOfResources, Refused, Transient

# Where SQLite's message says what its code does not. A constraint of ours is told with its column.
_FOREIGN_CONSTRAINT = "constraint failed"
_DAMAGE = (
    "no such table",
    "no such column",
    "decode to UTF-8",
    "invalid fts5 file format",
    "vtable constructor failed",
)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise Transient(f"{path} is locked: another process is writing it. Wait for that or end it") from error
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise Transient(f"{path} cannot be written ({error}): make room on that disk and run again") from error
        if (remedy := shortage(error)) is not None:
            raise OutOfResources(f"{path} cannot be opened ({error}): {remedy}, and run it again") from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            raise Refused(f"{path} may not be opened or written ({error}): correct its permissions") from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise BuildBroken(f"{path} is damaged ({error}): {MEND}") from error
        if str(error) == _FOREIGN_CONSTRAINT or any(told in str(error) for told in _DAMAGE):
            raise BuildBroken(f"{path} is damaged ({error}): {MEND}") from error
        raise
