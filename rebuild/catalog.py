"""The catalog: what the bus says now. Derived from valid partitions, and read again only where one has changed.

Which version of a family counts is decided here, in SQL: the highest rank wins, tombstones retire lower ranks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from chunkbus.canonical import bare_hex, text_hash
from chunkbus.chunk import Record
from chunkbus.diagnose import parse_time
from chunkbus.identity import family_key, parent_id, tenant_id
from chunkbus.layout import BusRoot
from chunkbus.manifest import Manifest
from chunkbus.reader import Place, read_manifest, read_partition
from rebuild.state import State

# `standing`: a family in one partition, in its last source_checksum there, with its rank.
# `current`: the standing that counts, of each family that no tombstone of a higher rank retires.
_VIEWS = """
create temp view if not exists standing as
with last as (select partition, family, source_checksum, max(offset) from chunk group by partition, family)
select c.partition, c.family, c.parent_id, c.source_checksum, min(c.offset) as first_offset,
    case when count(*) = count(c.created_at) then max(c.created_at) else p.created_at end as rank
from chunk c join last using (partition, family) join partition p on p.key = c.partition
where c.source_checksum is last.source_checksum
group by c.partition, c.family;

create temp view if not exists retired as
select s.partition, s.family from standing s join tombstone t on t.parent_id in (s.parent_id, s.family)
where s.partition <> t.partition and (s.rank, s.partition) < (t.at, t.partition)
union
select s.partition, s.family from standing s join tombstone t on t.document_id is not null
where s.partition <> t.partition and (s.rank, s.partition) < (t.at, t.partition) and exists (
    select 1 from chunk c where c.partition = s.partition and c.family = s.family and c.document_id = t.document_id);

create temp table if not exists current (family text primary key, partition text, first_offset int, source_checksum);
"""

_FILL_CURRENT = """
insert into current
select family, partition, first_offset, source_checksum from (
    select *, row_number() over (partition by family order by rank desc, partition desc) as place from standing
) where place = 1 and (partition, family) not in (select partition, family from retired)
"""


@dataclass(frozen=True)
class CurrentFamily:
    """A family that the index must hold, and where its chunks lie."""

    family: str
    partition: str
    chunks: tuple[tuple[Place, str], ...]
    """Each chunk's place and text hash."""


@dataclass(frozen=True)
class CatalogCounts:
    families: int
    chunks: int
    superseded: int


class Catalog:
    """The catalog in `state.db`. `refresh` reads what changed; the rest answers from the database."""

    def __init__(self, state: State) -> None:
        self._db = state.db
        self._db.executescript(_VIEWS)

    def refresh(self, root: BusRoot) -> None:
        """Takes in partitions that are new or changed, drops those that are gone, decides what counts."""
        keys = root.partition_keys()
        known = dict(self._db.execute("select key, checksum from partition").fetchall())
        for key in sorted(set(known) - set(keys)):
            with self._db.conn:
                self._drop(key)
        for key in keys:
            manifest = read_manifest(root, key)
            if known.get(key) != manifest.checksums.chunks_file:
                self._take_in(root, key, manifest)
        with self._db.conn:
            self._db.execute("delete from current")
            self._db.execute(_FILL_CURRENT)

    def counts(self) -> CatalogCounts:
        one = self._db.execute
        families = one("select count(*) from current").fetchone()[0]
        chunks = one(
            "select count(*) from chunk c join current u using (family, partition) "
            "where c.source_checksum is u.source_checksum"
        ).fetchone()[0]
        superseded = one("select count(*) from standing").fetchone()[0] - families
        return CatalogCounts(families, chunks, superseded)

    def duplicate_ids(self, limit: int = 20) -> list[tuple[str, str, str]]:
        """Chunk ids that two current families claim: (chunk_id, partition, other partition)."""
        return [
            (row[0], row[1], row[2])
            for row in self._db.execute(
                "select c.chunk_id, min(c.partition || '/' || c.parent_id), max(c.partition || '/' || c.parent_id) "
                "from chunk c join current u using (family, partition) where c.source_checksum is u.source_checksum "
                "group by c.chunk_id having count(distinct c.family) > 1 limit ?",
                [limit],
            )
        ]

    def families(self) -> Iterator[CurrentFamily]:
        """What the index must hold, in the order in which it lies on disk."""
        rows = self._db.execute(
            "select u.family, u.partition, c.offset, c.length, c.text_hash "
            "from current u join chunk c using (family, partition) where c.source_checksum is u.source_checksum "
            "order by u.partition, u.first_offset, u.family, c.offset"
        )
        for (family, partition), members in groupby(rows, key=lambda row: (row[0], row[1])):
            places = tuple((Place(offset, length), hashed) for _, _, offset, length, hashed in members)
            yield CurrentFamily(family, partition, places)

    def _take_in(self, root: BusRoot, key: str, manifest: Manifest) -> None:
        with self._db.conn:
            self._drop(key)
            created_at = _instant(manifest.created_at)
            self._db.table("partition").insert(
                {"key": key, "checksum": manifest.checksums.chunks_file, "created_at": created_at}
            )
            rows = (_chunk_row(key, place, record) for place, record in read_partition(root, key))
            self._db.conn.executemany(
                "insert into chunk values (:partition, :offset, :length, :family, :parent_id, :document_id, "
                ":chunk_id, :text_hash, :source_checksum, :created_at)",
                rows,
            )
            for tombstone in manifest.tombstones:
                at = _instant(tombstone.at) if tombstone.at else created_at
                self._db.table("tombstone").insert(
                    {"partition": key, "parent_id": tombstone.parent_id, "document_id": tombstone.document_id, "at": at}
                )

    def _drop(self, key: str) -> None:
        self._db.execute("delete from partition where key = ?", [key])
        self._db.execute("delete from chunk where partition = ?", [key])
        self._db.execute("delete from tombstone where partition = ?", [key])


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
