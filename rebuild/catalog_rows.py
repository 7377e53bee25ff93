"""The rows that the catalog has of a partition's chunks, and what sources were in former readings.

A partition that is rewritten for one source costs little more than reading it: a line that is still there
keeps its row, wherever it is now. A line is known by its hash; none occurs twice, since no chunk id does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from chunksink.chunkbus.canonical import json_hash, text_hash
from chunksink.chunkbus.chunk import Provenance
from chunksink.chunkbus.diagnose import parse_time
from chunksink.chunkbus.identity import family_key, resolve_parent_id
from chunksink.chunkbus.reader import LineBlock, Place, blocks_at, lines_of, read_blocks, read_lines
from chunksink.chunkbus.validate import NeedsValidation, PartialValidation
from chunksink.rebuild.schema import exists

if TYPE_CHECKING:
    from sqlite_utils import Database

Line = tuple[Place, bytes]
Row = tuple[Any, ...]
COLUMNS = (
    "partition, offset, length, family, parent_id, document_id, chunk_id, text_hash, source_checksum, version, "
    "created_at, line"
)
_BYTES = 16
"""Length of the hash of a line."""

_WAITING = 200_000
"""Unmatched lines that are kept in memory."""

_TABLES = (
    "create temp table if not exists lost (id integer primary key)",
    # From the first to the last of these former places every line has moved by `shift`, and none is lost.
    "create temp table if not exists kept (first integer primary key, last integer, shift integer)",
    "create temp table if not exists gone (family text, parent_id text, document_id text, text_hash text)",
    "delete from lost",
    "delete from kept",
    "delete from gone",
)
# Of two versions of a source in one partition the later line counts.
_IS_REORDERED = """
select 1 from (select first + shift as place, lag(last + shift) over (order by first) as before from kept)
where place < before limit 1
"""
_SHIFTED = """
update {table} set {place} = {place}
    + coalesce((select shift from kept where first <= {place} order by first desc limit 1), 0)
where partition = :key and {which}
"""
_LIES_FURTHER_ON = "{place} >= (select min(first) from kept where shift <> 0)"
_CHUNKS = f"{_LIES_FURTHER_ON.format(place='offset')} and id <= :last"
# A family whose first line is gone is undecided, and gets its place when it is decided. Of `standing` only the families
# of this partition are updated: it has those of all partitions.
_MOVE = (
    ("standing", "first_offset", f"family in (select family from chunk where partition = :key and {_CHUNKS})"),
    ("current", "first_offset", _LIES_FURTHER_ON.format(place="first_offset")),
    ("chunk", "offset", _CHUNKS),
)
# Values that only removed rows had in their family. Reads the chunks of these families once, in all partitions. Joined,
# since SQLite compares `not in` with every row.
_NOTE_FORMER = """
insert or ignore into {table} select gone.family, gone.{column} {more} from gone left join (
    select distinct family, {column} from chunk where family in (select family from gone)) as now
    on now.family = gone.family and now.{column} = gone.{column}
where now.family is null
"""
# The signs keep SQLite from looking up each family with each text.
_IS_BACK = """
delete from former_text where family in (select family from chunk where id > :last)
and (+family, +text_hash) in (select family, text_hash from chunk where id > :last)
"""

_TWINS = """
chunk new cross join chunk old indexed by chunk_id on old.chunk_id = new.chunk_id
where new.id > ? and old.partition = ? and old.id <> new.id
"""
_OTHERS_OF_CHANGED = """
select offset, length from chunk indexed by chunk_family where partition = :key and id <= :last and family in (
    select family from gone union select family from chunk where id > :last)
order by offset
"""


class _OwnerFields(msgspec.Struct, gc=False):
    """The tenant of a chunk or of its metadata."""

    parent_id: str | None = None
    tenant_id: str | None = None


class _ChunkFields(_OwnerFields, gc=False, kw_only=True):
    """The part of a chunk that is decoded; more would be slow for millions."""

    chunk_id: str
    document_id: str
    text: str
    provenance: Provenance
    metadata: _OwnerFields | None = None
    created_at: str | None = None


_NO_OWNER = _OwnerFields()


def rows_of(key: str, lines: Iterable[Line]) -> Iterator[Row]:
    """The values of `COLUMNS` for these lines of a partition."""
    decode = msgspec.json.Decoder(_ChunkFields).decode
    for place, line in lines:
        yield _row(key, place, line, decode(line))


def _row(key: str, place: Place, line: bytes, chunk: _ChunkFields) -> Row:
    provenance, named = chunk.provenance, chunk.metadata or _NO_OWNER
    parent = resolve_parent_id(chunk.parent_id or named.parent_id, provenance.source(), chunk.document_id)
    return (
        key,
        place.offset,
        place.length,
        family_key(parent, chunk.tenant_id or named.tenant_id or None),
        parent,
        chunk.document_id,
        chunk.chunk_id,
        text_hash(chunk.text),
        provenance.checksum(),
        _version(provenance.version()),
        instant(chunk.created_at) if chunk.created_at else None,
        hash_of_line(line),
    )


@lru_cache(maxsize=256)  # neighbours mostly share it
def _version(version: tuple[str | None, ...]) -> str:
    return json_hash(version)[:16]


@lru_cache(maxsize=256)  # as above
def instant(stamp: str) -> str:
    """One spelling for one moment, so that text order is order in time."""
    return parse_time(stamp).replace(tzinfo=None).isoformat(timespec="microseconds")  # strftime pads no year


def hash_of_line(line: bytes) -> bytes:
    return blake2b(line, digest_size=_BYTES).digest()


class ContentOf:
    """`content_of(line)` in SQL: one hash for lines in any order."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def step(self, line: bytes) -> None:
        self._lines.append(line)

    def finalize(self) -> bytes:
        return hash_of_line(b"".join(sorted(self._lines)))


def take_lines(
    db: Database, key: str, file: BinaryIO, part: PartialValidation | None = None, *, is_known: bool = True
) -> None:
    """Within the caller's transaction. Families with added or removed lines become `undecided`, or all families if
    the order of the lines changed. Of the other families, only the places change.

    `part` examines what changed of a file that was not validated, and raises NeedsValidation where that is not enough.
    Unless `is_known`, what the rows of the partition say may be wrong."""
    for statement in _TABLES:
        db.execute(statement)
    new = _new_lines(db, key, file, part, is_known)
    lost = "from chunk where id in (select id from lost)"
    db.execute(f"insert into gone select family, parent_id, document_id, text_hash {lost}")
    db.execute(f"delete {lost}")
    (last,) = db.execute("select coalesce(max(id), 0) from chunk").fetchone()
    values = ", ".join("?" * len(COLUMNS.split(",")))
    db.conn.executemany(f"insert into chunk ({COLUMNS}) values ({values})", rows_of(key, lines_of(new)))
    db.execute("insert or ignore into undecided select family, ? from gone", [key])
    db.execute("insert or ignore into undecided select family, partition from chunk where id > ?", [last])
    for table, column, more in (("former_text", "text_hash", ""), ("former_document", "document_id", ", parent_id")):
        db.execute(_NOTE_FORMER.format(table=table, column=column, more=more))
    db.execute(_IS_BACK, {"last": last})
    _move(db, key, last)
    if part:
        if exists(db, _TWINS, [last, key]):
            raise NeedsValidation
        for block in blocks_at(file, db.execute(_OTHERS_OF_CHANGED, {"key": key, "last": last})):
            part.examine(block)


def drop_lines(db: Database, key: str) -> None:
    """The partition is given up; likewise."""
    take_lines(db, key, BytesIO())


def touch_lines(db: Database, key: str) -> None:
    """What counts must be decided again for all families of a partition."""
    db.execute("insert or ignore into undecided select family, partition from chunk where partition = ?", [key])


def _new_lines(
    db: Database, key: str, file: BinaryIO, part: PartialValidation | None, is_known: bool
) -> Iterable[LineBlock]:
    """Fills `kept` and `lost`. Where too many lines differ, all are lost and new."""
    if part:
        return map(part.examine, blocks_at(file, _compare(db, key, lines_of(read_blocks(file, part.watch)))))
    try:
        if is_known and exists(db, "chunk where partition = ?", [key]):
            return blocks_at(file, _compare(db, key, read_lines(file)))
    except NeedsValidation:
        db.execute("delete from kept")
        file.seek(0)
    db.execute("insert into lost select id from chunk where partition = ?", [key])
    return read_blocks(file)


def _compare(db: Database, key: str, lines: Iterable[Line]) -> list[Place]:
    """Fills `kept` and `lost`, and returns the places of new lines, in order."""
    stored = db.execute("select id, offset, line from chunk where partition = ? order by offset", [key])
    lost: dict[bytes, tuple[int, Row]] = {}
    arrived: dict[bytes, Place] = {}
    db.conn.executemany("insert into kept values (?, ?, ?)", _runs(_matches(stored, lines, lost, arrived)))
    db.conn.executemany("insert into lost values (?)", ((id,) for _, (id, *_) in lost.values()))
    return sorted(arrived.values())


def _matches(
    stored: Iterable[Row], lines: Iterable[Line], lost: dict[bytes, tuple[int, Row]], arrived: dict[bytes, Place]
) -> Iterator[tuple[int, int, int]]:
    """Of each line in both readings its number in the former one, its place there and its place now.

    Both are gone through in step. A line waits in `lost` or `arrived` until the other reading comes to it. Raises
    NeedsValidation where too many wait, or a new line occurs twice."""
    for number, (row, line) in enumerate(zip_longest(stored, lines)):
        now = hash_of_line(line[1]) if line else b""
        if row and row[2] == now:
            yield number, row[1], line[0].offset
            continue
        if row:
            if found := arrived.pop(row[2], None):
                yield number, row[1], found.offset
            else:
                lost[row[2]] = number, row
        if line:
            if earlier := lost.pop(now, None):
                yield earlier[0], earlier[1][1], line[0].offset
            elif now in arrived:
                raise NeedsValidation
            else:
                arrived[now] = line[0]
        if len(lost) + len(arrived) > _WAITING:
            raise NeedsValidation


def _runs(matches: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """The rows of `kept`."""
    first, last, shift, following = -1, -1, 0, -1
    for number, was, offset in matches:
        if number != following or offset - was != shift:
            if first >= 0:
                yield first, last, shift
            first, shift = was, offset - was
        last, following = was, number + 1
    if first >= 0:
        yield first, last, shift


def _move(db: Database, key: str, last: int) -> None:
    """Updates the places of the kept lines, which are the rows up to the `last` one."""
    if db.execute(_IS_REORDERED).fetchone() is not None:
        touch_lines(db, key)
    for table, place, which in _MOVE:
        db.execute(_SHIFTED.format(table=table, place=place, which=which), {"key": key, "last": last})


def drop_former_texts(db: Database) -> None:
    """Drop the former texts of all families, after their vectors were dropped from the cache."""
    db.execute("delete from former_text")
