"""The brake, which stops large removals, and the families that are held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from chunksink.chunkbus.brake import MIN_CHUNKS, MIN_SOURCES, SHRUNK_DIVISOR, is_large_loss
from chunksink.rebuild.catalog import HeldFamily
from chunksink.rebuild.errors import Brake, Removal
from chunksink.rebuild.families import source_names
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.schema import WHOLE

if TYPE_CHECKING:
    from sqlite_utils import Database

    from chunksink.chunkbus.layout import BusRoot

_GONE = "family not in (select family from current) and family not in (select family from held)"
"""SQL: no version of the family counts any more, and it is not held."""
REMOVABLE = f"{_GONE} and {WHOLE}"
"""SQL: a run removes the family from the index."""
_MAX_NAMED = 100
_WITHHELD = "removal withheld while a partition is missing or invalid"

_RECORDED = "receipt where build in (select value from json_each(:builds)) and documents > 0"
# For each family in the builds, how many of its documents were confirmed. Families that other programs wrote have no
# confirmed documents, so they may be removed without a flag.
_CONFIRMED = f"""
select family, max(iif(family_hash <> '', documents, coalesce(confirmed, 0))) as had
from {_RECORDED} group by family having had > 0
"""
# Families that a run would remove (their `chunks` is null), and families that would lose most of their chunks. Without
# those that were renamed.
_LOST = f"""
select family, had, chunks from ({_CONFIRMED}) left join current using (family)
where family not in (select family from held) and (chunks is null and {WHOLE} or chunks * {SHRUNK_DIVISOR} < had)
and family not in (select value from json_each(:renamed))
"""
# Families that disappear, but share at least half of their chunks, and half of its chunks, with another family. A text
# counts if at least as many families have it now as disappear with it: a licence that was in each file proves nothing
# if few files are left. Texts of more than 100 of them are left out, because each family would be compared with each.
# So are families with a tenant: a tenant's texts are lost even if another tenant has the same ones.
_RENAMED = f"""
with gone as materialized (
    select family, had from ({_LOST}) where chunks is null
    and family in (select family from former_document where family = family_key(parent_id, null))),
former as materialized (
    select text_hash, family, count(*) over (partition by text_hash) as families from former_text
    where family in (select family from gone)),
present as materialized (
    select distinct text_hash, family from chunk where text_hash in (select text_hash from former where families <= 100)
    and family in (select family from current) and family = family_key(parent_id, null)),
counted as materialized (select *, count(*) over (partition by text_hash) as families from present)
select distinct former from (
    select former.family as former, counted.family as new, count(*) as texts from former join counted using (text_hash)
    where counted.families >= former.families group by former.family, counted.family)
join gone on gone.family = former join current on current.family = new
where texts * 2 >= max(had, current.chunks)
"""
# `held` also has families that were withdrawn before their partition was lost. They are in no index, so they are left
# out here.
_HELD = f"""
select family, reason, detail from held
where family in (select family from current) or family in (select family from {_RECORDED})
union all
select distinct family, 'withheld', '{_WITHHELD}' from {_RECORDED}
and not ({WHOLE}) and {_GONE}
"""


def large_removal(db: Database, builds: Sequence[str], allowed: int = 0) -> Removal | None:
    """The removal from these live builds that the brake would stop."""
    values = _values(builds)
    if _large_removal(db, values, allowed) is None:
        return None
    return _large_removal(db, _without_renamed(db, values), allowed)


def brake(db: Database, live_builds: Sequence[str], allowed: int) -> None:
    """Raises Brake if a run would remove a large share of the live index, unless `allowed` covers it."""
    removal = large_removal(db, live_builds, allowed)
    if removal is None:
        return
    label = f"select nullif(max(label), '') from {_RECORDED} and family = lost.family"
    examples = f"select coalesce(({label}), family) from ({_LOST}) lost order by 1 limit 3"
    rows = db.execute(examples, _without_renamed(db, _values(live_builds)))
    names = ", ".join(name for (name,) in rows)
    raise Brake(
        removal,
        f"{removal.sources} would be removed or lose most of their chunks; the index is unchanged. "
        f"If that is intended, pass {removal.flag}. Otherwise check the chunks, such as those of {names}",
    )


def brake_refusals(db: Database, sink: str, live_build: str, new_build: str, allowed: int) -> None:
    """Raises Brake, before a flip, if the engine of the new build refused a large share of the documents, unless
    the live build lacks about as many, or `allowed` covers the refused ones."""
    new = Receipts(db, new_build)
    refused, before = new.refused(), Receipts(db, live_build).refused()
    total = refused + new.documents()
    if refused - before < MIN_SOURCES or not is_large_loss(refused, total, MIN_SOURCES) or refused <= allowed:
        return
    reason = new.dead_letters(1)[0].reason
    removal = Removal(refused, total, f"--allow-deletions {refused}")
    new.retry_dead_letters()  # the next rebuild sends them again
    raise Brake(
        removal,
        f"{sink} refused {refused:,} of {total:,} documents, one of them because: {reason:.300}. The live index, which "
        f"lacks {before:,} refused documents, is unchanged. To accept an index without the refused documents, pass "
        f"{removal.flag}. Otherwise check the engine and rebuild: the next rebuild sends them again",
    )


def held_families(db: Database, root: BusRoot, builds: Sequence[str], limit: int = -1) -> list[HeldFamily]:
    """Families that are held: they stay in these builds unchanged, or stay missing. If the name of a source is
    not recorded, it is read from the chunks, for the first `_MAX_NAMED`."""
    label = f"select max(label) from {_RECORDED} and family = h.family"
    select = f"select h.*, coalesce(({label}), '') from ({_HELD}) h order by family limit :limit"
    held = [HeldFamily(*row) for row in db.execute(select, _values(builds) | {"limit": limit})]
    names = source_names(db, root, [each.family for each in held if not each.source][:_MAX_NAMED])
    return [replace(each, source=each.source or names.get(each.family, "")) for each in held]


def held_by_reason(db: Database, builds: Sequence[str]) -> dict[str, int]:
    """How many families are held for each reason, the most frequent first."""
    select = f"select detail, count(*) from ({_HELD}) group by detail order by 2 desc, 1"
    return dict(db.execute(select, _values(builds)).fetchall())


def _large_removal(db: Database, values: dict[str, str | int], allowed: int) -> Removal | None:
    total, total_chunks = db.execute(f"select count(*), coalesce(sum(had), 0) from ({_CONFIRMED})", values).fetchone()
    removed, affected, chunks = db.execute(
        "select count(*) filter (where chunks is null), count(*), coalesce(sum(had - coalesce(chunks, 0)), 0) "
        f"from ({_LOST})",
        values,
    ).fetchone()
    is_large = is_large_loss(removed, total, MIN_SOURCES) or is_large_loss(chunks, total_chunks, MIN_CHUNKS)
    if is_large and affected > allowed:
        return Removal(affected, total, f"--allow-deletions {affected}", chunks)
    return None


def _values(builds: Sequence[str]) -> dict[str, str | int]:
    """The values of `:builds` and `:renamed` in a statement."""
    return {"builds": orjson.dumps(list(builds)).decode(), "renamed": "[]"}


def _without_renamed(db: Database, values: dict[str, str | int]) -> dict[str, str | int]:
    """The values with which `_LOST` leaves out renamed families. Reads all chunks."""
    renamed = [family for (family,) in db.execute(_RENAMED, values)]
    return values | {"renamed": orjson.dumps(renamed).decode()}
