"""Decides for each changed family which version is current, and whether the family is held.

The version with the newest time (`rank`) wins. A tombstone names a source or a `document_id`; it retires versions that
are older than itself. `family_version` lists every version in each partition, `last_version` the last one in each, and
`current` the one that counts. All of it is SQL about the families in `undecided`, so the cost depends on the size of
the change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chunksink.chunkbus.store import write_transaction
from chunksink.rebuild.schema import exists

if TYPE_CHECKING:
    from sqlite_utils import Database

# Reads only changed partitions. Without `indexed by`, SQLite would read the whole partition for each family.
_CHANGED = "undecided cross join chunk indexed by chunk_family using (family, partition)"
_LIST_VERSIONS = f"""
insert into family_version select distinct family, partition, document_id, source_checksum, version from {_CHANGED}
"""
_LIST_LAST_VERSIONS = f"""
with last as (
    select partition, family, source_checksum, max(offset), count(distinct source_checksum) as versions
    from {_CHANGED} join chunk_line using (id) group by family, partition)
insert into last_version
select c.family, c.partition, p.reading_id, min(c.parent_id), c.source_checksum, min(c.id), count(*),
    max(1, last.versions), case when count(*) = count(c.created_at) then max(c.created_at) else p.created_at end,
    content_of(l.line)
from last cross join chunk c indexed by chunk_family on c.family = last.family and c.partition = last.partition
join chunk_line l on l.id = c.id join partition p on p.key = c.partition
where c.source_checksum is last.source_checksum
group by c.family, c.partition
"""

_OF_TENANT = "(t.tenant_id is null or s.family = family_key(s.parent_id, t.tenant_id))"
# A tombstone that names a source retires versions of this source in other partitions that are older than the tombstone
# (first branch). One that names a `document_id` retires the version that has it, if it is older than the tombstone, and
# all older versions of its source (second branch): an older text must not come back.
_DECIDE_CURRENT = f"""
create temp table decided as
with mine as (select * from last_version where family in (select family from undecided)),
retired as (
    select s.family, s.partition from mine s join tombstone t on t.parent_id in (s.parent_id, s.family)
    where s.partition <> t.partition and (s.rank, s.partition) < (t.at, t.partition) and {_OF_TENANT}
    union
    select s.family, s.partition from mine named
    join family_version v on v.family = named.family and v.partition = named.partition
    join tombstone t on t.document_id = v.document_id
    join mine s on s.family = named.family
    where v.source_checksum is named.source_checksum and t.partition not in (s.partition, named.partition)
    and {_OF_TENANT}
    and (named.rank, named.partition) < (t.at, t.partition)
    and (s.rank, s.partition) <= (named.rank, named.partition))
select family, partition, reading_id, source_checksum, first, chunks, content from (
    select *, row_number() over (partition by family order by rank desc, partition desc) as place from mine
    where (family, partition) not in (select family, partition from retired)
) where place = 1
"""

# Family hashes stay valid while the lines of a family are the same, even if they have moved within the file.
_UPDATE_CURRENT = """
insert into current (family, partition, reading_id, source_checksum, first, chunks, content)
select family, partition, reading_id, source_checksum, first, chunks, content from decided where true
on conflict (family) do update set
    partition = excluded.partition, reading_id = excluded.reading_id, source_checksum = excluded.source_checksum,
    first = excluded.first, chunks = excluded.chunks, content = excluded.content,
    family_hash = case when current.content = excluded.content then family_hash end
"""

_HOLD_UNREAD = """
insert or ignore into held
select distinct v.family, p.state, 'partition ' || p.key || ' is ' || p.state
from family_version v join partition p on p.key = v.partition
where p.state <> 'valid' and v.family in (select family from undecided)
"""

_CLAIMANT = """
'document ' || substr({0}.document_id, 1, 120) || ' (partition ' || {0}.partition || ', byte '
    || (select offset from chunk_line l where l.id = {0}.id) || ')'
"""
# `cross join` makes SQLite start with the undecided families; otherwise it reads every chunk.
_HOLD_DUPLICATES = """
insert or ignore into held
select family, 'duplicate id', min(detail) from (
    select mine.family as one, theirs.family as other,
        'chunk_id ' || substr(mine.chunk_id, 1, 120) || ' is claimed by ' || min({mine}, {theirs}) || ' and by '
        || max({mine}, {theirs}) || '; give one of them other ids, or withdraw it; `chunksink why CHUNK_ID` shows '
        || 'their sources and lines' as detail
    from (select distinct family from undecided) cross join current u using (family)
    cross join chunk mine indexed by chunk_family on mine.family = u.family and mine.partition = u.partition
    cross join current_chunk theirs on theirs.chunk_id = mine.chunk_id and theirs.family <> mine.family
    where mine.source_checksum is u.source_checksum
) join current on family in (one, other) group by family
""".format(**{name: _CLAIMANT.format(name) for name in ("mine", "theirs")})

# If the same version of a family is in two partitions, and they share a chunk id, one partition has a copy. If they
# share none, each has a part of the family. If some chunk id is in all partitions of the version, which is usual, they
# are not compared further; else they are compared in pairs.
_HOLD_SPLITS = """
with several as materialized (
    select family, version, min(partition) as one, count(distinct partition) as partitions from family_version
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
        from family_version a indexed by family_version_family join family_version b indexed by family_version_family
        on b.family = a.family and b.version = a.version and b.partition > a.partition
        where a.family = apart.family and a.version = apart.version and not exists (
            select 1 from chunk x indexed by chunk_family join chunk y indexed by chunk_id
            on y.chunk_id = x.chunk_id and y.family = x.family and y.version = x.version
            where x.family = a.family and x.version = a.version and x.partition = a.partition
            and y.partition = b.partition)
        limit 1) as partitions
    from apart)
insert or ignore into held
select family, 'family split', 'a version of this source is split between partitions ' || partitions
from pair where partitions is not null
"""


def decide(db: Database) -> None:
    """Decide all families in `undecided` or `held`. Updates the three tables and `held`."""
    with write_transaction(db):
        db.execute("insert or ignore into undecided select family, '' from held")
        if not exists(db, "undecided"):
            return
        db.execute("drop table if exists temp.decided")
        for table, insert in (("family_version", _LIST_VERSIONS), ("last_version", _LIST_LAST_VERSIONS)):
            db.execute(f"delete from {table} where (family, partition) in undecided")
            db.execute(insert)
        db.execute(_DECIDE_CURRENT)
        mine = "family in (select family from undecided)"
        db.execute(f"delete from current where {mine} and family not in (select family from decided)")
        db.execute(_UPDATE_CURRENT)
        db.execute("delete from held")
        for hold in (_HOLD_UNREAD, _HOLD_DUPLICATES, _HOLD_SPLITS):
            db.execute(hold)
        db.execute("delete from undecided")
