"""What a further run need not find out again: checksums of files, families of partitions, what a file gave.

All of it follows from files and the bus, so losing it costs time and nothing else. It is trusted only while the
files bear the signature that they had, and only where a change after it was noted would have changed that too.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
from sqlite_utils import Database, Migrations

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.signature import Signature
from chunksink.chunkbus.store import Store, write_transaction
from chunksink.producers.families import COLUMNS, VALUES, Row
from chunksink.producers.sources import Scope

FORMERLY = -1
"""The place of a family that a file gave before, and that still stands."""
_migrations = Migrations("chunksink.ingest")
_FILE = "bus = ? and source_uri = ? and tenant = ?"
_NOTED = "bus, source_uri, tenant, reading, families"
_SIGNATURE = {"size": int, "mtime_ns": int, "ctime_ns": int, "inode": int, "noted_ns": int}


@_migrations()
def create(db: Database) -> None:
    db.table("checksums").create({"path": bytes, **_SIGNATURE, "checksum": str}, pk="path")
    db.table("partitions").create(
        {"id": int, "bus": bytes, "partition_key": str, "manifest": bytes, **_SIGNATURE}, pk="id"
    )
    db.table("partitions").create_index(["bus", "partition_key"], unique=True)
    db.execute(
        "create table families (partition integer not null, family text not null, name text not null, tenant text,"
        " origin text, newest text, version text not null, chunks integer not null, stretches text not null,"
        " primary key (partition, family)) without rowid"
    )
    db.execute(
        "create table gave (bus blob not null, source_uri text not null, tenant text not null,"
        " families text not null, primary key (bus, source_uri, tenant)) without rowid"
    )


@_migrations()
def add_reading_and_places(db: Database) -> None:
    db.execute("alter table gave add column reading text")
    db.execute(
        "create table places (bus blob not null, partition text not null, tenant text not null, prefix text not null,"
        " path blob not null, primary key (bus, partition, tenant, prefix, path)) without rowid"
    )


@_migrations()
def add_given(db: Database) -> None:
    """Families by row: the list of them all was in one."""
    db.execute("alter table gave rename to gave_listed")
    db.execute(
        "create table gave (id integer primary key autoincrement, bus blob not null, source_uri text not null,"
        " tenant text not null, reading text not null, families integer not null, unique (bus, source_uri, tenant))"
    )
    db.execute(
        "create table given (gave integer not null, family text not null, place integer not null,"
        " primary key (gave, family)) without rowid"
    )
    db.execute(
        "insert into gave (bus, source_uri, tenant, reading, families) select bus, source_uri, tenant,"
        " coalesce(reading, '[]'), (select count(distinct value) from json_each(families)) from gave_listed"
    )
    db.execute(
        "insert into given select gave.id, value, min(key) from gave join gave_listed using (bus, source_uri, tenant)"
        " join json_each(gave_listed.families) group by gave.id, value"
    )
    db.execute("drop table gave_listed")


@_migrations()
def add_document(db: Database) -> None:
    """Partitions are read again."""
    db.execute("delete from partitions")
    db.execute("delete from families")
    db.execute("alter table families add column document text not null default ''")


@dataclass(frozen=True, slots=True)
class Gave:
    """What a file of records gave when it was last read: how many families, and of which bytes and versions.

    What is noted of a later reading has another `id`.
    """

    id: int
    reading: tuple[str | None, ...]
    families: int


class Memory(Store):
    """One SQLite file. Several processes may use it at once."""

    def __init__(self, path: Path, root: BusRoot) -> None:
        super().__init__(path, _migrations)
        self._bus = os.fsencode(root.path.resolve())

    def checksum(self, path: str, signature: Signature) -> str | None:
        """The hex sha256 of the file's bytes, where its signature stands for it."""
        row = self.db.execute("select * from checksums where path = ?", [_name(path)]).fetchone()
        return row[6] if row is not None and _proves(row[1:6], signature) else None

    def last_reading(self, path: str) -> tuple[str, int] | None:
        """The hex sha256 of the file's bytes when it was last read, whatever it holds by now, and when that was."""
        row = self.db.execute("select checksum, noted_ns from checksums where path = ?", [_name(path)]).fetchone()
        return None if row is None else (row[0], row[1])

    def note_checksums(self, rows: Iterable[tuple[str, Signature, int, str]]) -> None:
        """Path, signature, when that was taken, and hex sha256."""
        with write_transaction(self.db):
            self.db.conn.executemany(
                "insert or replace into checksums values (?, ?, ?, ?, ?, ?, ?)",
                ((_name(path), *signature.numbers(), noted, checksum) for path, signature, noted, checksum in rows),
            )

    def families(self, key: str, manifest: bytes, signature: Signature) -> Iterator[Row] | None:
        """The families of a partition that was found valid with this manifest and chunks file; None of any other."""
        row = self.db.execute(
            "select * from partitions where bus = ? and partition_key = ?", [self._bus, key]
        ).fetchone()
        if row is None or row[3] != manifest or not _proves(row[4:9], signature):
            return None
        return self.db.execute(f"select {COLUMNS} from families where partition = ?", [row[0]])

    def family(self, key: str, manifest: bytes, family: str) -> Row | None:
        """One family of a partition that was valid with this manifest when it was last read."""
        row: Row | None = self.db.execute(
            f"select {COLUMNS} from families join partitions on id = partition"
            " where bus = ? and partition_key = ? and manifest = ? and family = ?",
            [self._bus, key, manifest, family],
        ).fetchone()
        return row

    def note_families(
        self, key: str, manifest: bytes, signature: Signature, noted_ns: int, families: Iterable[Row]
    ) -> None:
        db = self.db
        with write_transaction(db):
            for (old,) in db.execute(
                "select id from partitions where bus = ? and partition_key = ?", [self._bus, key]
            ).fetchall():
                db.execute("delete from families where partition = ?", [old])
                db.execute("delete from partitions where id = ?", [old])
            cursor = db.execute(
                "insert into partitions (bus, partition_key, manifest, size, mtime_ns, ctime_ns, inode, noted_ns)"
                " values (?, ?, ?, ?, ?, ?, ?, ?)",
                [self._bus, key, manifest, *signature.numbers(), noted_ns],
            )
            db.conn.executemany(
                f"insert into families (partition, {COLUMNS}) values (?, {VALUES})",
                ((cursor.lastrowid, *row) for row in families),
            )

    def gave(self, source_uri: str, tenant: str | None) -> Gave | None:
        """None of a file of records that was never read."""
        row = self.db.execute(
            f"select id, reading, families from gave where {_FILE}", [self._bus, source_uri, tenant or ""]
        ).fetchone()
        return None if row is None else Gave(row[0], tuple(orjson.loads(row[1])), row[2])

    def families_given(self, gave: Gave) -> Iterator[tuple[str, int]]:
        """Keys, and the place of each in the order in which they were given; none where a later reading was noted."""
        return self.db.execute("select family, place from given where gave = ? and place >= 0", [gave.id])

    def gives(self, gave: Gave, key: str) -> bool:
        row = self.db.execute("select 1 from given where gave = ? and family = ? and place >= 0", [gave.id, key])
        return row.fetchone() is not None

    def gave_once(self, source_uri: str, tenant: str | None, key: str, *, now: bool = False) -> bool:
        """Whether the file gave the family when it was last read for this tenant; if not `now`, or before, and it stood
        then."""
        row = self.db.execute(
            f"select 1 from given join gave on gave.id = given.gave where {_FILE} and family = ? and place >= ?",
            [self._bus, source_uri, tenant or "", key, 0 if now else FORMERLY],
        )
        return row.fetchone() is not None

    def note_gave(
        self, tenant: str | None, gave: Iterable[tuple[str, tuple[str | None, ...], Iterable[tuple[str, int]]]]
    ) -> None:
        """Name of each file, what of it was read, and its families with their places; `FORMERLY` of those that it
        does not give any more."""
        db = self.db
        with write_transaction(db):
            for uri, reading, families in gave:
                file = [self._bus, uri, tenant or ""]
                db.execute(f"delete from given where gave in (select id from gave where {_FILE})", file)
                db.execute(f"delete from gave where {_FILE}", file)
                row = [*file, orjson.dumps(reading).decode()]
                number = db.execute(f"insert into gave ({_NOTED}) values (?, ?, ?, ?, 0)", row).lastrowid
                db.conn.executemany(
                    "insert into given values (?, ?, ?)", ((number, key, place) for key, place in families)
                )
                count = "select count(*) from given where gave = :id and place >= 0"
                db.execute(f"update gave set families = ({count}) where id = :id", {"id": number})

    def places(self, tenant: str | None) -> list[tuple[str, Scope]]:
        """Partition, or rule, and folder or file, of all that was read into this bus."""
        rows = self.db.execute(
            "select partition, prefix, path from places where bus = ? and tenant = ?", [self._bus, tenant or ""]
        )
        return [(partition, Scope(prefix, Path(os.fsdecode(path)))) for partition, prefix, path in rows]

    def tenants(self) -> list[str | None]:
        """For whom anything was read into this bus."""
        rows = self.db.execute("select distinct tenant from places where bus = ? order by tenant", [self._bus])
        return [tenant or None for (tenant,) in rows]

    def note_places(
        self, partition: str, tenant: str | None, new: Iterable[Scope], gone: Iterable[tuple[str, Scope]]
    ) -> None:
        def rows(places: Iterable[tuple[str, Scope]]) -> Iterable[tuple[object, ...]]:
            for key, place in places:
                yield self._bus, key, tenant or "", place.prefix, os.fsencode(place.folder)

        equal = " and ".join(f"{column} = ?" for column in ("bus", "partition", "tenant", "prefix", "path"))
        with write_transaction(self.db):
            self.db.conn.executemany(f"delete from places where {equal}", rows(gone))
            named = ((partition, place) for place in new)
            self.db.conn.executemany("insert or ignore into places values (?, ?, ?, ?, ?)", rows(named))


def _name(path: str) -> bytes:
    return os.path.abspath(os.fsencode(path))  # noqa: PTH100 (a link has its own name)


def _proves(row: tuple[int, ...], signature: Signature) -> bool:
    return tuple(row[:4]) == signature.numbers() and signature.is_settled(row[4])
