"""The families of the partitions that a run looks at, by partition and by key, and those of a version being written."""

from collections.abc import Iterable, Iterator
from sqlite3 import Connection

from chunksink.producers.families import COLUMNS, VALUES, Family, Row, family_of, row_of


class Standing:
    """Families as they stand in partitions."""

    def __init__(self, tables: Connection) -> None:
        self._tables = tables

    def fill(self, partition: str, rows: Iterable[Row]) -> None:
        self._tables.executemany(
            f"insert into standing (partition, {COLUMNS}) values (?, {VALUES})",
            ((partition, *row) for row in rows),
        )

    def put(self, partition: str, family: Family) -> None:
        """In place of what it was."""
        self._tables.execute(
            f"insert or replace into standing (partition, {COLUMNS}) values (?, {VALUES})",
            (partition, *row_of(family)),
        )

    def get(self, partition: str, key: str) -> Family | None:
        row = self._tables.execute(
            f"select {COLUMNS} from standing where partition = ? and family = ?", [partition, key]
        ).fetchone()
        return None if row is None else family_of(row)

    def rows(self, partition: str) -> Iterator[Row]:
        return self._tables.execute(f"select {COLUMNS} from standing where partition = ?", [partition])

    def rewrite(self, partition: str) -> None:
        """What was drafted is what stands there now."""
        self._tables.execute("delete from standing where partition = ?", [partition])
        self._tables.execute(
            f"insert into standing (partition, {COLUMNS}) select ?, {COLUMNS} from drafted", [partition]
        )

    def index(self) -> None:
        """Once the partitions are read: that is faster than to keep an index while families come."""
        self._tables.execute("create index standing_by_partition on standing (partition)")
        self._tables.execute("create index standing_by_origin on standing (origin)")

    def stand_twice(self) -> Iterator[str]:
        """Families that stand in several partitions."""
        self._tables.execute("insert into twice select family from standing group by family having count(*) > 1")
        for (key,) in self._tables.execute("select family from twice"):
            yield key

    def partitions_of(self, key: str) -> list[str]:
        rows = self._tables.execute("select partition from standing where family = ?", [key])
        return [partition for (partition,) in rows]

    def supersede(self, partition: str, key: str) -> None:
        """The family counts in another partition."""
        self._tables.execute("update standing set is_surplus = 1 where partition = ? and family = ?", [partition, key])

    def surplus(self) -> Iterator[tuple[str, str]]:
        """Partition and family of what counts elsewhere."""
        return self._tables.execute("select partition, family from standing where is_surplus")

    def find(self, key: str) -> tuple[str, Family] | None:
        """Where the family counts, with its partition."""
        row = self._tables.execute(
            f"select partition, {COLUMNS} from standing where family = ? and not is_surplus", [key]
        ).fetchone()
        return None if row is None else (row[0], family_of(row[1:]))

    def came_from(self, origin: str) -> Iterator[Family]:
        """Where they count, what was read from a file."""
        return map(
            family_of,
            self._tables.execute(f"select {COLUMNS} from standing where origin = ? and not is_surplus", [origin]),
        )

    def stamps(self) -> Iterator[str]:
        for (stamp,) in self._tables.execute("select distinct newest from standing where newest is not null"):
            yield stamp

    def counts(self) -> tuple[int, int]:
        """Families and chunks."""
        families, chunks = self._tables.execute("select count(*), total(chunks) from standing").fetchone()
        return families, int(chunks)


class Draft:
    """The families of a partition's new version, in the order in which they are written."""

    LISTED = 1000

    def __init__(self, tables: Connection) -> None:
        self._tables = tables
        self._tables.execute("delete from drafted")
        self._lines = self._bytes = 0
        self.families = 0
        self.first: list[Family] = []
        self.canonicalizers: set[tuple[str | None, str | None]] = set()

    def add(self, family: Family, size: int) -> None:
        """Its lines follow those of the family before it, and have so many bytes."""
        self._lines += family.chunks
        family.stretches = [(self._bytes, self._bytes + size)]
        self._bytes += size
        self.families += 1
        self.canonicalizers.add((family.version[3], family.version[4]))
        if self.families <= self.LISTED:
            self.first.append(family)
        self._tables.execute(f"insert into drafted values (?, {VALUES})", (self._lines, *row_of(family)))

    def at(self, line: int) -> Family:
        """Whose line that is."""
        row = self._tables.execute(
            f"select {COLUMNS} from drafted where last_line >= ? order by last_line limit 1", [line]
        ).fetchone()
        return family_of(row)

    def rows(self) -> Iterator[Row]:
        return self._tables.execute(f"select {COLUMNS} from drafted order by last_line")
