"""Which source counts for each family, where several give it: the later one in the order of names."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import orjson

from chunksink.producers.families import Family, Row
from chunksink.producers.placement import About
from chunksink.producers.waiting import Lines, Waiting


@dataclass(frozen=True, slots=True)
class Placed:
    """A family whose partition follows from what its source says, and the partition where it stands.

    `read` is what came of it in this run, with where its lines wait; None where it stays what it is.
    """

    about: About
    read: tuple[Family, Lines] | None
    standing: str | None


class Claims:
    """Families of the sources of this run, by key."""

    def __init__(self, tables: Connection) -> None:
        self._tables = tables

    def put(
        self, key: str, source: int, about: About | None, waiting: Waiting | None = None, *, is_read: bool = False
    ) -> int | None:
        """The source of this number counts. Tells the number of another one that was read and gives the family too,
        whether it stands as that one has it or not: so a further run tells what the first one told."""
        row = (key, source, *_about(about), is_read)
        superseded = None
        if self._tables.execute("insert or ignore into claims values (?, ?, ?, ?, ?)", row).rowcount == 0:
            before, was_read = self._tables.execute(
                "select source, is_read from claims where family = ?", [key]
            ).fetchone()
            superseded = before if was_read and before != source else None
            self._tables.execute("delete from readings where family = ?", [key])
            self._tables.execute("insert or replace into claims values (?, ?, ?, ?, ?)", row)
        if waiting is not None:
            self._tables.execute("insert into readings values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _reading(waiting))
        return superseded

    def __contains__(self, key: str) -> bool:
        return self._tables.execute("select 1 from claims where family = ?", [key]).fetchone() is not None

    def about(self, key: str) -> About | None:
        """What a rule may look at, where the claim says that."""
        row = self._tables.execute(
            "select source_type, moment_ns from claims where family = ? and moment_ns is not null", [key]
        ).fetchone()
        return None if row is None else About(key, row[0], int(row[1]))

    def placed(self) -> Iterator[Placed]:
        rows = self._tables.execute(
            "select claims.family, claims.source_type, claims.moment_ns, done.uri, standing.partition, readings.*"
            " from claims"
            " join done on done.number = claims.source left join readings on readings.family = claims.family"
            " left join standing on standing.family = claims.family and not is_surplus"
            " where claims.moment_ns is not null"
        )
        for key, source_type, moment_ns, uri, place, *reading in rows:
            read = None if reading[0] is None else _read(reading, uri)
            yield Placed(About(key, source_type, int(moment_ns)), read, place)

    def stay_silent(self, key: str, *, goes: bool = False) -> None:
        """A source has a word in the family, and gives it not: it could not be read, or has no text, or says that the
        family goes."""
        self._tables.execute(
            "insert into silent values (?, ?) on conflict (family) do update set goes = goes or excluded.goes",
            [key, goes],
        )

    def leaving(self) -> Iterator[tuple[str, str | None]]:
        """What goes and no other source gives, with the partition where it stands."""
        return self._tables.execute(
            "select silent.family, standing.partition from silent"
            " left join standing on standing.family = silent.family and not standing.is_surplus"
            " where goes and not exists (select 1 from claims where claims.family = silent.family)"
        )

    def unspoken(self, tenant: str | None, *, others: bool = False) -> Iterator[tuple[str, str, str, str | None]]:
        """Partition, key, file and tenant of a tenant's families in which no source has a word; or of all others'."""
        return self._tables.execute(
            f"select partition, family, origin, tenant from standing where (tenant is :tenant) <> :others"
            f" and origin is not null and {_UNSPOKEN}",
            {"tenant": tenant, "others": others},
        )

    def others(self) -> int:
        """How many families, whoever's they are, stay though no source has a word in them."""
        (count,) = self._tables.execute(
            f"select count(*) from standing where not is_surplus and {_UNSPOKEN}"
            " and not exists (select 1 from withdrawn where withdrawn.family = standing.family)"
        ).fetchone()
        return int(count)


_UNSPOKEN = (
    "not exists (select 1 from claims where claims.family = standing.family)"
    " and not exists (select 1 from silent where silent.family = standing.family)"
)


def _about(about: About | None) -> tuple[str | None, str | None]:
    return (None, None) if about is None else (about.source_type, str(about.moment_ns))


def _reading(waiting: Waiting) -> Row:
    version, lines = orjson.dumps(waiting.version).decode(), waiting.lines
    about = (waiting.key, waiting.name, waiting.document, waiting.tenant, version, waiting.newest, waiting.chunks)
    return (*about, os.fsencode(lines.file), lines.start, lines.end)


def _read(reading: Sequence[Any], origin: str) -> tuple[Family, Lines]:
    key, name, document, tenant, version, newest, chunks, file, start, end = reading
    family = Family(key, name, document, tenant, tuple(orjson.loads(version)), origin, newest, chunks)
    return family, Lines(Path(os.fsdecode(file)), start, end)
