"""Opens the builds of a generation. `Opening`: what to do with builds that are missing, broken or of another home."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from chunksink.rebuild.ownership import require_our_build, require_ours
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.report import RunOutcome
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import Generation
from chunksink.sinks.capabilities import SupportsSearchSettings, SupportsSettings, capability
from chunksink.sinks.contract import Build, Sink
from chunksink.sinks.errors import BuildBroken, BuildMissing


@dataclass(frozen=True)
class Target:
    sink: str
    build_id: str
    build: Build
    dimensions: int | None
    """The length of its vectors; None if it has none."""
    made: bool = False
    """It was missing or broken, and was created again, empty."""

    @property
    def holds_vectors(self) -> bool:
        return self.dimensions is not None


@dataclass(frozen=True)
class Opening:
    """What to do with builds that cannot be opened."""

    make: bool = True
    """Create missing builds, empty. Recreate builds that broke because a run was killed while writing."""
    heal: bool = False
    """Recreate all broken builds."""
    adopt: bool = False
    """Take over builds of another home."""
    before_making: Callable[[], None] = lambda: None
    """Called before a build is created, while its records still exist; raises to prevent it."""


@contextmanager
def open_targets(
    session: Session, generation: Generation, outcome: RunOutcome, opening: Opening = Opening()
) -> Iterator[list[Target]]:
    """The builds of a generation in the sinks that this run writes. Errors from opening them are in `outcome`."""
    with ExitStack() as stack:
        targets = []
        for name, sink in session.sinks.items():
            if name not in generation.builds:
                continue
            build_id, has_vectors = generation.builds[name], sink.wants_vectors and generation.holds_vectors
            dimensions = generation.model.dimension_in_index if has_vectors else None
            with outcome.noting_failure(name):
                opened = _open(session, sink, build_id, opening)
                build = opened or _make(session, sink, build_id, dimensions, opening)
                stack.callback(build.close)
                require_our_build(session, sink, build, adopt=opening.adopt)
                targets.append(Target(name, build_id, build, dimensions, made=opened is None))
        yield targets


def _open(session: Session, sink: Sink, build_id: str, opening: Opening) -> Build | None:
    """The existing build; None if it must be created."""
    try:
        build = sink.open(build_id)
    except BuildMissing:
        if opening.make:
            return None
        require_ours(session, [sink.name], adopt=opening.adopt)  # its error is more important
        raise
    except BuildBroken:
        if not (opening.heal or (opening.make and was_left_unfinished(session, build_id))):
            raise
        opening.before_making()
        sink.drop(build_id)
        return None
    with ExitStack() as stack:
        stack.callback(build.close)
        if not opening.make or Receipts(session.state.db, build_id).documents() or build.marker() is not None:
            stack.pop_all()
            return build
    return None  # a killed run did not finish creating it


def _make(session: Session, sink: Sink, build_id: str, dimensions: int | None, opening: Opening) -> Build:
    require_ours(session, [sink.name], adopt=opening.adopt)
    opening.before_making()
    Receipts(session.state.db, build_id).forget_all()
    return sink.create(session.marker(build_id), dimensions)


def was_left_unfinished(session: Session, build_id: str) -> bool:
    """Whether a run was killed while writing the build, which can break it if the engine saves in place."""
    return Receipts(session.state.db, build_id).has_intents()


def settings_due(session: Session, target: Target) -> list[str]:
    """Index settings that a sync would change: they differ from the configuration or do not fit the content."""
    settings = capability(session.sinks[target.sink], SupportsSettings)
    of_search = capability(target.build, SupportsSearchSettings)
    due = [] if settings is None else settings.settings_due(target.build_id, target.dimensions)
    return due if of_search is None else [*due, *of_search.search_settings_due()]
