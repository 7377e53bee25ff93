"""Finds repeated ids and split families in a run, with a temporary database of hash numbers.

Memory stays flat, because the database spills to a temporary file. Different ids can share a hash number, so lines
with equal numbers are read again before they are reported.
"""

import sqlite3
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import BinaryIO

import orjson

from chunksink.chunkbus.chunk import Chunk
from chunksink.chunkbus.errors import RepeatedId
from chunksink.chunkbus.families import STRETCH_COLUMNS, hash_number
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.record_checks import MAX_LINE_BYTES, examine_line
from chunksink.chunkbus.scan import BlockReport
from chunksink.chunkbus.store import explained
from chunksink.chunkbus.wording import counted

# Lines are numbered across all partitions. Stretches of one version are compared across partitions (`scope` -1) if they
# have a source checksum. Without one, an edit does not change the `version` number, so equal numbers in two partitions
# prove nothing: such stretches are compared only within a partition (`scope` is its number).
_SCHEMA = f"""
pragma journal_mode = off;
pragma synchronous = off;
pragma threads = 1;
create table line (number integer primary key, id integer not null);
create table batch (first integer primary key, offsets blob not null);
create table stretch (
    partition integer not null,
    {" integer not null, ".join(STRETCH_COLUMNS)} integer not null,
    scope integer generated always as (iif(checksum, -1, partition))
);
"""
_ADD_STRETCH = (
    f"insert into stretch (partition, {', '.join(STRETCH_COLUMNS)}) values (?, {', '.join('?' * len(STRETCH_COLUMNS))})"
)
_ADD_IDS = "insert into line select ? + key, value from json_each(?)"  # three times as fast as a statement for each row
_REPEATED = """
select number from line
where number > :before and id in (
    select id from line where number > :before and id <> 0 group by id having count(*) > 1
)
order by number
"""
_OUTDATED = """
with several as (
    select first, lines, checksum, family, last_value(checksum) over (
        partition by family order by first rows between unbounded preceding and unbounded following
    ) as last
    from stretch
    where partition = :partition and family in (
        select family from stretch where partition = :partition
        group by family having min(checksum) < max(checksum)
    )
)
select min(first), sum(lines), count(distinct checksum) from several
where checksum <> last group by family order by min(first)
"""
_COUNT = "select count(*) from (select 1 from stretch where partition = ? group by {})"
_SUSPECTS = """
select version, scope, partition, first, lines, expected, document from stretch
where (version, scope) in (
    select version, scope from stretch group by version, scope
    having min(partition) < max(partition) or sum(lines) < max(expected)
)
order by version, scope, partition, first
"""


@dataclass(frozen=True)
class OutdatedVersions:
    """The chunks of one source whose source_checksum differs from that of its last chunk in the file. `line` is the
    first of them."""

    line: int
    source: str
    chunks: int
    versions: int


@dataclass(frozen=True)
class SplitFamily:
    """The part of a split family in one partition: its first line there, its document and source, and the reason."""

    partition: str
    line: int
    document_id: str
    source: str | None
    reason: str


@dataclass(frozen=True)
class _Part:
    """The part of one version of a family in one partition: where it begins, and the hash numbers of its ids."""

    key: str
    line: int
    offset: int
    document: int
    expected: int
    ids: set[int]


class Inventory:
    """Takes the lines of one partition after another, in order."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("")
        self._db.row_factory = sqlite3.Row
        self._db.executescript(_SCHEMA)
        self._lines = 0
        self._partitions: list[tuple[str, int]] = []
        """The key of each partition, and the number of lines before it."""
        self._refused: set[int] = set()
        """The numbers of partitions with a refused line."""

    def __enter__(self) -> "Inventory":
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._db.close()
        if (explanation := explained(error, "the temporary database")) is not None:
            raise explanation from error

    def begin(self, key: str) -> None:
        """Starts a partition; lines added from now on belong to it."""
        self._partitions.append((key, self._lines))

    def add_ids(self, ids: "array[int]", offsets: "array[int]") -> None:
        """For each line: the hash number of its id (0 if it has none) and its offset in the file."""
        if not ids:
            return
        first = self._lines + 1
        self._db.execute(_ADD_IDS, [first, orjson.dumps(ids.tolist()).decode()])
        self._db.execute("insert into batch values (?, ?)", [first, offsets.tobytes()])
        self._lines += len(ids)

    def add(self, block: BlockReport) -> None:
        """Adds the next lines of the current partition."""
        number, first = len(self._partitions) - 1, self._lines + 1
        self._db.executemany(_ADD_STRETCH, ((number, first + line, *rest) for line, *rest in block.stretches))
        if block.has_refused:
            self._refused.add(number)
        self.add_ids(block.ids, block.offsets)

    def repeated_ids(self, file: BinaryIO) -> Iterator[RepeatedId]:
        """Repeated ids in the current partition."""
        _, before = self._partitions[-1]
        first_line: dict[str, int] = {}
        for (number,) in self._db.execute(_REPEATED, {"before": before}):
            chunk = _chunk_at(file, self._offset_of(number))
            if chunk is not None:
                earlier = first_line.setdefault(chunk.chunk_id, number - before)
                if earlier != number - before:
                    yield RepeatedId(chunk.chunk_id, number - before, earlier)

    def outdated_versions(self, file: BinaryIO) -> Iterator[OutdatedVersions]:
        """Versions in the current partition that a later one replaces."""
        partition = len(self._partitions) - 1
        for first, chunks, versions in self._db.execute(_OUTDATED, {"partition": partition}):
            chunk = _chunk_at(file, self._offset_of(first))
            source = None if chunk is None else chunk.provenance.source()
            if source is not None:
                yield OutdatedVersions(first - self._partitions[-1][1], source, chunks, versions)

    def fewest_documents(self) -> int:
        """The number of documents or of sources in the current partition, whichever is smaller.

        Manifests may count either. A source with several versions has several `document_id`s.
        """
        partition = [len(self._partitions) - 1]
        counts = [self._db.execute(_COUNT.format(column), partition).fetchone() for column in ("document", "source")]
        return min(int(count) for (count,) in counts)

    def split_families(self, root: BusRoot) -> Iterator[SplitFamily]:
        """The incomplete parts of versions: those with fewer ids than the `chunk_count`, and those that have no id in
        common with the part in another partition. (Parts with a common id are copies.)

        Partitions with a refused line are left out, because that line may be the missing chunk.
        """
        for _, version in groupby(self._db.execute(_SUSPECTS), key=itemgetter("version", "scope")):
            by_partition = groupby(version, key=itemgetter("partition"))
            parts = [self._part(list(rows)) for number, rows in by_partition if number not in self._refused]
            for part in parts:
                apart = [other.key for other in parts if other.ids.isdisjoint(part.ids)]
                if apart or len(part.ids) < part.expected:
                    yield from self._split(root, part, apart)

    def _part(self, stretches: list[sqlite3.Row]) -> _Part:
        ids: set[int] = set()
        for stretch in stretches:
            of_stretch = "select id from line where number >= :first and number < :first + :lines"
            ids.update(number for (number,) in self._db.execute(of_stretch, dict(stretch)))
        first, document = stretches[0]["first"], stretches[0]["document"]
        key, before = self._partitions[stretches[0]["partition"]]
        expected = max(stretch["expected"] for stretch in stretches)
        return _Part(key, first - before, self._offset_of(first), document, expected, ids)

    def _split(self, root: BusRoot, part: _Part, apart: list[str]) -> Iterator[SplitFamily]:
        """Yields nothing if the partition was rewritten meanwhile; the next run will check it."""
        try:
            file, _ = root.open(part.key)
        except OSError:
            return
        with file:
            chunk = _chunk_at(file, part.offset)
        if chunk is None or hash_number(chunk.document_id) != part.document:
            return
        if apart:
            reason = f"other chunks of the same version are in partition {', '.join(apart)}"
        else:
            pairs = (chunk.provenance.parser_pair(), chunk.provenance.canonicalizer_pair())
            parser, canonicalizer = (f"{name} {version}" for name, version in pairs)
            made_with = f"made with the parser {parser!r:.80} and the canonicalizer {canonicalizer!r:.80}"
            here = f"the partition has only {counted(len(part.ids), 'chunk')} {made_with}"
            reason = f"chunk_count is {part.expected}, but {here}; the others are missing or of another version"
        yield SplitFamily(part.key, part.line, chunk.document_id, chunk.provenance.source(), reason)

    def _offset_of(self, number: int) -> int:
        batch = "select first, offsets from batch where first <= ? order by first desc limit 1"
        first, offsets = self._db.execute(batch, [number]).fetchone()
        of_batch: array[int] = array("q", offsets)
        return of_batch[number - int(first)]


def _chunk_at(file: BinaryIO, offset: int) -> Chunk | None:
    """None if the file has changed meanwhile."""
    file.seek(offset)
    chunk, _ = examine_line(file.readline(MAX_LINE_BYTES + 2).removesuffix(b"\n"))
    return chunk
