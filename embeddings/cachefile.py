"""The cache's file while it is open: one connection, shared by the threads of a process.

Reads are short, so that no read transaction stays open and the writer's log stays short; writers take turns. When
another process has set a damaged file aside, the next call uses the new one.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from chunksink.embeddings.errors import CacheError, CacheUnavailable
from chunksink.embeddings.schema import IN_MEMORY, connect, damaged, locked, require_ours, translated

_SCAN_ROWS = 2000
_WANTED_ROWS = 5000


class CacheFile:
    """What `VectorCache` does with its file, for this package."""

    def __init__(self, path: Path, *, read_only: bool, busy_seconds: float) -> None:
        self.path = path
        self.read_only = read_only
        self._busy_seconds = busy_seconds
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self.set_aside: tuple[str, ...] = ()
        """Where damaged files lie now that this object has replaced."""

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

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a short query; `scan` is for long ones."""
        with self._lock, translated(self.path):
            return self._live().execute(sql, parameters).fetchall()

    def scan(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[list[tuple[Any, ...]]]:
        """A long query in short reads. Its first column is the id; its first parameter is where to go on.

        Raises CacheDamaged where the ids do not grow: in a damaged file the same pages could come for ever.
        """
        last = -(2**63)
        while page := self.read(f"{sql} ORDER BY id LIMIT {_SCAN_ROWS}", (last, *parameters)):
            for row in page:
                if row[0] <= last:
                    raise damaged(self.path, f"row {row[0]} comes after row {last}")
                last = row[0]
            yield page

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One write transaction, alone among writers; rolled back when the block or the commit raises."""
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
                connection.execute("COMMIT")
            except BaseException:
                self._forget()
                self._roll_back(connection)
                raise

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:  # closing rolls back as well; the first error is the one to be told
            self.close()

    @contextmanager
    def temporary(self, text_hashes: Iterable[bytes]) -> Iterator[str]:
        """Name of a temporary table with these text hashes; it is on disk, and only this connection sees it.

        One at a time. What the iterable raises is its own affair, and comes out as it is.
        """
        rows = ((text_hash,) for text_hash in text_hashes)
        with self._lock, translated(self.path):
            connection = self._live()
            connection.execute("DROP TABLE IF EXISTS temp.wanted")
            connection.execute("CREATE TEMP TABLE wanted (text_hash BLOB PRIMARY KEY) WITHOUT ROWID")
        try:
            while batch := list(islice(rows, _WANTED_ROWS)):
                with self._lock, translated(self.path):
                    connection = self._live()
                    connection.execute("BEGIN")  # deferred: takes no lock on the cache itself
                    try:
                        connection.executemany("INSERT OR IGNORE INTO temp.wanted VALUES (?)", batch)
                        connection.execute("COMMIT")
                    except BaseException:
                        self._roll_back(connection)
                        raise
            yield "temp.wanted"
        finally:
            # What stays behind is dropped next time; an error here would hide the one that led here.
            with suppress(CacheError), self._lock, translated(self.path):
                self._live().execute("DROP TABLE IF EXISTS temp.wanted")

    def shrink(self) -> None:
        """Gives the space of dropped rows back to the file system."""
        with self._lock, translated(self.path):
            self._forget()  # models and producers may have been dropped too
            connection = self._live()
            connection.executescript("PRAGMA incremental_vacuum")  # a script runs it to its end
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def replace_damaged(self) -> str | None:
        """Renames the damaged file and begins an empty one; returns the new name, or None if another process has just
        done so. Raises CacheForeign where nothing in the file shows that it is a cache."""
        with self._lock:
            seen, self._inode = self._inode, 0
            self.close()
            with locked(self.path, alone=True, busy_seconds=self._busy_seconds):
                if seen and seen != inode(self.path):
                    return None
                require_ours(self.path)
                try:
                    kept = _set_aside(self.path)
                except OSError as exc:
                    raise CacheUnavailable(f"cannot rename the damaged {self.path}: {exc.strerror or exc}") from exc
            self.set_aside += (kept,)
            try:
                self._live()
            except CacheError as exc:  # of a full disk, say
                raise type(exc)(f"{exc}; the damaged cache is kept as {kept}") from exc
            return kept

    def _forget(self) -> None:
        """Called when what is remembered of the file may not be true any more."""

    def _live(self) -> sqlite3.Connection:
        """The connection; a new one if another process has set our file aside."""
        if self._connection is not None and not self._is_current():
            self.close()
        if self._connection is None:
            self._forget()
            self._inode = inode(self.path)
            self._connection = connect(self.path, read_only=self.read_only, busy_seconds=self._busy_seconds)
            self._inode = inode(self.path)
        return self._connection

    def _is_current(self) -> bool:
        return self.path == IN_MEMORY or self._inode == inode(self.path)


def _set_aside(path: Path) -> str:
    """Renames the file and its log. The log goes first: SQLite would replay it into the new file."""
    number = 1
    while (kept := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    log = Path(f"{path}-wal")
    if log.exists():
        log.rename(f"{kept}-wal")
    Path(f"{path}-shm").unlink(missing_ok=True)
    path.rename(kept)
    return str(kept)


def inode(path: Path) -> int:
    """Which file lies there; 0 for none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0
