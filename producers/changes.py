"""What a run changes in its partitions, as data: what comes, what goes and where to, what the manifest tells."""

import os
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import Connection

from chunksink.chunkbus.manifest import Tombstone
from chunksink.producers.families import ABOUT, COLUMNS, VALUES, Family, Row, family_of, row_of
from chunksink.producers.waiting import Lines


@dataclass(frozen=True, slots=True)
class Entry:
    """A family of a partition's new version: its lines wait, or stand in a partition."""

    family: Family
    lines: Lines | None
    stands_in: str | None


@dataclass(slots=True)
class Told:
    """What the sources of a run that belong to a partition have to tell in its manifest."""

    errors: Counter[str] = field(default_factory=Counter)
    failures: int = 0
    unchanged: int = 0


@dataclass
class Change:
    """What is told of one partition. `told` is None where no source of the run belongs to it."""

    tombstones: list[Tombstone] = field(default_factory=list)
    told: Told | None = None


class Changes:
    """The changes of a run by partition: those named here, and families that arrive there or depart."""

    def __init__(self, tables: Connection) -> None:
        self._tables = tables
        self.by_partition: dict[str, Change] = {}

    def of(self, key: str) -> Change:
        return self.by_partition.setdefault(key, Change())

    def told(self, key: str) -> Told:
        change = self.of(key)
        change.told = change.told or Told()
        return change.told

    def arrive(self, key: str, family: Family, lines: Lines, standing: str | None) -> None:
        """The family is new, or has another version than where it stands."""
        self._arrive(key, family, (os.fsencode(lines.file), lines.start, lines.end, None))
        if standing is not None and standing != key:
            self._depart(family.key, standing, key)

    def move(self, family: Family, standing: str, key: str) -> None:
        """The family belongs into another partition than where it stands."""
        self._arrive(key, family, (None, None, None, standing))
        self._depart(family.key, standing, key)

    def _arrive(self, key: str, family: Family, where: Row) -> None:
        self.of(key)
        row = (key, *row_of(family), *where)
        self._tables.execute(f"insert into arrivals values (?, {VALUES}, ?, ?, ?, ?)", row)

    def _depart(self, family_key: str, standing: str, to: str | None) -> None:
        self.of(standing)
        self._tables.execute("insert or replace into departures values (?, ?, ?)", [standing, family_key, to])

    def drop(self, family_key: str, standing: str) -> None:
        self._depart(family_key, standing, None)

    def withdraw(self, family_key: str, standing: str, reason: str, at: str) -> None:
        """The family goes, and that is told to whoever reads the partition."""
        self.drop(family_key, standing)
        self.of(standing).tombstones.append(Tombstone(parent_id=family_key, reason=reason, at=at))
        self._tables.execute("insert or ignore into withdrawn values (?)", [family_key])

    def withdrawn(self) -> int:
        (count,) = self._tables.execute("select count(*) from withdrawn").fetchone()
        return int(count)

    def has_arrivals(self, key: str) -> bool:
        return self._tables.execute("select 1 from arrivals where partition = ?", [key]).fetchone() is not None

    def has_departures(self, key: str) -> bool:
        return self._tables.execute("select 1 from departures where partition = ?", [key]).fetchone() is not None

    def still_departs(self, key: str) -> bool:
        """Whether something stands there that goes."""
        row = self._tables.execute(
            "select 1 from departures join standing using (partition, family) where partition = ? limit 1", [key]
        ).fetchone()
        return row is not None

    def arrives(self, key: str, family_key: str) -> bool:
        row = self._tables.execute("select 1 from arrivals where partition = ? and family = ?", [key, family_key])
        return row.fetchone() is not None

    def refuse(self, key: str, family_key: str, code: str) -> str | None:
        """The family does not arrive after all, and so stays where it stands. Tells the file that it came from."""
        change = self.of(key)
        self._tables.execute("delete from departures where family = ? and target = ?", [family_key, key])
        if change.told is not None:
            change.told.errors[code] += 1
            change.told.failures += 1
        row = [key, family_key]
        (origin,) = self._tables.execute(
            "select origin from arrivals where partition = ? and family = ?", row
        ).fetchone()
        self._tables.execute("delete from arrivals where partition = ? and family = ?", row)
        return None if origin is None else str(origin)

    def arrived(self, key: str) -> None:
        """What was to arrive stands there now."""
        self._tables.execute(
            "delete from departures where partition = :key"
            " and family in (select family from arrivals where partition = :key)",
            {"key": key},
        )
        self._tables.execute("delete from arrivals where partition = ?", [key])

    def entries(self, key: str, late: Collection[str]) -> Iterator[Entry]:
        """Every family of the partition's new version, in order. What goes to one of the `late` partitions, which are
        still to be written, stays for now."""
        for *row, _, departs, target, file, start, end, place in self._tables.execute(_ENTRIES, {"key": key}):
            if not departs or target in late:
                lines = None if file is None else Lines(Path(os.fsdecode(file)), start, end)
                yield Entry(family_of(tuple(row)), lines, place)


_MOVED = """
select there.stretches from standing as there where there.partition = moved_from and there.family = arrivals.family
"""
_ENTRIES = f"""
select {COLUMNS}, coalesce(tenant, '') as owner,
  departures.partition is not null, target, null, null, null, standing.partition
from standing left join departures using (partition, family)
where standing.partition = :key
  and not exists (select 1 from arrivals where arrivals.partition = :key and arrivals.family = standing.family)
union all
select {ABOUT}, coalesce(({_MOVED}), stretches), coalesce(tenant, ''),
  false, null, file, start, end, moved_from
from arrivals where partition = :key
order by name, owner, family
"""
