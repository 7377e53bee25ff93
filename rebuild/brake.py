"""The brake: a run that would take a large share of what readers have stops and says the number."""

from collections.abc import Sequence

from sqlite_utils import Database

from rebuild.errors import Brake, Removal

LEAST_REMOVALS = 10
LARGEST_SHARE = 0.2
_HELD = "receipt where build in ({}) and documents > 0"
_GONE = "family not in (select family from current) and family not in (select family from held)"


def large_removal(db: Database, live_builds: Sequence[str], allowed: int = 0) -> Removal | None:
    """What the brake would stop.

    Asked of the families that the live builds hold: so a rebuild is stopped by it as well as a sync.
    """
    total, going = db.execute(
        f"select count(*), sum({_GONE}) from (select distinct family from {_held(live_builds)})", list(live_builds)
    ).fetchone()
    going = going or 0
    if going >= LEAST_REMOVALS and going > LARGEST_SHARE * total and going > allowed:
        return Removal(going, total, f"--allow-deletions {going}")
    return None


def brake(db: Database, live_builds: Sequence[str], allowed: int) -> None:
    """Stops a run that would take a large share of what readers have now, unless it was told the number."""
    found = large_removal(db, live_builds, allowed)
    if found is None:
        return
    some = (
        f"select max(coalesce(nullif(label, ''), family)) from {_held(live_builds)} and {_GONE} "
        "group by family order by 1 limit 3"
    )
    names = ", ".join(name for (name,) in db.execute(some, list(live_builds)))
    raise Brake(
        found,
        f"{found.removed:,} of the {found.total:,} sources in the index would be removed; nothing was written. If they "
        f"are meant to go, say so with {found.flag}. Otherwise look at the chunks, for they lack {names} "
        "and others: `chunksink plan` names more where there is a live index",
    )


def _held(builds: Sequence[str]) -> str:
    return _HELD.format(", ".join("?" * len(builds)))
