"""The brake, which stops large removals, and the families that are held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chunksink.chunkbus.brake import LEAST_CHUNKS, LEAST_SOURCES, SHRUNK, is_much
from chunksink.rebuild.catalog import HeldFamily
from chunksink.rebuild.errors import Brake, Removal
from chunksink.rebuild.families import source_names
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.schema import marks

if TYPE_CHECKING:
    from sqlite_utils import Database

    from chunksink.chunkbus.layout import BusRoot

GONE = "family not in (select family from current) and family not in (select family from held)"
"""Condition for families in the index that the chunks no longer have."""
_NAMED = 100
WITHHELD = "removal withheld while a partition is missing or invalid"

_CONFIRMED = "family_hash <> ''"
"""Selects receipts of our documents. A scan also makes receipts for documents of other programs, which may be removed
without a flag."""

_RECORDED = "receipt where build in ({builds}) and documents > 0"
# A family that was withdrawn before its partition was lost is in no index, so it is not held.
_HELD = f"""
select family, reason, detail from held
where family in (select family from current) or family in (select family from {_RECORDED})
union all
select distinct family, 'withheld', '{WITHHELD}' from {_RECORDED}
and exists (select 1 from partition where state <> 'valid') and {GONE}
"""


def large_removal(db: Database, builds: Sequence[str], allowed: int = 0) -> Removal | None:
    """The removal from these live builds that the brake would stop."""
    recorded = (
        f"select family, coalesce(max(documents) filter (where {_CONFIRMED}), 0) as had "
        f"from {_of(_RECORDED, builds)} group by family"
    )
    removed, lost, total, chunks = db.execute(
        f"select coalesce(sum({GONE}), 0), coalesce(sum(had) filter (where {GONE}), 0), count(*), sum(had) "
        f"from ({recorded})",
        list(builds),
    ).fetchone()
    shrunk, less = db.execute(
        f"select count(*), coalesce(sum(had - chunks), 0) from ({recorded}) join current using (family) "
        f"where chunks * {SHRUNK} < had and family not in (select family from held)",
        list(builds),
    ).fetchone()
    affected, lost = removed + shrunk, lost + less
    is_large = is_much(removed, total, LEAST_SOURCES) or is_much(lost, chunks or 0, LEAST_CHUNKS)
    if is_large and affected > allowed:
        return Removal(affected, total, f"--allow-deletions {affected}", lost)
    return None


def brake(db: Database, live_builds: Sequence[str], allowed: int) -> None:
    """Stop a run that would remove a large share of the live index, unless `allowed` covers it."""
    removal = large_removal(db, live_builds, allowed)
    if removal is None:
        return
    examples = (
        "select max(coalesce(nullif(label, ''), family)) from receipt left join current using (family) "
        f"where build in ({marks(live_builds)}) and documents > 0 and family not in (select family from held) "
        f"and coalesce(chunks, 0) * {SHRUNK} < documents group by family order by 1 limit 3"
    )
    names = ", ".join(name for (name,) in db.execute(examples, list(live_builds)))
    raise Brake(
        removal,
        f"{removal.sources} would be removed or lose most of their chunks; nothing was written. If that is intended, "
        f"pass {removal.flag}. Otherwise check the chunks, such as those of {names}",
    )


def brake_refusals(db: Database, sink: str, live_build: str, new_build: str, allowed: int) -> None:
    """Stop a flip to a build whose engine refused a large share of the documents, unless the live build lacks as many
    or `allowed` covers them."""
    new = Receipts(db, new_build)
    refused, before = new.refused(), Receipts(db, live_build).refused()
    total = refused + new.documents()
    if refused - before < LEAST_SOURCES or not is_much(refused, total, LEAST_SOURCES) or refused <= allowed:
        return
    reason = new.dead_letters(1)[0].reason
    removal = Removal(refused, total, f"--allow-deletions {refused}")
    new.retry_dead_letters()
    raise Brake(
        removal,
        f"{sink} refused {refused:,} of {total:,} documents, one of them because: {reason:.300}. The live index is "
        f"untouched; {before:,} of its documents were refused. To leave these out too, pass {removal.flag}; else check "
        "the engine and run the rebuild again, which sends them again",
    )


def held_families(db: Database, root: BusRoot, builds: Sequence[str], limit: int = -1) -> list[HeldFamily]:
    """Families that stay in these builds unchanged, and why. Some that were never indexed get their names from their
    chunks."""
    label = _of("select max(label) from receipt r where r.build in ({builds}) and r.family = h.family", builds)
    rows = db.execute(
        f"select h.*, coalesce(({label}), '') from ({_of(_HELD, builds)}) h order by family limit ?",
        [*builds, *builds, *builds, limit],
    )
    held = [HeldFamily(*row) for row in rows]
    names = source_names(db, root, [each.family for each in held if not each.source][:_NAMED])
    return [replace(each, source=each.source or names.get(each.family, "")) for each in held]


def held_by_reason(db: Database, builds: Sequence[str]) -> dict[str, int]:
    """How many families are held for each reason, the most frequent first."""
    rows = db.execute(
        f"select detail, count(*) from ({_of(_HELD, builds)}) group by detail order by 2 desc, 1", [*builds, *builds]
    )
    return dict(rows.fetchall())


def _of(select: str, builds: Sequence[str]) -> str:
    return select.format(builds=marks(builds))
