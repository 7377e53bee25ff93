"""The brake: a run that would take a large share of what readers have stops and says the number."""

from collections.abc import Sequence

from sqlite_utils import Database

from rebuild.errors import Brake

LEAST_REMOVALS = 10
LARGEST_SHARE = 0.2


def brake(db: Database, live_builds: Sequence[str], allowed: int) -> None:
    """Stops a run that would take a large share of what readers have now, unless it was told the number.

    Asked of the families that the live builds hold: so a rebuild is stopped by it as well as a sync.
    """
    held, builds = f"receipt where build in ({', '.join('?' * len(live_builds))}) and documents > 0", list(live_builds)
    gone = "family not in (select family from current) and family not in (select family from held)"
    total, going = db.execute(
        f"select count(*), sum({gone}) from (select distinct family from {held})", builds
    ).fetchone()
    going = going or 0
    if going >= LEAST_REMOVALS and going > LARGEST_SHARE * total and going > allowed:
        some = (
            f"select max(coalesce(nullif(label, ''), family)) from {held} and {gone} group by family order by 1 limit 3"
        )
        names = ", ".join(name for (name,) in db.execute(some, builds))
        raise Brake(
            f"{going:,} of the {total:,} sources in the index would be removed; nothing was written. If they are "
            f"meant to go, say so with --allow-deletions {going}. Otherwise look at the chunks, for they lack {names} "
            "and others: `chunksink plan` names more where there is a live index"
        )
