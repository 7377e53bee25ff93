"""The flip switches readers to another generation in one step. A rollback is a flip to the previous one.

A run that finds an unfinished flip completes it if all builds exist; else it undoes the flip.
"""

from contextlib import closing, suppress

from chunksink.rebuild.errors import NoGeneration
from chunksink.rebuild.locks import removing
from chunksink.rebuild.ownership import orphans, require_ours, shown_build
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.report import NotRemoved
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import Generation
from chunksink.sinks.contract import Build
from chunksink.sinks.errors import BuildBroken, BuildMissing, Refused, SinkError

_NEW_GENERATION = "`chunksink rebuild` makes a new generation"


def flip(session: Session, generation: Generation, *, adopt: bool = False) -> None:
    """Switch all sinks to the generation, then record it as live. This can be repeated after a kill.

    If a sink refuses, those with a live build are switched back to it. Raises OtherHome as `require_ours` does.
    """
    public = session.state.public_builds()
    changing = {name: build for name, build in generation.builds.items() if public.get(name) != build}
    require_ours(session, changing, adopt=adopt)
    session.state.begin_flip(generation)
    try:
        for name, build_id in changing.items():
            show(session, name, build_id, adopt=adopt)
    except Refused:
        _switch_back(session, generation)
        raise
    session.state.flip(generation)


def _switch_back(session: Session, begun: Generation) -> None:
    live = session.state.live_or_none()
    for name, build_id in (live.builds if live is not None else {}).items():
        with suppress(Refused):  # the next sync shows the live build again
            session.sink(name).flip(begun.builds.get(name), build_id)
    session.state.cancel_flip()


def roll_back(session: Session) -> Generation:
    """Switch back to the previous generation. If a rollback was interrupted, this only completes it, so that a repeated
    command does not undo it. Raises NoGeneration if there is no previous one."""
    begun = session.state.begun_flip()
    is_rollback = begun is not None and begun == session.state.previous_or_none()
    live = live_generation(session)
    if is_rollback and live is not None and live == begun:
        return live
    previous = session.state.previous_or_none()
    if previous is None:
        raise NoGeneration(f"there is no previous generation in {session.state.home}")
    require_ours(session, previous.builds, adopt=False, sign=True)
    for name, build_id in previous.builds.items():
        try:
            build = session.sink(name).open(build_id)
        except (BuildMissing, BuildBroken) as error:
            raise type(error)(
                f"the previous build in {name} is gone or cannot be read; nothing was changed", _NEW_GENERATION
            ) from error
        with closing(build):
            _require_confirmed_count(Receipts(session.state.db, build_id), name, build)
    flip(session, previous)
    return previous


def _require_confirmed_count(receipts: Receipts, name: str, build: Build) -> None:
    """Raises BuildBroken if the build has more or fewer documents than its receipts say. Open intents are left to the
    next sync."""
    stored, confirmed = build.count(), receipts.documents()
    if stored != confirmed and not receipts.has_intents():
        raise BuildBroken(
            f"the previous build in {name} has {stored:,} documents instead of {confirmed:,}; nothing was changed",
            _NEW_GENERATION,
        )


def live_generation(session: Session, *, adopt: bool = False) -> Generation | None:
    """The live generation. An unfinished flip is completed first, or undone if one of its builds is missing or
    broken. The caller holds the writer's lock."""
    if (begun := session.state.begun_flip()) is not None:
        with suppress(BuildMissing, BuildBroken):
            flip(session, begun, adopt=adopt)
    return session.state.live_or_none()


def drop(session: Session, generation: Generation) -> dict[str, NotRemoved]:
    """Remove the generation's builds unless they are being read. Returns those that an engine did not remove."""
    not_removed: dict[str, NotRemoved] = {}
    with removing(session.state, generation) as is_unread:
        for name, build_id in generation.builds.items() if is_unread else ():
            try:
                if not session.state.is_shared(build_id, generation):
                    session.sink(name).drop(build_id)
            except SinkError as error:
                not_removed[build_id] = NotRemoved(name, build_id, str(error))
            else:
                session.state.forget_build(generation, name)
    return not_removed


def forget_lost_previous(session: Session) -> None:
    """Forget the previous generation if none of its own builds exists any more, as after a restore on a new machine."""
    if (previous := session.state.previous_or_none()) is None:
        return
    own = previous.builds.items() - session.state.live().builds.items()
    with suppress(SinkError):  # a sink that is not asked or does not answer may still have its build
        if own and all(name in session.sinks and build not in session.sinks[name].builds() for name, build in own):
            for name in previous.builds:
                session.state.forget_build(previous, name)


def drop_orphans(session: Session) -> dict[str, NotRemoved]:
    """Remove unrecorded builds of this home. Returns those that an engine did not remove."""
    not_removed: dict[str, NotRemoved] = {}
    for sink in session.sinks.values():
        with suppress(SinkError):  # a later rebuild tries again
            for build_id in orphans(session, sink):
                try:
                    sink.drop(build_id)
                except SinkError as error:
                    not_removed[build_id] = NotRemoved(sink.name, build_id, str(error))
                else:
                    Receipts(session.state.db, build_id).forget_all()
    return not_removed


def show(session: Session, name: str, build_id: str, *, adopt: bool = False) -> None:
    """Show this build under the sink's public name, unless it is shown already."""
    sink = session.sink(name)
    sink.flip(shown_build(session, sink, adopt=adopt, sign=True), build_id)
