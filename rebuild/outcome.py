"""What a run did: in each sink, and in all of them together. It grows while the run goes on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from chunksink.rebuild.errors import RebuildError
from chunksink.rebuild.model_change import ModelChange
from chunksink.rebuild.plan import FamilyCounts, Plan
from chunksink.rebuild.receipts import DeadLetter
from chunksink.sinks.errors import SinkError


@dataclass
class SinkOutcome:
    """What a run did in one sink."""

    families: FamilyCounts = field(default_factory=FamilyCounts)
    written: int = 0
    """Documents."""
    deleted: int = 0
    chunks: int = 0
    """What its live build holds after the run, as it has confirmed."""
    refused: tuple[DeadLetter, ...] = ()
    """What its live build lacks after the run because the engine refused it."""
    scanned: bool = False
    """Its receipts were made anew from what the engine shows."""
    drifted: bool = False
    """It was scanned because it did not hold what had been confirmed."""
    made_again: bool = False
    """Its live build was gone or broken, so that all of it was written."""
    built: bool = False
    """It had no live build before, so that all of it was written."""
    held_and_lost: int = 0
    """Sources that it had and lost, and that were not written again since they are held."""
    settings: tuple[str, ...] = ()
    """Index settings that were changed."""
    error: SinkError | RebuildError | None = None
    """Why it could not go on or be built; what it holds of its last batch is unknown."""


@dataclass(frozen=True)
class NotRemoved:
    """A build that nobody needs and that its engine would not remove; a later run tries again."""

    sink: str
    build: str
    reason: str


@dataclass
class RunOutcome:
    """What a run did; totals count a family or chunk once, however many sinks it was written to."""

    families: FamilyCounts = field(default_factory=FamilyCounts)
    chunks_written: int = 0
    chunks_deleted: int = 0
    sinks: dict[str, SinkOutcome] = field(default_factory=dict)
    not_removed: dict[str, NotRemoved] = field(default_factory=dict)
    """By build."""
    left_behind: int = 0
    """Sources that were in an index whose records are lost, and that no chunks have."""
    model_change: ModelChange | None = None

    def sink(self, name: str) -> SinkOutcome:
        return self.sinks.setdefault(name, SinkOutcome())

    @property
    def failed(self) -> dict[str, SinkError | RebuildError]:
        return {name: sink.error for name, sink in self.sinks.items() if sink.error is not None}

    def note(self, plan: Plan, builds: Mapping[str, str]) -> None:
        """Adds what these builds, by sink, have confirmed of a plan."""
        if not builds:
            return
        self.families = self.families.then(plan.confirmed())
        self.chunks_written += plan.chunks_written()
        leaving = {name: plan.leaving(build, confirmed=True) for name, build in builds.items()}
        for name, build in builds.items():
            sink = self.sink(name)
            sink.families = sink.families.then(plan.confirmed(build))
            sink.deleted += leaving[name]
        self.chunks_deleted += max(leaving.values())
