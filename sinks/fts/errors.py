"""Translates SQLite's errors into ours. Only this module depends on its codes and messages."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chunksink.chunkbus.shortage import shortage
from chunksink.sinks.errors import BuildBroken, OutOfResources, Refused, Transient

# Damage that only the message shows. A failed constraint of FTS5's own tables is reported as `constraint failed`; for
# our tables SQLite appends the column. `malformed JSON`: another program wrote text into a column of lists.
# `user-defined function`: another program wrote invalid UTF-8, which `letters.fold` cannot get.
_FTS5_CONSTRAINT = "constraint failed"
_DAMAGE = re.compile(
    "no such table|no such column|decode to UTF-8|user-defined function raised exception|invalid fts5 file format|"
    "vtable constructor failed|malformed JSON"
)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise Transient(f"{path} is locked: another process is writing. Wait for it or end it") from error
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            what = "free disk space or check the disk, then run the command again"
            raise Transient(f"{path} cannot be written ({error}): {what}") from error
        if (remedy := shortage(error)) is not None:
            raise OutOfResources(f"{path} cannot be opened ({error}): {remedy}, then run the command again") from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            raise Refused(f"{path} cannot be opened or written ({error}): correct its permissions") from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise BuildBroken(f"{path} is damaged ({error})") from error
        if str(error) == _FTS5_CONSTRAINT or _DAMAGE.search(str(error)):
            raise BuildBroken(f"{path} is damaged ({error})") from error
        raise
