"""The state of a home: what readers see, what is held, due or under way, without asking an engine.

It is read from `state.db`, the run records, and the names and times of the files of the bus. Only names of held sources
without a receipt are read from chunks.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.runlog import utc_now
from chunksink.rebuild.catalog import Catalog, HeldFamily
from chunksink.rebuild.catalog_rows import instant
from chunksink.rebuild.errors import Removal
from chunksink.rebuild.intake import VALID, Intake
from chunksink.rebuild.locks import held_locks
from chunksink.rebuild.plan import DIFFERS
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.removals import REMOVABLE, held_by_reason, held_families, large_removal
from chunksink.rebuild.run_records import UPDATES, RunRecord, last_update, newest_run, past_runs
from chunksink.rebuild.schema import number
from chunksink.rebuild.spot_check import Coverage, SpotCheck
from chunksink.rebuild.state import Generation, State
from chunksink.sinks.projection import projection_id

# Partitions with a version or a tombstone that is dated in the future.
_DATED_AHEAD = """
select key from partition where exists (select 1 from last_version v where v.partition = key and v.rank > :now)
    or exists (select 1 from tombstone t where t.partition = key and t.at > :now) order by key
"""
# How many families a plan would write to and remove from one build. Families with open intents count, unless held.
_TO_WRITE = f"""
select count(*) from current c
left join receipt r on r.build = :build and r.family = c.family
where ({DIFFERS} or not exists (select 1 from projection where version = :projection)
    or c.family in (select family from intent where build = :build))
and c.family not in (select family from held)
"""
_TO_REMOVE = f"""
select count(*) from (
    select family from receipt where build = :build and documents > 0
    union select family from intent where build = :build)
where {REMOVABLE}
"""


@dataclass(frozen=True)
class BuildStatus:
    """One build of the live generation, by its receipts."""

    build: str
    families: int
    chunks: int
    refused: int
    open_intents: int
    """Families in an unknown state: a run was stopped while writing them, or they must be sent again."""
    to_write: int
    """Families whose current version the build has not confirmed, or whose state is unknown. The next sync writes them,
    or finds that they are equal."""
    to_remove: int
    """0 while partitions are missing or invalid, since nothing is removed then."""
    coverage: Coverage

    @property
    def pending(self) -> int:
        """Families that the next sync compares, writes or removes."""
        return self.to_write + self.to_remove


@dataclass(frozen=True)
class GenerationStatus:
    id: str
    created_at: str
    model: str
    model_fingerprint: str
    holds_vectors: bool


@dataclass(frozen=True)
class UnfinishedStatus:
    """A rebuild that is under way or was stopped."""

    generation: GenerationStatus
    chunks: dict[str, int]
    under_way: bool


@dataclass(frozen=True)
class BrokenPartition:
    """A partition that is missing or invalid: its families stay in the index."""

    key: str
    state: str
    finding: str
    """The first error; empty if the partition is missing."""
    families: int
    """How many families are held because of it."""


@dataclass(frozen=True)
class BusStatus:
    """The bus: its counts when it was last read, and what has changed since."""

    path: str
    found: bool
    """Whether its folders exist; False if nothing looked."""
    families: int
    chunks: int
    superseded: int
    pending: tuple[str, ...]
    """Partitions that are new, changed or gone since they were last read, or were read with other rules: other custom
    fields, another `require_source_checksum`, or another `RULES_VERSION`."""
    broken: tuple[BrokenPartition, ...]
    dated_ahead: tuple[str, ...]
    """Partitions that are dated in the future. Until then, they win over edits of their sources in other partitions."""


@dataclass(frozen=True)
class HomeStatus:
    live: GenerationStatus
    sinks: dict[str, BuildStatus]
    unconfigured: tuple[str, ...]
    """Sinks of the live index that are no longer configured: they are neither searched nor written."""
    unbuilt: tuple[str, ...]
    """Configured sinks without a build; the next sync makes it."""
    previous: GenerationStatus | None
    unfinished: UnfinishedStatus | None
    begun_flip: bool
    """A run was killed during a flip; the next run completes or undoes it."""
    bus: BusStatus
    held: int
    held_families: tuple[HeldFamily, ...]
    rebuild_due: str | None
    brake: Removal | None
    """The removal that would stop a sync without a flag, judging by the chunks that were last read."""
    locks: tuple[str, ...]
    last_run: RunRecord | None
    ingested_at: str | None
    """When `chunksink ingest` of this home last read sources."""
    ingest_failures: int
    """Files, folders or records that it could not read. Their former chunks stay."""
    updated_at: str | None
    """Start of the last sync, repair or rebuild that did not end with an error. It may have been killed."""
    last_verify: RunRecord | None
    is_restored: bool
    """Restored from a backup and not synced since. A sync compares it with the engines."""

    def __repr__(self) -> str:
        bus = f"{self.bus.families:,} families, {self.bus.chunks:,} chunks"
        return f"<Status of generation {self.live.id}: {bus}, {'current' if self.is_current else 'sync is due'}>"

    @property
    def is_current(self) -> bool | None:
        """Whether the index has all chunks, judging by the records: nothing is due, held or broken. None if the chunks
        are missing."""
        if not self.bus.found:
            return None
        behind = any(sink.pending for sink in self.sinks.values())
        is_due = self.unbuilt or self.bus.pending or self.begun_flip or self.is_restored
        return not (behind or is_due or self.bus.broken or self.held)

    def is_checked_by(self, verify: RunRecord) -> bool:
        """Whether this run read the builds that are live now."""
        checked = verify.facts.get("sinks", {})
        return all(checked.get(name, {}).get("build") == sink.build for name, sink in self.sinks.items())

    def is_compared_since(self, verify: RunRecord) -> bool:
        """Whether each live build that this run did not read was compared later: by the rebuild that made it, or by a
        round of spot checks that left out no source."""
        checked = verify.facts.get("sinks", {})
        others = [sink for name, sink in self.sinks.items() if checked.get(name, {}).get("build") != sink.build]
        return all(
            (sink.coverage.compared_since or "") > verify.started_at and not sink.coverage.leaves_out for sink in others
        )


def status(
    state: State,
    root: BusRoot,
    intake: Intake,
    due: Callable[[Generation], str | None],
    sinks: Collection[str],
    *,
    named: int = -1,
    reads_chunks: bool = True,
) -> HomeStatus:
    """`sinks` are the configured ones. `named` limits the held families that are named; -1 names all. Without
    `reads_chunks` the bus counts as missing, and no family is named."""
    live, previous = state.live(), state.previous_or_none()
    catalog = Catalog(state)
    locks = held_locks(state.home)
    builds = {name: build for name, build in live.builds.items() if name in sinks}
    projection = projection_id(intake.fields)
    ids = list(builds.values())
    ingested, updated = newest_run(state.home, "ingest"), last_update(state.home)
    restored = newest_run(state.home, "restore", *UPDATES)
    return HomeStatus(
        live=_generation(live),
        sinks={name: _build(state.db, build, projection) for name, build in builds.items()},
        unconfigured=tuple(name for name in live.builds if name not in sinks),
        unbuilt=tuple(name for name in sinks if name not in live.builds),
        previous=None if previous is None else _generation(previous),
        unfinished=_unfinished(state, under_way="rebuild" in locks),
        begun_flip=state.begun_flip() is not None,
        bus=_bus(state.db, catalog, root, intake, found=reads_chunks and root.exists),
        held=sum(held_by_reason(state.db, ids).values()),
        held_families=tuple(held_families(state.db, root, ids, named if reads_chunks else 0)),
        rebuild_due=due(live),
        brake=large_removal(state.db, ids),
        locks=locks,
        last_run=next(past_runs(state.home), None),
        ingested_at=None if ingested is None else ingested.started_at,
        ingest_failures=failures_of(ingested),
        updated_at=None if updated is None else updated.started_at,
        last_verify=newest_run(state.home, "verify"),
        is_restored=restored is not None and restored.command == "restore",
    )


def failures_of(ingested: RunRecord | None) -> int:
    """How many files, folders or records this `ingest` could not read."""
    failures: int = 0 if ingested is None else ingested.facts.get("report", {}).get("failed", 0)
    return failures


def _generation(generation: Generation) -> GenerationStatus:
    model = generation.model
    return GenerationStatus(
        generation.id, generation.created_at, model.name, model.fingerprint, generation.holds_vectors
    )


def _build(db: Any, build_id: str, projection: str) -> BuildStatus:
    named = {"build": build_id}
    receipts = Receipts(db, build_id)
    return BuildStatus(
        build=build_id,
        families=number(db, "select count(*) from receipt where build = :build and documents > 0", named),
        chunks=receipts.documents(),
        refused=receipts.refused(),
        open_intents=number(db, "select count(*) from intent where build = :build", named),
        to_write=number(db, _TO_WRITE, named | {"projection": projection}),
        to_remove=number(db, _TO_REMOVE, named),
        coverage=SpotCheck(db, build_id).coverage(),
    )


def _unfinished(state: State, *, under_way: bool) -> UnfinishedStatus | None:
    unfinished = state.unfinished()
    if unfinished is None:
        return None
    chunks = {name: Receipts(state.db, build).documents() for name, build in unfinished.builds.items()}
    return UnfinishedStatus(_generation(unfinished), chunks, under_way)


def _bus(db: Any, catalog: Catalog, root: BusRoot, intake: Intake, *, found: bool) -> BusStatus:
    counts = catalog.counts()
    pending = {*intake.pending(), *intake.disappeared()} if found else set()
    return BusStatus(
        root.address,
        found,
        counts.families,
        counts.chunks,
        counts.superseded,
        tuple(sorted(pending)),
        _broken(db, catalog),
        tuple(key for (key,) in db.execute(_DATED_AHEAD, {"now": instant(utc_now())})),
    )


def _broken(db: Any, catalog: Catalog) -> tuple[BrokenPartition, ...]:
    rows = db.execute(
        "select key, state, (select count(distinct family) from chunk where partition = key) from partition "
        "where state <> ? order by key",
        [VALID],
    ).fetchall()
    return tuple(
        BrokenPartition(key, state, "".join(map(str, catalog.findings(1, key))), families)
        for key, state, families in rows
    )
