"""Updates the rows of a partition's chunks when its file changes, and records former texts and documents of sources.

Unchanged lines keep their rows even if they have moved within the file. So a small change costs little more than
reading the file. A line is identified by its hash. No line occurs twice, because no chunk id does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import msgspec
import orjson

from chunksink.chunkbus.canonical import json_hash, text_hash
from chunksink.chunkbus.chunk import Provenance, Record
from chunksink.chunkbus.diagnosis import parse_time
from chunksink.chunkbus.identity import family_key, parent_id, tenant_id
from chunksink.chunkbus.reader import LineBlock, Place, blocks_at, lines_of, read_blocks, read_lines
from chunksink.chunkbus.validation import NeedsValidation, PartialValidation
from chunksink.embeddings.context import context_hash, context_of
from chunksink.rebuild.schema import exists, marks
from chunksink.sinks.projection import title_and_headings

if TYPE_CHECKING:
    from sqlite_utils import Database

Line = tuple[Place, bytes]
Row = tuple[Any, ...]
LINE_COLUMNS = "id, offset, length, line"
CHUNK_COLUMNS = (
    "id, partition, family, parent_id, document_id, chunk_id, text_hash, source_checksum, version, created_at, context"
)
KEY = "text_hash || lower(hex(context))"
"""The name of a chunk's vector in the cache, in SQL."""
_BYTES = 16
"""Length of the hash of a line."""

_WAITING = 200_000
"""The most unmatched lines that are kept in memory."""

_BATCH = 1000  # rows
_INSERT = "insert into {} ({}) values ({})"
_TABLES = (
    "create temp table if not exists removed_row (id integer primary key)",
    # A row is a run of kept lines: their former places are `first` to `last`, and all moved by `shift`.
    "create temp table if not exists kept (first integer primary key, last integer, shift integer)",
    "create temp table if not exists removed (family text, parent_id text, document_id text, text_hash text)",
    "delete from removed_row",
    "delete from kept",
    "delete from removed",
)
# If a partition has several versions of a source, the one that has the last line is used. So the order matters.
_IS_REORDERED = """
select 1 from (select first + shift as place, lag(last + shift) over (order by first) as before from kept)
where place < before limit 1
"""
_MOVE = """
update chunk_line set offset = offset
    + coalesce((select shift from kept where first <= offset order by first desc limit 1), 0)
where id in (select id from chunk where partition = :key and id <= :last)
and offset >= (select min(first) from kept where shift <> 0)
"""
# Values of removed rows that no remaining row of the family has. With `not in`, SQLite would compare all pairs of rows.
_NOTE_FORMER = """
insert or ignore into {table} select removed.family, removed.{column} {more} from removed left join (
    select distinct family, {column} from chunk where family in (select family from removed)) as now
    on now.family = removed.family and now.{column} = removed.{column}
where now.family is null
"""
# The plus signs prevent an index lookup for each pair of a family and a text.
_DROP_RETURNED = """
delete from former_text where family in (select family from chunk where id > :last)
and (+family, +text_hash) in (select family, text_hash from chunk where id > :last)
"""

_DUPLICATE_IDS = """
chunk new cross join chunk old indexed by chunk_id on old.chunk_id = new.chunk_id
where new.id > ? and old.partition = ? and old.id <> new.id
"""
# The unchanged chunks of families that have added or removed ones.
_KEPT_OF_CHANGED = """
select offset, length from chunk indexed by chunk_family join chunk_line using (id)
where partition = :key and id <= :last and family in (
    select family from removed union select family from chunk where id > :last)
order by offset
"""


class _StoredLine(NamedTuple):
    """A line of the former reading."""

    id: int
    offset: int
    hash: bytes


def rows_of(key: str, lines: Iterable[Line], last: int) -> Iterator[tuple[Row, Row]]:
    """For each line of a partition, the values of `LINE_COLUMNS` and of `CHUNK_COLUMNS`. Their ids follow `last`."""
    for id, (place, line) in enumerate(lines, start=last + 1):
        yield (id, *place, hash_of_line(line)), (id, key, *_values(orjson.loads(line)))


def _values(chunk: Record) -> Row:
    provenance, parent = msgspec.convert(chunk["provenance"], Provenance), parent_id(chunk)
    created_at = chunk.get("created_at")
    return (
        family_key(parent, tenant_id(chunk)),
        parent,
        chunk["document_id"],
        chunk["chunk_id"],
        text_hash(chunk["text"]),
        provenance.checksum(),
        _version(provenance.version()),
        instant(created_at) if created_at else None,
        _context(*title_and_headings(chunk)),
    )


@lru_cache(maxsize=256)  # neighbouring chunks mostly share it
def _version(version: tuple[str | None, ...]) -> str:
    return json_hash(version)[:16]


@lru_cache(maxsize=256)  # as above
def _context(title: str | None, headings: tuple[str, ...]) -> bytes:
    return context_hash(context_of(title, headings))


@lru_cache(maxsize=256)  # as above
def instant(stamp: str) -> str:
    """The timestamp in one fixed format, so that sorting as text sorts by time."""
    # Not strftime, which does not pad years before 1000.
    return parse_time(stamp).replace(tzinfo=None).isoformat(timespec="microseconds")


def hash_of_line(line: bytes) -> bytes:
    return sha256(line).digest()[:_BYTES]  # many processors have instructions for it


class ContentOf:
    """The SQL aggregate `content_of(line)`: one hash of all lines in a group, whatever their order."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def step(self, line: bytes) -> None:
        self._lines.append(line)

    def finalize(self) -> bytes:
        return hash_of_line(b"".join(sorted(self._lines)))


def update_chunks(
    db: Database, key: str, file: BinaryIO, part: PartialValidation | None = None, *, trust_rows: bool = True
) -> None:
    """Update the rows of a partition, within the caller's transaction. Families with added or removed lines become
    `undecided`, or all families if the order of the lines changed. In other families only the places change.

    With `part`, the file is not validated yet: validates the families with changed lines, and raises NeedsValidation
    if that is not enough. Without `trust_rows`, the recorded rows may be wrong, so all are replaced."""
    for statement in _TABLES:
        db.execute(statement)
    new = _new_lines(db, key, file, part, trust_rows)
    removed = "from chunk where id in (select id from removed_row)"
    db.execute(f"insert into removed select family, parent_id, document_id, text_hash {removed}")
    db.execute(f"delete {removed}")
    (last,) = db.execute("select coalesce(max(id), 0) from chunk").fetchone()
    rows = rows_of(key, lines_of(new), last)
    while batch := list(islice(rows, _BATCH)):
        of_lines, of_chunks = zip(*batch, strict=True)
        db.conn.executemany(_INSERT.format("chunk_line", LINE_COLUMNS, marks(LINE_COLUMNS.split(","))), of_lines)
        db.conn.executemany(_INSERT.format("chunk", CHUNK_COLUMNS, marks(CHUNK_COLUMNS.split(","))), of_chunks)
    db.execute("insert or ignore into undecided select family, ? from removed", [key])
    db.execute("insert or ignore into undecided select family, partition from chunk where id > ?", [last])
    for table, column, more in (("former_text", "text_hash", ""), ("former_document", "document_id", ", parent_id")):
        db.execute(_NOTE_FORMER.format(table=table, column=column, more=more))
    db.execute(_DROP_RETURNED, {"last": last})
    _move(db, key, last)
    if part:
        if exists(db, _DUPLICATE_IDS, [last, key]):
            raise NeedsValidation
        for block in blocks_at(file, db.execute(_KEPT_OF_CHANGED, {"key": key, "last": last})):
            part.examine(block)


def drop_chunks(db: Database, key: str) -> None:
    """Delete the chunks of a partition, within the caller's transaction."""
    update_chunks(db, key, BytesIO())


def mark_undecided(db: Database, key: str) -> None:
    """Mark all families of a partition as undecided."""
    db.execute("insert or ignore into undecided select family, partition from chunk where partition = ?", [key])


def _new_lines(
    db: Database, key: str, file: BinaryIO, part: PartialValidation | None, trust_rows: bool
) -> Iterable[LineBlock]:
    """The new lines. Fills `kept` and `removed_row`. If too many lines differ, replaces every row or, with `part`,
    raises NeedsValidation."""
    if part:
        return map(part.examine, blocks_at(file, _compare(db, key, lines_of(read_blocks(file, part.watch)))))
    try:
        if trust_rows and exists(db, "chunk where partition = ?", [key]):
            return blocks_at(file, _compare(db, key, read_lines(file)))
    except NeedsValidation:
        db.execute("delete from kept")
        file.seek(0)
    db.execute("insert into removed_row select id from chunk where partition = ?", [key])
    return read_blocks(file)


def _compare(db: Database, key: str, lines: Iterable[Line]) -> list[Place]:
    """Fills `kept` and `removed_row`, and returns the places of new lines, in order."""
    stored = db.execute(
        "select l.id, offset, line from chunk c join chunk_line l on l.id = c.id where partition = ? order by offset",
        [key],
    )
    removed: dict[bytes, tuple[int, _StoredLine]] = {}
    added: dict[bytes, Place] = {}
    matches = _matches(map(_StoredLine._make, stored), lines, removed, added)
    db.conn.executemany("insert into kept values (?, ?, ?)", _runs(matches))
    db.conn.executemany("insert into removed_row values (?)", ((line.id,) for _, line in removed.values()))
    return sorted(added.values())


def _matches(
    stored: Iterable[_StoredLine],
    lines: Iterable[Line],
    removed: dict[bytes, tuple[int, _StoredLine]],
    added: dict[bytes, Place],
) -> Iterator[tuple[int, int, int]]:
    """For each line in both readings: its index in the former reading, its former offset, its present offset.

    Both readings advance in step. A line waits in `removed` or `added` until the other reading reaches it. Raises
    NeedsValidation if too many wait or a new line occurs twice.
    """
    for index, (former, line) in enumerate(zip_longest(stored, lines)):
        place, hash = (line[0], hash_of_line(line[1])) if line else (None, b"")
        if former and place and former.hash == hash:
            yield index, former.offset, place.offset
            continue
        if former:
            if moved := added.pop(former.hash, None):
                yield index, former.offset, moved.offset
            else:
                removed[former.hash] = index, former
        if place:
            if hash in removed:
                earlier, former = removed.pop(hash)
                yield earlier, former.offset, place.offset
            elif hash in added:
                raise NeedsValidation
            else:
                added[hash] = place
        if len(removed) + len(added) > _WAITING:
            raise NeedsValidation


def _runs(matches: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Joins neighbouring matches with the same shift into rows of `kept`."""
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
    """Updates the places of kept lines: those with row numbers up to `last`."""
    if db.execute(_IS_REORDERED).fetchone() is not None:
        mark_undecided(db, key)
    db.execute(_MOVE, {"key": key, "last": last})


def drop_former_texts(db: Database) -> None:
    """Drop the former texts of all families. Call it after their vectors were dropped from the cache."""
    db.execute("delete from former_text")
