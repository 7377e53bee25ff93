"""The catalog: what the bus says now. Derived from valid partitions, and read again only where one has changed.

Which version of a family counts is decided here, in SQL: the highest rank wins, tombstones retire lower ranks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, BinaryIO

import orjson

from chunkbus.canonical import bare_hex, sha256_hex, text_hash
from chunkbus.chunk import Record
from chunkbus.diagnose import parse_time
from chunkbus.errors import PartitionChanged
from chunkbus.identity import family_key, parent_id, tenant_id
from chunkbus.layout import BusRoot
from chunkbus.manifest import Manifest, decode_manifest
from chunkbus.reader import Place, open_partition, read_lines
from rebuild.state import State

# `standing`: a family in one partition, in its last source_checksum there, with its rank.
# `current`: the standing that counts, of each family that is not retired; `current_chunk`: its chunks.
_TABLES = """
create temp table if not exists standing (
    family text, partition text, parent_id text, source_checksum text, first_offset int, rank text,
    primary key (family, partition)) without rowid;
create temp table if not exists current (family text primary key, partition text, first_offset int, source_checksum);
create temp view if not exists current_chunk as
    select c.*, u.first_offset from temp.current u join main.chunk c using (family, partition)
    where c.source_checksum is u.source_checksum;
"""

_FILL_STANDING = """
with last as (select partition, family, source_checksum, max(offset) from chunk group by family, partition)
insert into standing
select c.family, c.partition, c.parent_id, c.source_checksum, min(c.offset),
    case when count(*) = count(c.created_at) then max(c.created_at) else p.created_at end
from chunk c join last using (family, partition) join partition p on p.key = c.partition
where c.source_checksum is last.source_checksum
group by c.family, c.partition
"""

# A withdrawn document takes along what it had superseded: an older text must not come back.
_FILL_CURRENT = """
with retired as (
    select s.family, s.partition from standing s join tombstone t on t.parent_id in (s.parent_id, s.family)
    where s.partition <> t.partition and (s.rank, s.partition) < (t.at, t.partition)
    union
    select s.family, s.partition from tombstone t join chunk c using (document_id)
    join standing named on named.family = c.family and named.partition = c.partition
    join standing s on s.family = named.family
    where c.source_checksum is named.source_checksum and t.partition not in (s.partition, named.partition)
    and (named.rank, named.partition) < (t.at, t.partition)
    and (s.rank, s.partition) <= (named.rank, named.partition))
insert into current
select family, partition, first_offset, source_checksum from (
    select *, row_number() over (partition by family order by rank desc, partition desc) as place from standing
    where (family, partition) not in (select family, partition from retired)
) where place = 1
"""


# The chunks of the least and of the greatest family stand for all; family keys are 64 digits long.
_REPEATED = """
select count(*) as chunks, substr(min(family || chunk_id), 65) as one, substr(max(family || chunk_id), 65) as other
from current_chunk group by text_hash having min(family) <> max(family)
"""


@dataclass(frozen=True)
class CurrentFamily:
    """A family that the index must hold, and where its chunks lie."""

    family: str
    partition: str
    chunks: tuple[tuple[Place, str], ...]
    """Each chunk's place and text hash."""


@dataclass(frozen=True)
class CurrentChunk:
    """A chunk that the index must hold."""

    partition: str
    chunk_id: str
    text_hash: str


@dataclass(frozen=True)
class RepeatedTexts:
    """Texts that stand, letter for letter, in more than one source: how many, and in how many chunks."""

    texts: int
    chunks: int
    examples: tuple[tuple[str, str], ...]
    """Pairs of chunk ids of two sources that share a text, of those that stand most often."""


@dataclass(frozen=True)
class CatalogCounts:
    families: int
    chunks: int
    superseded: int


class Catalog:
    """The catalog in `state.db`. `refresh` reads what changed; the rest answers from the database."""

    def __init__(self, state: State) -> None:
        self._db = state.db
        self._db.executescript(_TABLES)

    def refresh(self, root: BusRoot) -> None:
        """Takes in partitions that are new or changed, drops those that are gone, decides what counts."""
        keys = root.partition_keys()
        known = dict(self._db.execute("select key, manifest from partition").fetchall())
        for key in sorted(set(known) - set(keys)):
            with self._db.atomic():
                self._drop_manifest(key)
                self._drop_chunks(key)
        for key in keys:
            if known.get(key) != sha256_hex(root.manifest_file(key).read_bytes()):
                self._take_in(root, key)
        self.decide()

    def missing_partitions(self, root: BusRoot) -> list[str]:
        """Partitions that were taken in and are not in the bus root now."""
        known = {key for (key,) in self._db.execute("select key from partition")}
        return sorted(known - set(root.partition_keys()))

    def decide(self) -> None:
        """Works out which versions count, from what was taken in."""
        with self._db.atomic():
            self._db.execute("delete from standing")
            self._db.execute(_FILL_STANDING)
            self._db.execute("delete from current")
            self._db.execute(_FILL_CURRENT)

    def counts(self) -> CatalogCounts:
        one = self._db.execute
        families = one("select count(*) from current").fetchone()[0]
        chunks = one("select count(*) from current_chunk").fetchone()[0]
        versions = one(
            "select count(*) from (select distinct family, partition, source_checksum from chunk "
            "where family in (select family from current))"
        ).fetchone()[0]
        return CatalogCounts(families, chunks, versions - families)

    def duplicate_ids(self, limit: int = 20) -> list[tuple[str, str, str]]:
        """Chunk ids that two current families claim: (chunk_id, place, other place)."""
        place = "'document ' || substr(document_id, 1, 120) || ' in partition ' || partition || ' at byte ' || offset"
        return [
            (row[0], row[1], row[2])
            for row in self._db.execute(
                f"select chunk_id, min({place}), max({place}) from current_chunk "
                "group by chunk_id having min(family) <> max(family) limit ?",
                [limit],
            )
        ]

    def families(self) -> Iterator[CurrentFamily]:
        """What the index must hold, in the order in which it lies on disk."""
        rows = self._db.execute(
            "select family, partition, offset, length, text_hash from current_chunk "
            "order by partition, first_offset, family, offset"
        )
        for (family, partition), members in groupby(rows, key=lambda row: (row[0], row[1])):
            places = tuple((Place(offset, length), hashed) for _, _, offset, length, hashed in members)
            yield CurrentFamily(family, partition, places)

    def chunks(self) -> Iterator[CurrentChunk]:
        """The chunks of the current families, in the order in which they lie on disk."""
        rows = self._db.execute("select partition, chunk_id, text_hash from current_chunk order by partition, offset")
        return (CurrentChunk(*row) for row in rows)

    def repeated_texts(self, examples: int = 5) -> RepeatedTexts:
        """Texts that more than one current family holds."""
        count = f"select count(*), coalesce(sum(chunks), 0) from ({_REPEATED})"
        texts, chunks = self._db.execute(count).fetchone()
        pairs = self._db.execute(f"select one, other from ({_REPEATED}) order by chunks desc, one limit ?", [examples])
        return RepeatedTexts(texts, chunks, tuple(pairs.fetchall()))

    def _take_in(self, root: BusRoot, key: str) -> None:
        """All of it or nothing: a partition that was half taken in would pass for one that holds less."""
        file, data = open_partition(root, key)
        with file, self._db.atomic():
            if data is None:
                raise PartitionChanged(f"partition {key} has no manifest any more: validate the chunks again")
            manifest = decode_manifest(data)
            held = self._db.execute("select checksum from partition where key = ?", [key]).fetchone()
            self._drop_manifest(key)
            self._note_manifest(key, manifest, sha256_hex(data))
            if held is None or held[0] != manifest.checksums.chunks_file:
                self._drop_chunks(key)
                self._note_chunks(key, file)

    def _note_manifest(self, key: str, manifest: Manifest, digest: str) -> None:
        created_at = _instant(manifest.created_at)
        checksum = manifest.checksums.chunks_file
        self._db.table("partition").insert(
            {"key": key, "manifest": digest, "checksum": checksum, "created_at": created_at}
        )
        for tombstone in manifest.tombstones:
            at = _instant(tombstone.at) if tombstone.at else created_at
            self._db.table("tombstone").insert(
                {"partition": key, "parent_id": tombstone.parent_id, "document_id": tombstone.document_id, "at": at}
            )

    def _note_chunks(self, key: str, file: BinaryIO) -> None:
        rows = (_chunk_row(key, place, orjson.loads(line)) for place, line in read_lines(file))
        self._db.conn.executemany(
            "insert into chunk values (:partition, :offset, :length, :family, :parent_id, :document_id, "
            ":chunk_id, :text_hash, :source_checksum, :created_at)",
            rows,
        )

    def _drop_manifest(self, key: str) -> None:
        self._db.execute("delete from partition where key = ?", [key])
        self._db.execute("delete from tombstone where partition = ?", [key])

    def _drop_chunks(self, key: str) -> None:
        self._db.execute("delete from chunk where partition = ?", [key])


def _chunk_row(key: str, place: Place, record: Record) -> dict[str, Any]:
    parent = parent_id(record)
    created_at = record.get("created_at")
    checksum = record["provenance"].get("source_checksum")
    return {
        "partition": key,
        "offset": place.offset,
        "length": place.length,
        "family": family_key(parent, tenant_id(record)),
        "parent_id": parent,
        "document_id": record["document_id"],
        "chunk_id": record["chunk_id"],
        "text_hash": text_hash(record["text"]),
        "source_checksum": bare_hex(checksum) or checksum,
        "created_at": _instant(created_at) if created_at else None,
    }


def _instant(stamp: str) -> str:
    """One spelling for one moment, so that text order is order in time."""
    return parse_time(stamp).strftime("%Y-%m-%dT%H:%M:%S.%f")
