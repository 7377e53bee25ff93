"""Stage 4: compares the families from the sources with those in the partitions, as one diff in SQL.

The results are the tables `arrival` and `departure`. If several files contain a family, the last file by name counts,
even if this run did not read it because it is unchanged. A family with the same digest keeps its `created_at`, and is
not indexed again. Vanished sources, and records that vanished from a file, keep their chunks unless they are pruned.
"""

import sqlite3
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from chunksink.chunkbus.brake import MIN_CHUNKS, SHRUNK_DIVISOR, is_large_loss
from chunksink.chunkbus.wording import counted
from chunksink.ingest.codes import SOURCE_IN_ANOTHER_FILE
from chunksink.ingest.discover import NO_SUFFIX, OTHERS, Discovery, is_missing, suffix_of
from chunksink.ingest.errors import IngestBrake
from chunksink.ingest.options import Options
from chunksink.ingest.roots import Roots

_FIRST_MISSING = 5
NOT_IN_FILE = "its file does not contain it any more"
VANISHED = "its source vanished or is excluded"
EMPTIED = "its source has no text any more"


@dataclass(frozen=True)
class Missing:
    """The number of families that the sources no longer contain. `names` lists the first ones: by file if the file has
    vanished, else by document."""

    families: int
    names: tuple[str, ...]


def reconcile(
    db: sqlite3.Connection, options: Options, only: str | None, discovery: Discovery, roots: Roots
) -> Missing:
    """Fills `arrival` and `departure`, and returns the missing families that were not pruned.

    `only` is the one partition that the run may write; None means all. Raises IngestBrake if pruning would be unsafe.
    """
    db.create_function("has_vanished", 1, lambda name: discovery.has_vanished(name, roots.path_of(name), options))
    db.create_function("is_gone", 1, cache(lambda name: _is_gone(roots.path_of(name))))
    for table in ("arrival", "departure", "stored"):
        db.execute(f"delete from {table}")
    for statement in (_ORIGINS, _STORED, _SUPERSEDED_COPIES, _CHANGED, _MOVED, _LEAVING, _EMPTIED, _FORGET_GONE):
        db.execute(statement, {"only": only})
    if options.prune:
        _prune(db, options, discovery)
        return Missing(0, ())
    return _count_missing(db, options)


def _is_gone(path: Path | None) -> bool:
    """Whether a file no longer exists, though its folder does."""
    return path is not None and is_missing(path) and not is_missing(path.parent)


# Updates the origin (the file) of families that were read again unchanged: of several files, the last one counts. Also
# replaces an origin that is gone, that no longer contains the family, or that is only a guess: `partitions` takes the
# family's name if the chunks do not name their file.
_ORIGINS = """
update family set origin = (
  select max(draft.uri) from draft where draft.family = family.family and draft.digest = family.digest
) where exists (
  select 1 from draft
  where draft.family = family.family and draft.digest = family.digest and (
    draft.uri > family.origin or is_gone(family.origin)
    or exists (select 1 from source_family as former where former.family = family.family
      and former.uri = family.origin and not former.is_current)
    or family.origin = family.name and family.origin not in (select uri from found)
      and family.origin not in (select uri from source)
  )
)
"""

# The families of the partitions that this run may write, each in the partition with its newest copy.
_STORED = """
insert or replace into stored
select family, partition, name, origin, version, chunks, digest from family
where :only is null or partition = :only
order by newest, partition
"""

# A run that was killed between two partitions may leave a family in both.
_SUPERSEDED_COPIES = """
insert into departure (partition, family)
select copies.partition, copies.family from family as copies join stored using (family)
where copies.partition <> stored.partition and (:only is null or copies.partition = :only)
"""

# Selects the drafts that count. A draft does not count if a later file has a draft of the same family, or if the stored
# family is from a later file that exists, and that this run did not read completely: it may still have the family.
_COUNTING = """
not exists (select 1 from draft as later where later.family = draft.family and later.uri > draft.uri)
and not exists (
  select 1 from source_family join source using (uri, tenant) left join found on found.uri = source_family.uri
  where source_family.family = draft.family and source_family.is_current
    and source_family.uri > draft.uri and source_family.uri = stored.origin
    and (found.uri is null or not found.is_whole) and not is_gone(source_family.uri)
)
"""

_CHANGED = f"""
insert into arrival (partition, family, uri)
select draft.partition, draft.family, draft.uri from draft left join stored using (family)
where {_COUNTING}
  and (stored.family is null or stored.digest <> draft.digest)
  and not (draft.is_partial and stored.family is not null and stored.version is draft.version
           and stored.chunks > draft.chunks)
"""

# Unchanged families move to their new partition as they are; a family that arrives elsewhere leaves its old partition.
_MOVED = f"""
insert into arrival (partition, family, uri, from_partition)
select draft.partition, draft.family, draft.uri, stored.partition from draft join stored using (family)
where {_COUNTING} and stored.digest = draft.digest and stored.partition <> draft.partition
"""
_LEAVING = """
insert or replace into departure (partition, family, target)
select stored.partition, stored.family, arrival.partition from arrival join stored using (family)
where stored.partition <> arrival.partition
"""

# Families without text to index, including those whose extraction was skipped.
_EMPTIED = f"""
insert or ignore into departure (partition, family, reason)
select stored.partition, stored.family, '{EMPTIED}' from empty join stored using (family)
where stored.origin <= empty.uri and not exists (select 1 from draft where draft.family = stored.family)
"""

# Files whose families another file now provides. If such a file comes back, it is read again.
_FORGET_GONE = """
delete from source where is_gone(uri) and uri in (
  select stored.origin from arrival join stored using (family) where arrival.uri <> stored.origin
)
"""

# Families of this run's tenant that their file no longer contains. This is known if the file was read completely in
# this run, if it was read completely earlier and is unchanged, if it no longer exists, or if it is excluded. A family
# that another file contains belongs to that file.
_MISSING_FAMILIES = """
select stored.partition, stored.family, stored.name, stored.origin,
  case when found.uri is null then :vanished else :not_in_file end as reason
from source_family join stored on stored.family = source_family.family and stored.origin = source_family.uri
left join found on found.uri = source_family.uri
where source_family.tenant = :tenant
  and (
    found.is_whole or (found.outcome = 'unchanged' and not source_family.is_current)
    or (found.uri is null and has_vanished(source_family.uri))
  )
  and not exists (select 1 from draft where draft.family = stored.family)
  and not exists (select 1 from departure where departure.family = stored.family)
  and not exists (select 1 from arrival where arrival.family = stored.family)
"""


def _missing_values(options: Options) -> dict[str, str]:
    return {"vanished": VANISHED, "not_in_file": NOT_IN_FILE, "tenant": options.tenant or ""}


# Files that have no records left, according to this reading or, for an unchanged file, to the last one.
_EMPTY_FILES = f"""
select stored.origin, count(*) from departure join stored using (family)
where departure.reason = '{NOT_IN_FILE}' and stored.origin not in (
  select uri from draft
  union all select uri from source_family join found using (uri) where is_current and found.outcome = 'unchanged')
group by stored.origin order by stored.origin
"""

# Sources that lost most of their chunks, or that are gone from their file. `_prune` checks vanished files.
_SHRUNK = f"""
select stored.name, stored.chunks - now.chunks as lost from stored join (
  select family, chunks from arrival join draft using (family, uri)
  union all select family, 0 from departure where reason in ('{EMPTIED}', '{NOT_IN_FILE}')
) as now using (family)
where now.chunks * {SHRUNK_DIVISOR} < stored.chunks order by lost desc, stored.name
"""


def stop_large_loss(db: sqlite3.Connection, allowed: int) -> None:
    """Raises IngestBrake if the run would remove so much that a file is probably incomplete.

    There are two cases. Files that have no records left would lose more than `allowed` sources. Or more than `allowed`
    sources would lose most of their chunks, and these are a large share of all chunks that the run may write.
    """
    empty = db.execute(_EMPTY_FILES).fetchall()
    if (number := sum(sources for _, sources in empty)) > allowed:
        raise IngestBrake(
            f"no records are left in {', '.join(origin for origin, _ in empty[:_FIRST_MISSING])}, and --prune would "
            f"remove {counted(number, 'source')}; nothing was written. Is the file complete? To remove "
            f"them: --allow-deletions {number}"
        )
    shrunk = db.execute(_SHRUNK).fetchall()
    lost, (total,) = sum(chunks for _, chunks in shrunk), db.execute("select sum(chunks) from stored").fetchone()
    if len(shrunk) <= allowed or not is_large_loss(lost, total or 0, MIN_CHUNKS):
        return
    names = ", ".join(name for name, _ in shrunk[:_FIRST_MISSING])
    sources = f"{counted(len(shrunk), 'source')} ({names})"
    raise IngestBrake(
        f"{lost:,} of the {total:,} chunks in the partitions of this run would be removed, from {sources}; "
        f"nothing was written. Are the files complete? To remove the chunks: --allow-deletions {len(shrunk)}"
    )


def _count_missing(db: sqlite3.Connection, options: Options) -> Missing:
    number, names = 0, set[str]()
    for _, _, name, origin, reason in db.execute(_MISSING_FAMILIES, _missing_values(options)):
        number += 1
        names.add(origin if reason == VANISHED else name)
        names = set(sorted(names)[:_FIRST_MISSING])
    return Missing(number, tuple(sorted(names)))


def _prune(db: sqlite3.Connection, options: Options, discovery: Discovery) -> None:
    columns = "partition, family, reason"
    db.execute(
        f"insert into departure ({columns}) select {columns} from ({_MISSING_FAMILIES})", _missing_values(options)
    )
    for scope in discovery.scopes:
        departures = db.execute("select origin from departure join stored using (family) where reason is not null")
        removed = Counter(suffix_of(origin) for (origin,) in departures if scope.contains(origin))
        number = removed.total()
        # Files of unknown formats do not count: a mount point may contain some while its disk is not mounted.
        found = db.execute("select uri from found where format <> ''")
        if number > options.allow_deletions and not any(scope.contains(uri) for (uri,) in found):
            sources = counted(number, "source")
            state = "has no sources any more" if scope.path.exists() else "does not exist"
            skipped = sorted(removed.keys() & discovery.other_kinds.keys() - {NO_SUFFIX, OTHERS})
            include = " ".join(f"--include '*{suffix}'" for suffix in skipped)
            remedy = f"To read the files that were skipped: {include}." if skipped else "Is it mounted?"
            raise IngestBrake(
                f"{scope.path} {state}, and --prune would remove {sources}; nothing was written. {remedy} "
                f"To remove them: --allow-deletions {number}"
            )


def mark_files_to_read(db: sqlite3.Connection, tenant: str | None) -> bool:
    """Marks unchanged files for another reading, and returns whether there are any.

    Such a file contained a family whose origin is another file. It is marked if the family would be removed, or if the
    other file is gone.
    """
    marked = db.execute(
        "update found set outcome = null, checksum = null where outcome = 'unchanged' and uri in ("
        " select source_family.uri from source_family join stored using (family) left join departure using (family)"
        " where source_family.is_current and source_family.uri <> stored.origin and source_family.tenant = ?"
        " and (departure.family is not null and departure.target is null or is_gone(stored.origin)))",
        [tenant or ""],
    )
    return marked.rowcount > 0


def count_replaced_families(db: sqlite3.Connection) -> None:
    """Records for each file how many of its families do not count, because a later file has them."""
    db.execute(
        "update found set codes = json_set(codes, '$.' || :code, later.number) from ("
        " select draft.uri, count(*) as number from draft left join stored using (family)"
        f" where not ({_COUNTING}) group by draft.uri) as later where later.uri = found.uri",
        {"code": SOURCE_IN_ANOTHER_FILE},
    )
