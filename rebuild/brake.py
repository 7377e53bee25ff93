"""The brake: a run that would take a large share of what readers have stops and says the number."""

from collections.abc import Sequence

from sqlite_utils import Database

from chunksink.rebuild.catalog import GONE
from chunksink.rebuild.errors import Brake, Removal
from chunksink.rebuild.receipts import Receipts

LEAST_REMOVALS = 10
LARGEST_SHARE = 0.2
_HELD = "receipt where build in ({}) and documents > 0"


def large_removal(db: Database, live_builds: Sequence[str], allowed: int = 0) -> Removal | None:
    """What the brake would stop.

    Asked of the families that the live builds hold: so a rebuild is stopped by it as well as a sync.
    """
    total, going = db.execute(
        f"select count(*), sum({GONE}) from (select distinct family from {_held(live_builds)})", list(live_builds)
    ).fetchone()
    going = going or 0
    if going >= LEAST_REMOVALS and going > LARGEST_SHARE * total and going > allowed:
        return Removal(going, total, f"--allow-deletions {going}")
    return None


def gone(db: Database, builds: Sequence[str]) -> int:
    """How many families these builds hold that no chunks have, and that are not held."""
    count = f"select count(distinct family) from {_held(builds)} and {GONE}"
    return int(db.execute(count, list(builds)).fetchone()[0])


def brake(db: Database, live_builds: Sequence[str], allowed: int) -> None:
    """Stops a run that would take a large share of what readers have now, unless it was told the number."""
    found = large_removal(db, live_builds, allowed)
    if found is None:
        return
    some = (
        f"select max(coalesce(nullif(label, ''), family)) from {_held(live_builds)} and {GONE} "
        "group by family order by 1 limit 3"
    )
    names = ", ".join(name for (name,) in db.execute(some, list(live_builds)))
    raise Brake(
        found,
        f"{found.removed:,} of the {found.total:,} sources in the index would be removed; nothing was written. If they "
        f"are meant to go, say so with {found.flag}. Otherwise look at the chunks, for they lack {names} "
        "and others: `chunksink plan` names more where there is a live index",
    )


def brake_refusals(db: Database, sink: str, live_build: str, new_build: str, allowed: int) -> None:
    """Stops a flip to a build that lacks a large share of the documents because its engine refused them, unless the
    live one lacks as many or it was told the number."""
    count = "select count(*) from dead_letter where build = ?"
    refused, before = (int(db.execute(count, [build]).fetchone()[0]) for build in (new_build, live_build))
    total = refused + Receipts(db, new_build).documents()
    if refused - before < LEAST_REMOVALS or refused <= LARGEST_SHARE * total or refused <= allowed:
        return
    (reason,) = db.execute("select reason from dead_letter where build = ? limit 1", [new_build]).fetchone()
    found = Removal(refused, total, f"--allow-deletions {refused}")
    Receipts(db, new_build).retry_dead_letters()
    raise Brake(
        found,
        f"{sink} refused {refused:,} of {total:,} documents, one of them because: {reason:.300}. The live index, of "
        f"which it refused {before:,}, is untouched. If they are meant to be missing, say so with {found.flag}; "
        "else look at the engine and run the rebuild again, which sends them again",
    )


def _held(builds: Sequence[str]) -> str:
    return _HELD.format(", ".join("?" * len(builds)))
