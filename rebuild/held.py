"""What is left in the index as it is, and why: what the catalog holds, and what would go if the bus were whole."""

from collections.abc import Sequence

from sqlite_utils import Database

from chunksink.rebuild.catalog import HeldFamily

WITHHELD = "removal withheld while a partition is missing or invalid"

# What was withdrawn before its partition was lost is in no index, and nothing of it would come.
_HELD = """
select family, reason, detail from held
where family in (select family from current)
or family in (select family from receipt where build in ({builds}) and documents > 0)
union all
select distinct family, 'withheld', '{withheld}' from receipt
where build in ({builds}) and documents > 0
and exists (select 1 from partition where state <> 'valid')
and family not in (select family from current) and family not in (select family from held)
"""


def held(db: Database, builds: Sequence[str], limit: int = -1) -> list[HeldFamily]:
    """In these builds."""
    label = f"select max(label) from receipt r where r.build in ({_marks(builds)}) and r.family = h.family"
    rows = db.execute(
        f"select h.*, coalesce(({label}), '') from ({_select(builds)}) h order by family limit ?",
        [*builds, *builds, *builds, limit],
    )
    return [HeldFamily(*row) for row in rows]


def held_by_reason(db: Database, builds: Sequence[str]) -> dict[str, int]:
    """How many for each reason; the most first."""
    rows = db.execute(
        f"select detail, count(*) from ({_select(builds)}) group by detail order by 2 desc, 1", [*builds, *builds]
    )
    return dict(rows.fetchall())


def _select(builds: Sequence[str]) -> str:
    return _HELD.format(withheld=WITHHELD, builds=_marks(builds))


def _marks(builds: Sequence[str]) -> str:
    return ", ".join("?" * len(builds))
