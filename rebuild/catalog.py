"""The catalog: what the bus says now, as far as it was taken in.

Which version of a family counts is decided here, in SQL: the highest rank wins, tombstones retire lower ranks. Only
families that changed are decided again, so that what a run costs follows the change.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from chunkbus.findings import Finding, Severity
from chunkbus.layout import BusRoot
from chunkbus.reader import Place
from chunkbus.store import write_transaction
from rebuild.errors import NotMissing
from rebuild.intake import MISSING, VALID, Intake, OnBytes, drop_partition, touch_partition
from rebuild.state import State
from sinks.projection import PROJECTION_VERSION

# In the partitions that changed; how a family stood in others is known. The index is named, or SQLite goes through the
# whole partition for each family: a partition has many chunks, a family few.
_CHANGED = "undecided cross join chunk indexed by chunk_family using (family, partition)"
_DECIDE_EDITIONS = f"""
insert into edition select distinct family, partition, document_id, source_checksum, version from {_CHANGED}
"""
_DECIDE_STANDING = f"""
with last as (
    select partition, family, source_checksum, max(offset), count(distinct source_checksum) as versions
    from {_CHANGED} group by family, partition)
insert into standing
select c.family, c.partition, p.taken, c.parent_id, c.source_checksum, min(c.offset), count(*), max(1, last.versions),
    case when count(*) = count(c.created_at) then max(c.created_at) else p.created_at end
from last cross join chunk c indexed by chunk_family on c.family = last.family and c.partition = last.partition
join partition p on p.key = c.partition
where c.source_checksum is last.source_checksum
group by c.family, c.partition
"""

_OF_TENANT = "(t.tenant_id is null or s.family = family_key(s.parent_id, t.tenant_id))"
# A withdrawn document takes along what it had superseded: an older text must not come back.
_DECIDE_CURRENT = f"""
create temp table decided as
with mine as (select * from standing where family in (select family from undecided)),
retired as (
    select s.family, s.partition from mine s join tombstone t on t.parent_id in (s.parent_id, s.family)
    where s.partition <> t.partition and (s.rank, s.partition) < (t.at, t.partition) and {_OF_TENANT}
    union
    select s.family, s.partition from mine named
    join edition e on e.family = named.family and e.partition = named.partition
    join tombstone t on t.document_id = e.document_id
    join mine s on s.family = named.family
    where e.source_checksum is named.source_checksum and t.partition not in (s.partition, named.partition)
    and {_OF_TENANT}
    and (named.rank, named.partition) < (t.at, t.partition)
    and (s.rank, s.partition) <= (named.rank, named.partition))
select family, partition, taken, source_checksum, first_offset, chunks from (
    select *, row_number() over (partition by family order by rank desc, partition desc) as place from mine
    where (family, partition) not in (select family, partition from retired)
) where place = 1
"""

# What was projected stays known while it is taken from the same reading.
_KEEP_CURRENT = """
insert into current (family, partition, taken, source_checksum, first_offset, chunks)
select family, partition, taken, source_checksum, first_offset, chunks from decided where true
on conflict (family) do update set
    partition = excluded.partition, taken = excluded.taken, source_checksum = excluded.source_checksum,
    first_offset = excluded.first_offset, chunks = excluded.chunks,
    family_hash = case when taken = excluded.taken then family_hash end,
    digest = case when taken = excluded.taken then digest end,
    texts = case when taken = excluded.taken then texts end
"""

_HOLD_ABSENT = """
insert or ignore into held
select distinct e.family, p.state, 'partition ' || p.key || ' is ' || p.state
from edition e join partition p on p.key = e.partition
where p.state <> 'valid' and e.family in (select family from undecided)
"""

# What is undecided leads (`cross join` keeps that order): SQLite would rather look at every chunk there is.
_HOLD_TWINS = """
insert or ignore into held
select family, 'duplicate id', detail from (
    select mine.family as one, theirs.family as other,
        'chunk_id ' || substr(mine.chunk_id, 1, 120) || ' is claimed by document ' || substr(mine.document_id, 1, 120)
        || ' (partition ' || mine.partition || ', byte ' || mine.offset || ') and by document '
        || substr(theirs.document_id, 1, 120) || ' (partition ' || theirs.partition || ', byte ' || theirs.offset
        || '); `chunksink why CHUNK_ID` tells their sources and lines' as detail
    from (select distinct family from undecided) cross join current u using (family)
    cross join chunk mine indexed by chunk_family on mine.family = u.family and mine.partition = u.partition
    cross join current_chunk theirs on theirs.chunk_id = mine.chunk_id and theirs.family <> mine.family
    where mine.source_checksum is u.source_checksum
) join current on family in (one, other)
"""

# Rows of one version in two partitions without a common id are parts of it; with one they are a copy. Nearly always an
# id stands in all of them: only where none does, they are compared two by two.
_HOLD_SPLITS = """
with several as materialized (
    select family, version, min(partition) as one, count(distinct partition) as partitions from edition
    where source_checksum is not null and family in (select family from undecided)
    group by family, version having count(distinct partition) > 1),
apart as materialized (
    select family, version from several where not exists (
        select 1 from chunk x indexed by chunk_family
        where x.family = several.family and x.partition = one and x.version = several.version and partitions = (
            select count(distinct y.partition) from chunk y indexed by chunk_id
            where y.chunk_id = x.chunk_id and y.family = x.family and y.version = x.version))),
pair as (
    select family, (
        select a.partition || ' and ' || b.partition
        from edition a indexed by edition_family join edition b indexed by edition_family
        on b.family = a.family and b.version = a.version and b.partition > a.partition
        where a.family = apart.family and a.version = apart.version and not exists (
            select 1 from chunk x indexed by chunk_family join chunk y indexed by chunk_id
            on y.chunk_id = x.chunk_id and y.family = x.family and y.version = x.version
            where x.family = a.family and x.version = a.version and x.partition = a.partition
            and y.partition = b.partition)
        limit 1) as partitions
    from apart)
insert or ignore into held
select family, 'family split', 'other chunks of the same version stand in partitions ' || partitions
from pair where partitions is not null
"""

# The chunks of the least and of the greatest family stand for all; family keys are 64 digits long.
_REPEATED = """
select count(*) as chunks, substr(min(family || chunk_id), 65) as one, substr(max(family || chunk_id), 65) as other
from current_chunk group by text_hash having min(family) <> max(family)
"""

GONE = "family not in (select family from current) and family not in (select family from held)"
"""Of families in the index: those that the bus does not say any more."""


@dataclass(frozen=True)
class CurrentFamily:
    """A family that the index must hold, and where its chunks lie."""

    family: str
    partition: str
    taken: int
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


@dataclass(frozen=True)
class HeldFamily:
    """A family that is left in the index as it is, and why."""

    family: str
    reason: str
    detail: str
    source: str = ""
    """Its name; empty where the index never held it."""


class Catalog:
    """The catalog in `state.db`. `refresh` reads what changed; the rest answers from the database."""

    def __init__(self, state: State) -> None:
        self._db = state.db
        self._forget_other_projection()

    def refresh(self, intake: Intake, on_bytes: OnBytes = lambda _bytes: None, *, reread: bool = False) -> None:
        """Takes in what is new or changed, then decides what counts."""
        intake.run(on_bytes, reread=reread)
        self.decide()

    def decide(self) -> None:
        """Works out which versions of the families that changed count, and which of them are held."""
        with write_transaction(self._db):
            self._db.execute("insert or ignore into undecided select family, '' from held")
            if self._db.execute("select 1 from undecided limit 1").fetchone() is None:
                return
            self._db.execute("drop table if exists temp.decided")
            for table, decide in (("edition", _DECIDE_EDITIONS), ("standing", _DECIDE_STANDING)):
                self._db.execute(f"delete from {table} where (family, partition) in undecided")
                self._db.execute(decide)
            self._db.execute(_DECIDE_CURRENT)
            mine = "family in (select family from undecided)"
            self._db.execute(f"delete from current where {mine} and family not in (select family from decided)")
            self._db.execute(_KEEP_CURRENT)
            self._db.execute("delete from held")
            for hold in (_HOLD_ABSENT, _HOLD_TWINS, _HOLD_SPLITS):
                self._db.execute(hold)
            self._db.execute("delete from undecided")

    def counts(self) -> CatalogCounts:
        families, chunks = self._db.execute("select count(*), coalesce(sum(chunks), 0) from current").fetchone()
        select = "select coalesce(sum(versions), 0) from standing where family in (select family from current)"
        versions = self._db.execute(select).fetchone()[0]
        return CatalogCounts(families, chunks, versions - families)

    def is_whole(self) -> bool:
        """Whether every partition that was ever taken in is there and valid. If not, nothing is known to be gone."""
        return self._db.execute("select 1 from partition where state <> ? limit 1", [VALID]).fetchone() is None

    def known_partitions(self) -> list[str]:
        return known_partitions(self._db)

    def missing_partitions(self) -> list[str]:
        rows = self._db.execute("select key from partition where state = ? order by key", [MISSING])
        return [key for (key,) in rows]

    def findings(self, limit: int = -1) -> list[Finding]:
        """What is wrong with partitions as they were last read; errors first."""
        rows = self._db.execute(
            "select code, severity, partition, line, detail from finding "
            "order by severity <> 'error', partition, line limit ?",
            [limit],
        )
        return [Finding(code, Severity(severity), key, line, detail) for code, severity, key, line, detail in rows]

    def held(self, limit: int = -1) -> list[HeldFamily]:
        rows = self._db.execute("select family, reason, detail from held order by family limit ?", [limit])
        return [HeldFamily(*row) for row in rows]

    def retire(self, root: BusRoot, key: str) -> int:
        """Forgets a partition that is not there any more; how many families it was the last to hold."""
        if key in root.partition_keys():
            raise NotMissing(
                f"partition {key} is still in {root.path}: to empty it, write it anew without chunks; "
                "to retire it, remove its chunks file and its manifest first"
            )
        if self._db.execute("select 1 from partition where key = ?", [key]).fetchone() is None:
            known = ", ".join(self.missing_partitions()) or "none"
            raise NotMissing(f"no partition {key} is known, or it was retired already; missing are: {known}")
        before = self.counts().families
        with write_transaction(self._db):
            touch_partition(self._db, key)
            drop_partition(self._db, key)
        self.decide()
        return before - self.counts().families

    def families(self, keys: Sequence[str] | None = None) -> Iterator[CurrentFamily]:
        """What the index must hold, in the order in which it lies on disk; of these families, or all of them."""
        rows_of, values = "current_chunk", []
        if keys is not None:
            rows_of, values = f"family_chunk where family in ({', '.join('?' * len(keys))})", list(keys)
        rows: Iterable[Any] = self._db.execute(
            f"select family, partition, offset, length, text_hash, taken from {rows_of} "
            f"order by partition, first_offset, family, offset",
            values,
        )
        if keys is not None:  # an open look would keep this connection from writing once another one has written
            rows = list(rows)
        for (family, partition, taken), members in groupby(rows, key=lambda row: (row[0], row[1], row[5])):
            places = tuple((Place(offset, length), hashed) for _, _, offset, length, hashed, _ in members)
            yield CurrentFamily(family, partition, taken, places)

    def chunks(self) -> Iterator[CurrentChunk]:
        """The chunks of the current families, in the order in which they lie on disk."""
        rows = self._db.execute("select partition, chunk_id, text_hash from current_chunk order by partition, offset")
        return (CurrentChunk(*row) for row in rows)

    def some_texts(self, limit: int) -> list[str]:
        """Text hashes of some chunks, the same whenever the chunks are: as good as drawn."""
        rows = self._db.execute("select distinct text_hash from current_chunk order by text_hash limit ?", [limit])
        return [text_hash for (text_hash,) in rows]

    def places_of_texts(self, text_hashes: Sequence[str]) -> list[tuple[str, Place, str]]:
        """For each of these texts a chunk that has it and can be read: partition, place, text hash; as on disk."""
        rows = self._db.execute(
            "select partition, offset, length, text_hash from current_chunk "
            f"where text_hash in ({', '.join('?' * len(text_hashes))}) "
            "and partition in (select key from partition where state = ?) group by text_hash order by 1, 2",
            [*text_hashes, VALID],
        )
        return [(partition, Place(offset, length), hashed) for partition, offset, length, hashed in rows]

    def repeated_texts(self, examples: int = 5) -> RepeatedTexts:
        """Texts that more than one current family holds."""
        count = f"select count(*), coalesce(sum(chunks), 0) from ({_REPEATED})"
        texts, chunks = self._db.execute(count).fetchone()
        pairs = self._db.execute(f"select one, other from ({_REPEATED}) order by chunks desc, one limit ?", [examples])
        return RepeatedTexts(texts, chunks, tuple(pairs.fetchall()))

    def note_projected(self, rows: Iterable[tuple[str, int, str, str, str]]) -> None:
        """Hashes of families as they were projected: family, taken, family hash, digest, texts.

        What was read from another reading of the partition than the one that counts now is not noted.
        """
        with write_transaction(self._db):
            self._db.conn.executemany(
                "update current set family_hash = ?3, digest = ?4, texts = ?5 where family = ?1 and taken = ?2",
                list(rows),
            )

    def read_again(self, key: str) -> None:
        """The partition is not what it was when it was read: the next refresh reads it."""
        with write_transaction(self._db):
            self._db.execute("update partition set signature = null, manifest = null where key = ?", [key])

    def _forget_other_projection(self) -> None:
        """Hashes of another projection say nothing about this one."""
        if self._db.execute("select version from projection").fetchone() == (PROJECTION_VERSION,):
            return
        with write_transaction(self._db):
            self._db.execute("delete from projection")
            self._db.execute("insert into projection values (?)", [PROJECTION_VERSION])
            self._db.execute("update current set family_hash = null, digest = null, texts = null")


def known_partitions(db: Any) -> list[str]:
    """Those that were ever taken in, and not retired since."""
    return [key for (key,) in db.execute("select key from partition where checksum is not null order by key")]
