"""Sync: the live builds are brought to what the bus says now, with the least that has to be written.

Also without its records: a build whose marker or count is not what was confirmed is scanned first. A sink that has no
live build yet gets one by a rebuild of it alone.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

from chunksink.chunkbus.errors import PartitionChanged
from chunksink.rebuild.again import TRIES
from chunksink.rebuild.brake import LEAST_REMOVALS, brake
from chunksink.rebuild.builds import opened, was_left_unfinished
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.converge import Convergence, Outcome
from chunksink.rebuild.embed import DocumentEmbedder
from chunksink.rebuild.errors import InvalidBus, OtherPlan, UnknownPlan
from chunksink.rebuild.execute import Lock, Target
from chunksink.rebuild.flip import require_ours, show
from chunksink.rebuild.plan import Plan
from chunksink.rebuild.refill import refill
from chunksink.rebuild.state import Generation
from chunksink.rebuild.work import Work
from chunksink.settings.engine_settings import EMBEDDERS
from chunksink.sinks.capabilities import SupportsSettings, capability
from chunksink.sinks.errors import BuildBroken, BuildMissing, SinkError

_LEAST_DIGITS = 12
"""Of a plan's hash, that name it."""


@dataclass(frozen=True)
class SyncOptions:
    """What a run may do that it would not do by itself."""

    adopt: bool = False
    """Take over builds that another home has made."""
    allow_deletions: int = 0
    """So many sources may go, even if they are a large share."""
    only_plan: str | None = None
    """Carry out exactly the plan whose hash begins so, with 12 digits or more; or nothing."""
    scan: bool = False
    """Ask the engines for everything that they hold, whatever the receipts say; make broken builds anew."""
    deep: bool = False
    """A scan compares vectors too."""
    strict: bool = False
    """Refuse the whole bus for one invalid partition."""


def sync_live(
    work: Work, live: Generation, embedder: DocumentEmbedder, options: SyncOptions = SyncOptions()
) -> Outcome:
    """Brings the live builds of the run's sinks up to date.

    The caller has held the writer's lock since it asked for the live generation.
    """
    earlier: Outcome | None = None
    broken_off: list[Outcome] = []
    for left in reversed(range(TRIES)):
        try:
            outcome = _sync(work, live, embedder, options, broken_off)
        except PartitionChanged:  # a plan that was named cannot be the one of another try
            if left == 0 or options.only_plan is not None:
                raise
            continue
        while broken_off:
            outcome.follow(broken_off.pop())
        if earlier is not None:
            outcome.include(earlier)
        if left == 0 or not options.scan or not _drop_broken(work, live, outcome):
            return outcome
        earlier = outcome
    raise AssertionError


def _drop_broken(work: Work, live: Generation, outcome: Outcome) -> bool:
    """Builds of which it was seen only while they were read or written that they are broken: they are made anew."""
    broken = [name for name, error in outcome.done.failed.items() if isinstance(error, BuildBroken)]
    for name in broken:
        work.sinks[name].drop(live.builds[name])
    return bool(broken)


@dataclass(frozen=True)
class Planned:
    """What a sync would do."""

    plan: Plan
    builds: dict[str, str]
    """Of each configured sink; where there is none yet, a name that stands for it."""
    empty: dict[str, str]
    """Sinks that must be filled from nothing, and why."""
    hash: str | None
    """Names what a sync would do in the live builds; None where there is no live index."""
    settings: dict[str, list[str]]
    """Index settings that it would change, by sink."""


@contextmanager
def planned(
    work: Work, live: Generation | None, embedder: DocumentEmbedder, *, adopt: bool = False
) -> Iterator[Planned]:
    """Nothing is done but to look. What cannot be looked at holds nothing; an engine out of reach is an error."""
    work.refresh()
    failed: dict[str, SinkError] = {}
    if live is None:
        require_ours(work, work.sinks, adopt=adopt)  # a first sync would refuse, too
    with ExitStack() as stack:
        targets = [] if live is None else stack.enter_context(opened(work, live, failed, make=False, adopt=adopt))
        left_unfinished = {name for name in failed if live and was_left_unfinished(work, live.builds[name])}
        convergence = Convergence(work, targets, embedder)
        convergence.look(sign=False)
        failed |= convergence.outcome.done.failed
        for error in failed.values():
            if not isinstance(error, BuildMissing | BuildBroken):
                raise error
        known = {} if live is None else live.builds
        builds = {name: known.get(name, name) for name in work.sinks}
        told = {name for name, error in failed.items() if isinstance(error, BuildBroken)} - left_unfinished
        empty = {
            name: _why_empty(failed.get(name), is_told=name in told)
            for name in work.sinks
            if name in failed or name not in known
        }
        plan = convergence.plan([builds[name] for name in empty])
        written = [builds[name] for name in known if name in builds and name not in told]
        settings = {} if live is None else settings_due(work, live, targets)
        yield Planned(plan, builds, empty, None if live is None else plan.digest(written, settings), settings)


def _why_empty(error: SinkError | None, *, is_told: bool) -> str:
    if is_told:
        return f"`chunksink verify --repair` or a rebuild writes all of it again, for it is broken ({error})"
    if error is None:
        return "it has no build yet"
    how = "broke while it was written" if isinstance(error, BuildBroken) else "is gone"
    return f"its build {how}, and a sync writes all of it again"


def _require_plan(work: Work, live: Generation, embedder: DocumentEmbedder, options: SyncOptions) -> None:
    """OtherPlan where it is not the one that is named. Before a build that is gone is made again: the plan says so."""
    given = options.only_plan or ""
    if len(given) < _LEAST_DIGITS:
        raise UnknownPlan(
            f"{given!r:.100} is too short for the hash of a plan: say {_LEAST_DIGITS} of its digits or more, as "
            "`chunksink plan` prints it (before the first index there is none: `chunksink sync` makes it); nothing "
            "was written"
        )
    with planned(work, live, embedder, adopt=options.adopt) as would:
        digest = would.hash or ""
    if not digest.startswith(given):
        raise OtherPlan(
            f"a sync would now carry out the plan {digest:.12}, not {given:.12}; nothing was written. Look at "
            "`chunksink plan` again"
        )


def settings_due(work: Work, live: Generation, targets: Sequence[Target]) -> dict[str, list[str]]:
    """By sink, index settings that are not as configured: a sync would set them."""
    due: dict[str, list[str]] = {}
    for target in targets:
        settings = capability(work.sinks[target.sink], SupportsSettings)
        if settings is not None and (names := settings.settings_due(target.build_id, **_vectors(live, target))):
            due[target.sink] = names
    return due


def update_settings(
    work: Work,
    generation: Generation,
    targets: Sequence[Target],
    embedder: DocumentEmbedder,
    outcome: Outcome,
    lock: Lock = nullcontext,
) -> bool:
    """Settings before documents: those that come are indexed once. Whether receipts were made anew meanwhile."""
    for target in targets:
        settings = capability(work.sinks[target.sink], SupportsSettings)
        if settings is None or target.sink in outcome.done.failed:
            continue
        try:
            if changed := settings.update_settings(target.build_id, **_vectors(generation, target)):
                outcome.settings[target.sink] = changed
        except SinkError as error:
            outcome.done.failed[target.sink] = error
    return _look_at_vectors(work, targets, embedder, outcome, lock)


def _look_at_vectors(
    work: Work, targets: Sequence[Target], embedder: DocumentEmbedder, outcome: Outcome, lock: Lock
) -> bool:
    """Where an engine takes vectors again, they are compared one by one: some may have come while it took none."""
    again = [target for target in targets if EMBEDDERS in outcome.settings.get(target.sink, ())]
    if again:
        convergence = Convergence(work, again, embedder, lock)
        convergence.look(scan=True, deep=True)
        outcome.done.failed |= convergence.outcome.done.failed
        outcome.scanned += [sink for sink in convergence.outcome.scanned if sink not in outcome.scanned]
    return bool(again)


def _vectors(generation: Generation, target: Target) -> dict[str, int]:
    return {"dimensions": generation.model.dimension} if target.holds_vectors else {}


def require_valid(catalog: Catalog) -> None:
    """Every partition is there and valid, and nothing is held; else InvalidBus, with the first reasons."""
    invalid = [str(finding) for finding in catalog.findings(3) if finding.is_error]
    missing = [f"partition {key} is missing" for key in catalog.missing_partitions()[:3]]
    held = [one.detail if one.reason in one.detail else f"{one.reason}: {one.detail}" for one in catalog.held(3)]
    if not (invalid or missing or held):
        return
    shown = "\n".join(f"  {line}" for line in list(dict.fromkeys([*invalid, *missing, *held]))[:3])
    remedies = {
        "`chunksink validate` says all that is invalid": invalid,
        "a partition that is gone on purpose: `chunksink retire-partition KEY`": missing,
        "`chunksink status --all` names what is held in a live index": held,
    }
    helping = "; ".join(remedy for remedy, found in remedies.items() if found)
    raise InvalidBus(f"the chunks are not whole; the index is unchanged. The first reasons:\n{shown}\n{helping}")


def _sync(
    work: Work, live: Generation, embedder: DocumentEmbedder, options: SyncOptions, broken_off: list[Outcome]
) -> Outcome:
    """`broken_off` is given what was done where the bus moved under it."""
    work.refresh()
    if options.strict:
        require_valid(work.catalog)
    if options.only_plan is not None:
        _require_plan(work, live, embedder, options)  # of the bus as it is read for that

    def stop_large_removals() -> None:
        if work.catalog.is_whole():
            builds = [live.builds[name] for name in work.sinks if name in live.builds]
            brake(work.state.db, builds, options.allow_deletions)

    if options.scan:
        stop_large_removals()
    failed: dict[str, SinkError] = {}
    with opened(
        work, live, failed, adopt=options.adopt, heal=options.scan, before_making=stop_large_removals
    ) as targets:
        convergence = Convergence(work, targets, embedder)
        convergence.outcome.done.failed |= failed
        convergence.outcome.made_again = [target.sink for target in targets if target.made]
        if options.deep and any(target.holds_vectors for target in targets):
            refill(work, embedder)
        convergence.look(scan=options.scan, deep=options.deep)
        plan = convergence.plan()
        if plan.removed() >= LEAST_REMOVALS:
            brake(work.state.db, [target.build_id for target in targets], options.allow_deletions)
        if update_settings(work, live, targets, embedder, convergence.outcome):
            plan = convergence.plan()
        try:
            convergence.run(plan)
        except PartitionChanged:
            broken_off.append(convergence.outcome)
            raise
        _show(work, targets, convergence.outcome, adopt=options.adopt)
    return convergence.outcome


def _show(work: Work, targets: Sequence[Target], outcome: Outcome, *, adopt: bool) -> None:
    """What other programs find is the live build; a build that was made again shows itself only now."""
    for target in targets:
        if target.sink in outcome.done.failed:
            continue
        try:
            show(work, target.sink, target.build_id, adopt=adopt)
        except SinkError as error:
            outcome.done.failed[target.sink] = error
