"""Opening the builds of a generation to write to them: gone ones are made again, others' are left alone."""

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
    """One build that is being written, and what it is called in reports."""

    sink: str
    build_id: str
    build: Build
    holds_vectors: bool
    made: bool = False
    """It was not there, or broken, and is empty now."""


@dataclass(frozen=True)
class Opening:
    """What is done where builds cannot be opened."""

    make: bool = True
    """A build that is gone is made again, empty, and so is one that broke while a run was writing to it."""
    heal: bool = False
    """Broken builds are made again."""
    adopt: bool = False
    """Take over what another home has made."""
    before_making: Callable[[], None] = lambda: None
    """Raises where that may not be, while it is still known what was there."""


@contextmanager
def open_targets(
    session: Session, generation: Generation, outcome: RunOutcome, how: Opening = Opening()
) -> Iterator[list[Target]]:
    """The builds of a generation, of the sinks that this run writes. Those that cannot be opened failed."""
    with ExitStack() as stack:
        targets = []
        for name, sink in session.sinks.items():
            if name not in generation.builds:
                continue
            vectors = sink.wants_vectors and generation.holds_vectors
            with outcome.noting_failure(name):
                opened = _open(session, sink, generation.builds[name], how)
                build = opened or _make(session, sink, generation, how, with_vectors=vectors)
                stack.callback(build.close)
                require_our_build(session, sink, build, adopt=how.adopt)
                targets.append(Target(name, generation.builds[name], build, vectors, made=opened is None))
        yield targets


def _open(session: Session, sink: Sink, build_id: str, how: Opening) -> Build | None:
    """None where it must be made."""
    try:
        build = sink.open(build_id)
    except BuildMissing:
        if how.make:
            return None
        require_ours(session, [sink.name], adopt=how.adopt)  # why it could not be made again comes first
        raise
    except BuildBroken:
        if not (how.heal or (how.make and was_left_unfinished(session, build_id))):
            raise
        how.before_making()
        sink.drop(build_id)
        return None
    with ExitStack() as stack:
        stack.callback(build.close)
        if not how.make or not Receipts(session.state.db, build_id).is_empty() or build.marker() is not None:
            stack.pop_all()
            return build
    return None  # a run ended while it made the build: it is made now


def _make(session: Session, sink: Sink, generation: Generation, how: Opening, *, with_vectors: bool) -> Build:
    build_id = generation.builds[sink.name]
    # Else another one would be left, and the records of this one lost.
    require_ours(session, [sink.name], adopt=how.adopt)
    how.before_making()
    Receipts(session.state.db, build_id).forget_all()
    return sink.create(session.marker(build_id), generation.model.dimension if with_vectors else None)


def was_left_unfinished(session: Session, build_id: str) -> bool:
    """Whether a run ended while writing: an engine that saves in place may have been broken by that alone."""
    return Receipts(session.state.db, build_id).has_intents()


def settings_due(session: Session, live: Generation, target: Target) -> list[str]:
    """Settings of the index that are not as configured, or do not fit what it holds: a sync would set them."""
    settings = capability(session.sinks[target.sink], SupportsSettings)
    of_search = capability(target.build, SupportsSearchSettings)
    due = [] if settings is None else settings.settings_due(target.build_id, **dimensions(live, target))
    return due if of_search is None else [*due, *of_search.search_settings_due()]


def dimensions(generation: Generation, target: Target) -> dict[str, int]:
    """Of the vectors, for index settings; empty where the build holds none."""
    return {"dimensions": generation.model.dimension} if target.holds_vectors else {}
