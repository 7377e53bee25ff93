"""Which records belong together, over a file of any size: places by family, kept in a database that is no file's name.

Memory stays flat: SQLite spills what does not fit its cache into a temporary file and removes it.
"""

import sqlite3
from collections.abc import Iterator
from types import TracebackType

from chunksink.producers.records.files import Place

_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -32768;
CREATE TABLE places (family BLOB, line INTEGER, offset INTEGER, length INTEGER, name TEXT, element INTEGER,
    sort BLOB);
CREATE TABLE lasts (family BLOB PRIMARY KEY, place INTEGER, sort BLOB) WITHOUT ROWID;
CREATE TABLE claims (id BLOB PRIMARY KEY) WITHOUT ROWID;
"""


class FamilyIndex:
    """Shown every record's family and place; then tells the places of each family."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.executescript(_TABLES)
        self._database.execute("BEGIN")

    def __enter__(self) -> "FamilyIndex":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def add(self, family: str, place: Place, sort: bytes = b"") -> None:
        row = (family.encode(), place.line, place.offset, place.length, place.name, place.element, sort)
        self._database.execute("INSERT INTO places VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def families(self) -> Iterator[list[Place]]:
        """Places of one family after the other, each in the file's order; families by the sort key and then the
        place of their last record. Records of an array may share a line: what was shown when is their order."""
        self._database.execute("INSERT INTO lasts SELECT family, MAX(rowid), sort FROM places GROUP BY family")
        # CROSS: SQLite keeps that order, and finds each place's family by its key.
        rows = self._database.execute(
            "SELECT lasts.place, line, offset, length, name, element FROM places CROSS JOIN lasts USING (family)"
            " ORDER BY lasts.sort, lasts.place, places.rowid"
        )
        family: int | None = None
        places: list[Place] = []
        for last, *place in rows:
            if last != family and places:
                yield places
                places = []
            family = last
            places.append(Place(*place))
        if places:
            yield places

    def claim(self, name: str) -> bool:
        """True for the first who asks for an id, False for all others."""
        cursor = self._database.execute("INSERT OR IGNORE INTO claims VALUES (?)", (name.encode(),))
        return cursor.rowcount == 1
