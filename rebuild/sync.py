"""Sync: the live builds are brought to what the bus says now, with the least that has to be written.

Also without its records: a build whose marker or count is not what was confirmed is scanned first. A sink that has no
live build yet gets one by a rebuild of it alone.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from chunkbus.errors import PartitionChanged
from rebuild.builds import opened
from rebuild.catalog import Catalog
from rebuild.converge import Convergence, Outcome
from rebuild.embed import DocumentEmbedder
from rebuild.errors import InvalidBus, OtherPlan
from rebuild.execute import Target
from rebuild.flip import show
from rebuild.plan import Plan, brake
from rebuild.state import Generation
from rebuild.work import Work
from sinks.errors import SinkError

_TRIES = 5


@dataclass(frozen=True)
class SyncOptions:
    """What a run may do that it would not do by itself."""

    adopt: bool = False
    """Take over builds that another home has made."""
    allow_deletions: int = 0
    """So many sources may go, even if they are a large share."""
    only_plan: str | None = None
    """Carry out exactly this plan, or nothing."""
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
    for left in reversed(range(_TRIES)):
        try:
            return _sync(work, live, embedder, options)
        except PartitionChanged:
            if left == 0:
                raise
    raise AssertionError


@contextmanager
def planned(work: Work, live: Generation, embedder: DocumentEmbedder, *, adopt: bool = False) -> Iterator[Plan]:
    """What a sync would do, and nothing done but to look."""
    work.refresh()
    failed: dict[str, SinkError] = {}
    with opened(work, live, failed, make=False, adopt=adopt) as targets:
        convergence = Convergence(work, targets, embedder)
        convergence.look(sign=False)
        for error in (failed | convergence.outcome.done.failed).values():
            raise error
        yield convergence.plan()


def _update_settings(work: Work, targets: Sequence[Target], outcome: Outcome) -> None:
    """Settings before documents: those that come are indexed once."""
    for target in targets:
        update: Callable[[str], list[str]] | None = getattr(work.sinks[target.sink], "update_settings", None)
        if update is None:
            continue
        try:
            if changed := update(target.build_id):
                outcome.settings[target.sink] = changed
        except SinkError as error:
            outcome.done.failed[target.sink] = error


def require_valid(catalog: Catalog) -> None:
    """Every partition is there and valid, and nothing is held; else InvalidBus, with the first reasons."""
    found = [str(finding) for finding in catalog.findings(3) if finding.is_error]
    found += [f"MISSING_OUTPUT:partition {key}" for key in catalog.missing_partitions()[:3]]
    found += [f"{held.reason}: {held.detail}" for held in catalog.held(3)]
    if found:
        shown = "\n".join(f"  {line}" for line in found[:3])
        raise InvalidBus(
            f"the chunks are not whole; the index is unchanged. The first reasons:\n{shown}\n"
            "See all with `chunksink validate`; a partition that is gone on purpose: `chunksink retire-partition KEY`"
        )


def _sync(work: Work, live: Generation, embedder: DocumentEmbedder, options: SyncOptions) -> Outcome:
    work.refresh()
    if options.strict:
        require_valid(work.catalog)
    failed: dict[str, SinkError] = {}
    with opened(work, live, failed, adopt=options.adopt, heal=options.scan) as targets:
        convergence = Convergence(work, targets, embedder)
        convergence.outcome.done.failed |= failed
        convergence.look(scan=options.scan, deep=options.deep)
        plan = convergence.plan()
        if options.only_plan is not None and plan.digest() != options.only_plan:
            raise OtherPlan(
                f"a sync would now carry out the plan {plan.digest():.12}, not {options.only_plan:.12}; nothing was "
                "written. Look at `chunksink plan` again"
            )
        if work.catalog.is_whole():
            brake(work.state.db, [target.build_id for target in targets], options.allow_deletions)
        _update_settings(work, targets, convergence.outcome)
        convergence.run(plan)
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
