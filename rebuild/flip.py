"""The flip: what readers see changes in one step. Rollback is the same code the other way round.

A run that finds a flip begun ends it: forwards if all of it is there, else backwards.
"""

from contextlib import closing, suppress

from chunksink.rebuild.locks import removing
from chunksink.rebuild.ownership import orphans, require_ours, shown_build
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.report import NotRemoved
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import Generation
from chunksink.sinks.contract import Build
from chunksink.sinks.errors import BuildBroken, BuildMissing, Refused, SinkError


def flip(session: Session, generation: Generation, *, adopt: bool = False) -> None:
    """All sinks, then the pointer. Repeating it after a kill in between ends it. Where a sink refuses, and so would
    again, it was none: all show what they showed before."""
    public = session.state.public_builds()
    changing = {name: build for name, build in generation.builds.items() if public.get(name) != build}
    require_ours(session, changing, adopt=adopt)
    session.state.begin_flip(generation)
    try:
        for name, build_id in changing.items():
            show(session, name, build_id, adopt=adopt)
    except Refused:
        _go_back(session, generation)
        raise
    session.state.flip(generation)


def _go_back(session: Session, begun: Generation) -> None:
    live = session.state.live_or_none()
    for name, build_id in (live.builds if live is not None else {}).items():
        with suppress(Refused):  # what is gone, or cannot be read, is for the sync that comes
            session.sink(name).flip(begun.builds.get(name), build_id)
    session.state.give_up_flip()


def roll_back(session: Session) -> Generation:
    """Readers see the previous generation again. A rollback that was cut off is ended, not taken back."""
    begun = session.state.begun_flip()
    cut_off = begun is not None and begun == session.state.previous_or_none()
    live = live_generation(session)
    if cut_off and live is not None and live == begun:
        return live
    previous = session.state.previous()
    require_ours(session, previous.builds, adopt=False, sign=True)
    for name, build_id in previous.builds.items():
        try:
            build = session.sink(name).open(build_id)
        except (BuildMissing, BuildBroken) as error:
            raise type(error)(
                f"the build before in {name} is gone or cannot be read: there is no way back to it, and nothing was "
                "changed. `chunksink rebuild` makes a new generation"
            ) from error
        with closing(build):
            _require_whole(Receipts(session.state.db, build_id), name, build)
    flip(session, previous)
    return previous


def _require_whole(receipts: Receipts, name: str, build: Build) -> None:
    """By its count; what a run has left open is for the sync that follows."""
    held, confirmed = build.count(), receipts.documents()
    if held != confirmed and not receipts.has_intents():
        raise BuildBroken(
            f"the build before in {name} holds {held:,} documents, and {confirmed:,} were confirmed: it is not shown, "
            "and nothing was changed. `chunksink rebuild` makes a new generation"
        )


def live_generation(session: Session, *, adopt: bool = False) -> Generation | None:
    """What readers see, after a flip that was cut off has been ended. The caller holds the writer's lock."""
    end_begun_flip(session, adopt=adopt)
    return session.state.live_or_none()


def end_begun_flip(session: Session, *, adopt: bool = False) -> None:
    """Ends a flip that was cut off; if a part of what it shows is gone since, it is taken back."""
    generation = session.state.begun_flip()
    if generation is not None:
        with suppress(BuildMissing, BuildBroken):
            flip(session, generation, adopt=adopt)


def drop(session: Session, generation: Generation) -> list[NotRemoved]:
    """Removes its builds, unless somebody reads them. An engine out of reach stops no run: what is left is returned."""
    left: list[NotRemoved] = []
    with removing(session.state, generation) as alone:
        if not alone:
            return left
        for name, build_id in generation.builds.items():
            try:
                if not session.state.is_shared(build_id, generation):
                    session.sink(name).drop(build_id)
            except SinkError as error:
                left.append(NotRemoved(name, build_id, str(error)))
            else:
                session.state.forget_build(generation, name)
    return left


def drop_orphans(session: Session) -> list[NotRemoved]:
    """Nor is this anything to stop for: the flip has been made."""
    left: list[NotRemoved] = []
    for sink in session.sinks.values():
        found: dict[str, int] = {}
        with suppress(SinkError):  # a later rebuild looks again
            found = orphans(session, sink)
        for build_id in found:
            try:
                sink.drop(build_id)
            except SinkError as error:
                left.append(NotRemoved(sink.name, build_id, str(error)))
            else:
                Receipts(session.state.db, build_id).forget_all()
    return left


def show(session: Session, name: str, build_id: str, *, adopt: bool = False) -> None:
    """The sink shows this build under its public name; where it does already, nothing happens."""
    sink = session.sink(name)
    sink.flip(shown_build(session, sink, adopt=adopt, sign=True), build_id)
