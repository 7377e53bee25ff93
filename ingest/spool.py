"""Keeps the records of one file on disk by family, in a temporary database that SQLite deletes on close."""

import sqlite3
from collections.abc import Iterator

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -32768;
CREATE TABLE records (number INTEGER PRIMARY KEY, family TEXT, line INTEGER, data BLOB, sort BLOB);
CREATE INDEX by_family ON records (family);
CREATE TABLE chunk_ids (id TEXT PRIMARY KEY) WITHOUT ROWID;
BEGIN;
"""


Spooled = tuple[int, bytes]
"""The line of a record in the file, and its bytes."""


class Spool:
    """Keeps records until it is closed."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        self._database.close()

    def add(self, family: str, record: Spooled, sort: bytes = b"") -> None:
        """Stores the record beside the others of its family."""
        self._database.execute(
            "INSERT INTO records (family, line, data, sort) VALUES (?, ?, ?, ?)", (family, *record, sort)
        )

    def put(self, family: str, record: Spooled, sort: bytes = b"") -> Spooled | None:
        """Stores the record as the only one of its family, and returns the earlier one that it replaces."""
        query = "DELETE FROM records WHERE family = ? RETURNING line, data"
        row = self._database.execute(query, (family,)).fetchone()
        self.add(family, record, sort)
        return None if row is None else (row[0], row[1])

    def records(self) -> Iterator[Spooled]:
        """All records by sort key, then in the order of the file."""
        self._database.execute("CREATE INDEX by_sort ON records (sort, number)")
        yield from self._database.execute("SELECT line, data FROM records ORDER BY sort, number")

    def families(self) -> Iterator[list[Spooled]]:
        """The records of each family in file order; families in the order of their last records."""
        for name in self._database.execute("SELECT family FROM records GROUP BY family ORDER BY MAX(number)"):
            rows = self._database.execute("SELECT line, data FROM records WHERE family = ? ORDER BY number", name)
            yield rows.fetchall()

    def add_chunk_id(self, chunk_id: str) -> bool:
        """Saves the id. Returns whether it is new."""
        return self._database.execute("INSERT OR IGNORE INTO chunk_ids VALUES (?)", (chunk_id,)).rowcount == 1
