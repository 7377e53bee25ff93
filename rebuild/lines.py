"""The lines of a partition in the catalog. What is known of a line that still stands is kept, wherever it stands now.

So a partition that is written anew for one source costs little more than reading it. A line is known by its hash; none
stands twice, since no chunk id does.
"""

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import BinaryIO

from sqlite_utils import Database

from chunksink.chunkbus.reader import Place, read_lines
from chunksink.rebuild.content import hash_of_line
from chunksink.rebuild.former import note_former
from chunksink.rebuild.noted import COLUMNS, rows_of

Line = tuple[Place, bytes]

_TABLES = (
    "create temp table if not exists arrived (offset integer primary key, length integer, line blob)",
    "create temp table if not exists kept (id integer primary key, offset integer, was integer)",
    "create temp table if not exists gone (family text, parent_id text, document_id text, text_hash text)",
    "drop index if exists temp.arrived_line",
    "delete from arrived",
    "delete from kept",
    "delete from gone",
)
_KEEP = """
insert into kept select chunk.id, arrived.offset, chunk.offset from chunk cross join arrived using (line)
where partition = ?
"""
_GOES = "partition = ? and id not in (select id from kept)"
# Of two versions of a source in one partition the later line counts.
_IS_REORDERED = """
select 1 from (select offset, lag(offset) over (order by was) as before from kept) where offset < before limit 1
"""
_MOVE = """
update chunk set offset = (select kept.offset from kept where kept.id = chunk.id)
where id in (select id from kept where was <> kept.offset)
"""
# What moved leads, so that what stands in other partitions is not gone through. A family whose first line is gone is
# undecided: its place is told then.
_MOVE_FAMILIES = """
update {table} set first_offset = coalesce((
    select kept.offset from chunk indexed by chunk_family cross join kept using (id)
    where chunk.family = {table}.family and chunk.partition = {table}.partition and was = first_offset), first_offset)
where partition = ? and family in (select family from kept cross join chunk using (id) where was <> kept.offset)
"""


def take_lines(db: Database, key: str, file: BinaryIO) -> None:
    """Within the caller's transaction. Families of which a line came or went are `undecided` afterwards, or all, where
    lines stand in another order; of the others nothing but their places has changed."""
    for statement in _TABLES:
        db.execute(statement)
    lines: Iterable[Line] = read_lines(file)
    if db.execute("select 1 from chunk where partition = ? limit 1", [key]).fetchone() is not None:
        _compare(db, key, lines)
        lines = _new_lines(db, file)
    db.execute(f"insert into gone select family, parent_id, document_id, text_hash from chunk where {_GOES}", [key])
    db.execute(f"delete from chunk where {_GOES}", [key])
    (last,) = db.execute("select coalesce(max(id), 0) from chunk").fetchone()
    values = ", ".join("?" * len(COLUMNS.split(",")))
    db.conn.executemany(f"insert into chunk ({COLUMNS}) values ({values})", rows_of(key, lines))
    db.execute("insert or ignore into undecided select family, ? from gone", [key])
    db.execute("insert or ignore into undecided select family, partition from chunk where id > ?", [last])
    note_former(db, last)
    _move(db, key)


def drop_lines(db: Database, key: str) -> None:
    """The partition is given up; likewise."""
    take_lines(db, key, BytesIO())


def touch_lines(db: Database, key: str) -> None:
    """What counts must be decided again for all families of a partition."""
    db.execute("insert or ignore into undecided select family, partition from chunk where partition = ?", [key])


def _compare(db: Database, key: str, lines: Iterable[Line]) -> None:
    arrived = ((place.offset, place.length, hash_of_line(line)) for place, line in lines)
    db.conn.executemany("insert into arrived values (?, ?, ?)", arrived)
    db.execute("create index temp.arrived_line on arrived (line)")
    db.execute(_KEEP, [key])


def _new_lines(db: Database, file: BinaryIO) -> Iterator[Line]:
    rows = db.execute("select offset, length from arrived where offset not in (select offset from kept) order by 1")
    for offset, length in rows:
        file.seek(offset)
        yield Place(offset, length), file.read(length)


def _move(db: Database, key: str) -> None:
    """What was kept stands elsewhere."""
    if db.execute(_IS_REORDERED).fetchone() is not None:
        touch_lines(db, key)
    for table in ("standing", "current"):  # before their chunks move
        db.execute(_MOVE_FAMILIES.format(table=table), [key])
    db.execute(_MOVE)
