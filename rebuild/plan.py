"""The diff: what must be written to and removed from each build so that it matches the catalog.

The catalog is compared with the receipts of each build. A new build has none. Lost or wrong receipts are recreated by a
scan. The first plan for a build compares all families. Later ones compare only the families in `to_compare`: they
differed before, or triggers noted a change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from chunksink.chunkbus.brake import MIN_CHUNKS, MIN_SOURCES
from chunksink.chunkbus.reader import Place
from chunksink.chunkbus.store import write_transaction
from chunksink.rebuild.catalog import TextPlace
from chunksink.rebuild.removals import REMOVABLE
from chunksink.rebuild.schema import exists, is_whole, marks, number

if TYPE_CHECKING:
    from sqlite_utils import Database

_PAGE = 50
"""Families to write: few, so that writing starts soon."""
_TEXTS = 1000
_UNHASHED = 100
"""Families that are read together, with their texts in memory."""

# `fewer`: by how many documents the family will shrink.
_TABLES = """
create temp table if not exists planned (
    family text, build text, action text, recorded int, fewer int,
    primary key (family, build)) without rowid;
create temp table if not exists to_write (place integer primary key, family text);
"""

DIFFERS = "(r.family is null or r.family_hash is not c.family_hash)"
"""For a family of `current` c and its receipt r: the build has not confirmed this version."""
# With an open intent the receipt proves nothing. Held families are neither written nor removed.
_PLAN_WRITES = f"""
insert into planned
select c.family, :build, 'write', r.family is not null, max(0, coalesce(r.documents, 0) - c.chunks)
from current c
left join receipt r on r.build = :records and r.family = c.family
left join intent i on i.build = :records and i.family = c.family
where (i.family is not null or {DIFFERS}) and c.family not in (select family from held) {{and_to_compare}}
"""
_PLAN_REMOVALS = f"""
insert into planned
select family, :build, 'remove', 1, coalesce(documents, 0) from (
    select family from receipt where build = :records {{and_to_compare}}
    union select family from intent where build = :records {{and_to_compare}})
left join (select family, documents from receipt where build = :records) using (family)
where {REMOVABLE}
"""
# The part of a plan that the engines have confirmed since. With an open intent the state is unknown.
_CONFIRMED = """
select p.* from planned p
left join current c on c.family = p.family
left join receipt r on r.build = p.build and r.family = p.family
left join intent i on i.build = p.build and i.family = p.family
where i.family is null and iif(p.action = 'remove', r.family is null, r.family_hash = c.family_hash)
"""
_AND_TO_COMPARE = "and {} in (select family from to_compare where build = :build)"
# A build without receipts is not noted as compared: all of it differs, so the next plan compares all of it, too.
_NOTE_COMPARED = (
    "insert or ignore into compared select :build where exists (select 1 from receipt where build = :build)",
    "insert or ignore into to_compare select build, family from planned where build = :build "
    "and build in (select build from compared)",
    "delete from to_compare where build = :build and family not in (select family from planned where build = :build)",
)


@dataclass(frozen=True)
class FamilyCounts:
    """Numbers of families in a plan, by action."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0

    def then(self, later: FamilyCounts) -> FamilyCounts:
        """The sum of two consecutive plans. What the first has written is not counted as unchanged in the second."""
        return FamilyCounts(
            self.added + later.added,
            self.changed + later.changed,
            self.removed + later.removed,
            max(0, later.unchanged - self.added - self.changed),
        )


class Plan:
    """A diff in the connection's temporary tables; the next plan replaces it."""

    def __init__(self, db: Database, builds: Sequence[str], empty: Collection[str] = ()) -> None:
        """`empty` builds have no documents, even if there are receipts."""
        self._db = db
        self._builds = list(builds)
        db.executescript(_TABLES)
        self._compare(empty)

    def is_empty(self) -> bool:
        return not exists(self._db, "planned")

    def families_to_write(self) -> Iterator[list[str]]:
        """In pages, nearly in their order on disk."""
        last = 0
        select = f"select place, family from to_write where place > ? order by place limit {_PAGE}"
        while rows := self._db.execute(select, [last]).fetchall():
            yield [family for _, family in rows]
            last = rows[-1][0]

    def builds_of(self, families: Sequence[str]) -> dict[str, set[str]]:
        """For each build, the families among these that must be written to it."""
        by_build: dict[str, set[str]] = {build: set() for build in self._builds}
        select = f"select build, family from planned where action = 'write' and family in ({marks(families)})"
        for build, family in self._db.execute(select, list(families)):
            by_build[build].add(family)
        return by_build

    def changed_documents(self, build: str, families: Sequence[str]) -> dict[str, set[str]]:
        """For these families, the documents that a scan found changed."""
        documents: dict[str, set[str]] = {}
        select = f"select family, id from changed where build = ? and family in ({marks(families)})"
        for family, id in self._db.execute(select, [build, *families]):
            documents.setdefault(family, set()).add(id)
        return documents

    def removals(self, build: str) -> list[str]:
        select = "select family from planned where action = 'remove' and build = ? order by family"
        return [family for (family,) in self._db.execute(select, [build])]

    def chunks_to_write(self, build: str | None = None) -> int:
        """The number for one build, or for all; a chunk that several builds need counts once."""
        total = "select coalesce(sum(chunks), 0) from to_write join current using (family)"
        if build is None:
            return number(self._db, total)
        return number(self._db, f"{total} join planned using (family) where action = 'write' and build = ?", [build])

    def texts_to_write(self, builds: Sequence[str], in_context: bool) -> Iterator[list[tuple[TextPlace, int]]]:
        """Distinct texts to write to these builds, in pages and in their order on disk.

        Each has the place of the longest chunk with the text, and the number of chunks with it. With `in_context`,
        equal texts in different contexts are distinct.
        """
        context = "context" if in_context else "x''"
        rows = self._db.execute(
            f"select partition, offset, max(length), text_hash, {context} as above, count(*) from family_chunk "
            f"where family in (select family from planned where action = 'write' and build in ({marks(builds)})) "
            "group by text_hash, above order by partition, offset",
            list(builds),
        )
        while page := rows.fetchmany(_TEXTS):
            yield [(TextPlace(row[0], Place(*row[1:3]), *row[3:5]), row[5]) for row in page]

    def counts(self, build: str | None = None) -> FamilyCounts:
        """Counts for one build, or for all. For all, a family is added if it is new to every build that needs it."""
        counts = self._count("planned", build)
        total = number(self._db, "select count(*) from current where family not in (select family from held)")
        return replace(counts, unchanged=total - counts.added - counts.changed)

    def confirmed(self, build: str | None = None) -> FamilyCounts:
        """Counts of the work that succeeded."""
        return replace(self._count(f"({_CONFIRMED})", build), unchanged=self.counts(build).unchanged)

    def _count(self, planned: str, build: str | None) -> FamilyCounts:
        where, values = ("where build = ?", [build]) if build is not None else ("", [])
        row = self._db.execute(
            "select sum(action = 'write' and not recorded), sum(action = 'write' and recorded), sum(action = 'remove') "
            f"from (select family, min(action) as action, max(recorded) as recorded from {planned} {where} "
            "group by family)",
            values,
        ).fetchone()
        return FamilyCounts(*(number or 0 for number in row))

    def examples(self, action: str, recorded: bool, limit: int) -> list[str]:
        """Some families that are written or removed, by name if it is known."""
        rows = self._db.execute(
            "select family, max(coalesce(iif(recorded, nullif(label, ''), null), family)) from planned "
            "left join receipt using (build, family) where action = ? group by family "
            "having max(recorded) = ? order by 2 limit ?",
            [action, recorded, limit],
        )
        return [name for _, name in rows]

    def shrinkage(self, build: str, *, confirmed: bool = False) -> int:
        """How many chunks the build loses by this plan, or by the part of it that is already `confirmed`."""
        planned = f"({_CONFIRMED})" if confirmed else "planned"
        return number(self._db, f"select coalesce(sum(fewer), 0) from {planned} where build = ?", [build])

    def needs_brake_check(self, builds: Collection[str]) -> bool:
        """Whether the brake must check this plan."""
        removed = number(self._db, "select count(distinct family) from planned where action = 'remove'")
        return removed >= MIN_SOURCES or max(map(self.shrinkage, builds), default=0) >= MIN_CHUNKS

    def hash(self, builds: Collection[str], settings: Mapping[str, Sequence[str]]) -> str:
        """The hash of this plan for these builds: families with their versions, held families, and index settings."""
        names = sorted(builds)
        digest = sha256(repr((names, sorted((sink, *changed) for sink, changed in settings.items()))).encode())
        for held in self._db.execute("select family, reason from held order by family"):
            digest.update(repr(held).encode())
        rows = self._db.execute(
            "select p.build, p.family, p.action, c.partition, "
            "case when p.recorded then c.family_hash else t.checksum || c.reading_id end "
            "from planned p left join current c on p.action = 'write' and c.family = p.family "
            f"left join partition t on t.key = c.partition where p.build in ({marks(names)}) "
            "order by p.build, p.family",
            names,
        )
        for row in rows:
            digest.update(repr(row).encode())
        return digest.hexdigest()

    def _compare(self, empty: Collection[str]) -> None:
        with write_transaction(self._db):
            self._db.execute("delete from planned")
            self._db.execute("delete from to_write")
            for build in self._builds:
                self._compare_build(build, is_empty=build in empty)
            self._db.execute(
                "insert into to_write (family) select family from current "
                "where family in (select family from planned where action = 'write') order by first"
            )

    def _compare_build(self, build: str, *, is_empty: bool) -> None:
        compared = exists(self._db, "compared where build = ?", [build])
        only_noted = _AND_TO_COMPARE if compared and not is_empty else ""
        named = {"build": build, "records": None if is_empty else build}
        self._db.execute(_PLAN_WRITES.format(and_to_compare=only_noted.format("c.family")), named)
        self._db.execute(_PLAN_REMOVALS.format(and_to_compare=only_noted.format("family")), named)
        if not is_empty and is_whole(self._db):  # otherwise removals are withheld, and must be compared again
            for note in _NOTE_COMPARED:
                self._db.execute(note, named)


def unhashed(db: Database, builds: Sequence[str] | None = None) -> Iterator[list[str]]:
    """Pages of families whose current version has no hash yet, except held ones. With `builds`, only families that have
    a receipt of one of them."""
    # One lookup for each of these few families is faster than a list of all receipts.
    receipt = f"select 1 from receipt where build in ({marks(builds or ())}) and family = current.family"
    is_confirmed = "" if builds is None else f"and exists ({receipt})"
    select = (
        "select first, family from current where family_hash is null "
        f"and first > ? and family not in (select family from held) {is_confirmed} order by first limit {_UNHASHED}"
    )
    last = 0
    while rows := db.execute(select, [last, *(builds or ())]).fetchall():
        yield [family for _, family in rows]
        if len(rows) < _UNHASHED:  # another query would scan every family again
            return
        last, _ = rows[-1]
