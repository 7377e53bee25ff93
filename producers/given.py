"""Which families each source of a run gives."""

from collections.abc import Iterator
from sqlite3 import Connection


class Given:
    """By the source's number. `place` says where a family stands among those of its source."""

    def __init__(self, tables: Connection) -> None:
        self._tables = tables

    def put(self, source: int, key: str, place: int = 0) -> None:
        self._tables.execute("insert or ignore into given values (?, ?, ?)", [source, key, place])

    def forget(self, source: int) -> None:
        self._tables.execute("delete from given where source = ?", [source])

    def holds(self, source: int, key: str) -> bool:
        row = self._tables.execute("select 1 from given where source = ? and family = ?", [source, key])
        return row.fetchone() is not None

    def count(self, source: int) -> int:
        (count,) = self._tables.execute("select count(*) from given where source = ?", [source]).fetchone()
        return int(count)

    def by(self, source: int) -> Iterator[tuple[str, int]]:
        """Keys and places, in the order of the keys."""
        return self._tables.execute("select family, place from given where source = ?", [source])

    def in_order(self, source: int) -> Iterator[str]:
        for (key,) in self._tables.execute("select family from given where source = ? order by place", [source]):
            yield key
