"""Opening the builds of a generation to write to them: gone ones are made again, others' are left alone."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from chunksink.rebuild.outcome import RunOutcome
from chunksink.rebuild.ownership import require_our_build, require_ours
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import Generation
from chunksink.sinks.capabilities import SupportsSettings, capability
from chunksink.sinks.contract import Build, Sink
from chunksink.sinks.errors import BuildBroken, BuildMissing, SinkError


@dataclass(frozen=True)
class Target:
    """One build that is being written, and what it is called in reports."""

    sink: str
    build_id: str
    build: Build
    holds_vectors: bool
    made: bool = False
    """It was not there, or broken, and is empty now."""


@contextmanager
def open_targets(
    session: Session,
    generation: Generation,
    outcome: RunOutcome,
    *,
    make: bool = True,
    heal: bool = False,
    adopt: bool = False,
    before_making: Callable[[], None] = lambda: None,
) -> Iterator[list[Target]]:
    """The builds of a generation, of the sinks that this run writes. Those that cannot be opened failed.

    With `make` a build that is gone is made again, empty, and one that broke while a run was writing to it; with `heal`
    whatever is broken. But first it is asked whether that may be, while it is still known what was there.
    """
    with ExitStack() as stack:
        targets = []
        for name, sink in session.sinks.items():
            if name not in generation.builds:
                continue
            try:
                build, made = _open(session, sink, generation, before_making, make=make, heal=heal, adopt=adopt)
                stack.callback(build.close)
                require_our_build(session, sink, build, adopt=adopt)
            except SinkError as error:
                outcome.sink(name).error = error
            else:
                vectors = sink.wants_vectors and generation.holds_vectors
                targets.append(Target(name, generation.builds[name], build, vectors, made))
        yield targets


def _open(
    session: Session,
    sink: Sink,
    generation: Generation,
    before_making: Callable[[], None],
    *,
    make: bool,
    heal: bool,
    adopt: bool,
) -> tuple[Build, bool]:
    """The build, and whether it had to be made."""
    build_id = generation.builds[sink.name]
    receipts = Receipts(session.state.db, build_id)
    try:
        with ExitStack() as stack:
            build = sink.open(build_id)
            stack.callback(build.close)
            if not make or not receipts.is_empty() or build.marker() is not None:
                stack.pop_all()
                return build, False
        # Its making was broken off: it goes on.
    except BuildMissing:
        if not make:
            require_ours(session, [sink.name], adopt=adopt)  # why it could not be made again comes first
            raise
    except BuildBroken:
        if not (heal or (make and was_left_unfinished(session, build_id))):
            raise
        before_making()
        sink.drop(build_id)
    require_ours(session, [sink.name], adopt=adopt)  # else another one would be left, and the records of this one lost
    before_making()
    receipts.lose_all()
    vectors = sink.wants_vectors and generation.holds_vectors
    return sink.create(session.marker(build_id), generation.model.dimension if vectors else None), True


def was_left_unfinished(session: Session, build_id: str) -> bool:
    """Whether a run ended in the middle of its writing: an engine that saves in place may have been broken by that.

    Else nobody knows what broke it: people are told, and say when it is made anew.
    """
    return Receipts(session.state.db, build_id).has_intents()


def settings_due(session: Session, live: Generation, target: Target) -> list[str]:
    """Index settings that are not as configured: a sync would set them."""
    settings = capability(session.sinks[target.sink], SupportsSettings)
    return [] if settings is None else settings.settings_due(target.build_id, **dimensions(live, target))


def dimensions(generation: Generation, target: Target) -> dict[str, int]:
    """Of the vectors, for index settings; empty where the build holds none."""
    return {"dimensions": generation.model.dimension} if target.holds_vectors else {}
