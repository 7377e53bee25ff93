"""Search in a keyword build: BM25 over words, trigrams for scripts without spaces, facets and snippets."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from chunksink.sinks.contract import Marker
from chunksink.sinks.document import NO_TEXT, Document
from chunksink.sinks.fts import schema, statements, suggestions
from chunksink.sinks.fts.errors import translate_errors
from chunksink.sinks.fts.keyword_methods import KeywordMethods
from chunksink.sinks.fts.search import Search
from chunksink.sinks.reader import Filter

_CACHE_KB = 32_768
"""How much of the file a connection may keep in memory. With SQLite's 2 MB, each search reads most pages again."""


def read_marker(connection: sqlite3.Connection) -> Marker | None:
    row = connection.execute("SELECT * FROM marker").fetchone()
    return None if row is None else Marker(**row)


class FtsReader(KeywordMethods):
    """Each answer comes from one state of the index. No two threads use the same connection at the same time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _inode_of(path)
        self._idle: list[schema.Connection] = []
        self._closed = False
        self._lock = threading.Lock()
        with self._snapshot():
            pass  # raises now if the build is missing or damaged

    def marker(self) -> Marker | None:
        with self._snapshot() as connection:
            return read_marker(connection)

    def get(self, ids: Sequence[str]) -> list[Document]:
        with self._snapshot() as connection:
            found = {row["id"]: _document(row) for row in schema.by_id(connection, "*", ids)}
        return [document for id in ids if (document := found.get(id)) is not None]

    def families(self, ids: Sequence[str]) -> dict[str, str]:
        with self._snapshot() as connection:
            rows = schema.by_id(connection, "id, parent_id, text_hash", ids)
            return {row["id"]: row["parent_id"] for row in rows if row["text_hash"] not in (None, NO_TEXT)}

    def refresh(self) -> None:
        """Answers always show the newest state of a file. This notices when another file has replaced it."""
        file = _inode_of(self._path)
        if file is not None and file != self._file:
            with self._lock:
                idle, self._idle, self._file = self._idle, [], file
            for connection in idle:
                connection.close()

    def close(self) -> None:
        """Running queries finish first and then close their connections."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            connection.close()

    @contextmanager
    def _searching(self, filters: Sequence[Filter]) -> Iterator[Search]:
        with self._snapshot() as connection:
            yield Search(connection, filters)

    @contextmanager
    def _snapshot(self) -> Iterator[schema.Connection]:
        connection, file = self._borrow()
        try:
            with translate_errors(self._path):
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("COMMIT")
        finally:
            self._return(connection, file)

    def _borrow(self) -> tuple[schema.Connection, int | None]:
        """A connection, and the inode of its file."""
        with self._lock:
            file = self._file
            if self._idle:
                return self._idle.pop(), file  # the last one has the warmest cache
        return schema.connect(self._path, prepare=_prepare), file

    def _return(self, connection: schema.Connection, file: int | None) -> None:
        with self._lock:
            if file == self._file and not self._closed and not connection.in_transaction:
                self._idle.append(connection)
                return
        connection.close()


def _prepare(connection: sqlite3.Connection) -> None:
    suggestions.prepare(connection)
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    statements.prepare(connection)


def _document(row: sqlite3.Row) -> Document | None:
    """None if no sink has written the row."""
    try:
        return Document.from_fields(schema.fields_of(row))
    except ValueError:
        return None


def _inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:  # opening it raises the right error
        return None
