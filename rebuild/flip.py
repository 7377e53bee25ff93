"""The flip: what readers see changes in one step. Rollback is the same code the other way round.

First it is written down that it begins; then each sink shows the build under its public name, where it has one; the
pointer is the commit. Whoever finds a begun flip ends it, forwards where all of it is there, else backwards.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice

from chunksink.rebuild.errors import OtherHome
from chunksink.rebuild.locks import removing
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.session import Session
from chunksink.rebuild.state import Generation
from chunksink.sinks.capabilities import SupportsPublicName, capability
from chunksink.sinks.contract import Build, Sink, Stored
from chunksink.sinks.errors import BuildBroken, BuildMissing, Refused, SinkError

_SAMPLE = 1000
"""Documents, by which a build without its marker is known."""


@dataclass(frozen=True)
class NotRemoved:
    """A build that nobody needs and that its engine would not remove; a later run tries it again."""

    sink: str
    build: str
    reason: str


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


def require_ours(session: Session, sinks: Iterable[str], *, adopt: bool, sign: bool = False) -> None:
    """What these sinks show may be replaced by this home; OtherHome where it may not. With `sign` what has lost its
    marker has it again afterwards."""
    for name in sinks:
        _shown(session, session.sink(name), session.state.public_builds().get(name), adopt=adopt, sign=sign)


def roll_back(session: Session) -> Generation:
    """Readers see the generation before again; the one that was live is the one before now. One that was cut off is
    ended, and not taken back."""
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
    """A run died while it flipped: what it had verified is shown by some sinks, and now by all; or, where a part of it
    is gone since, by none."""
    generation = session.state.begun_flip()
    if generation is not None:
        with suppress(BuildMissing, BuildBroken):
            flip(session, generation, adopt=adopt)


def drop(session: Session, generation: Generation) -> list[NotRemoved]:
    """Removes its builds; not while somebody reads them, then a later run does.

    Nor does it stop a run that an engine which nobody uses any more is out of reach: what is left is told.
    """
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


def show(session: Session, name: str, build_id: str, *, adopt: bool = False) -> None:
    """The sink shows this build under its public name; where it does already, nothing happens."""
    sink = session.sink(name)
    sink.flip(_shown(session, sink, session.state.public_builds().get(name), adopt=adopt, sign=True), build_id)


def _shown(session: Session, sink: Sink, recorded: str | None, *, adopt: bool, sign: bool = False) -> str | None:
    """The build under the sink's public name, if it may be replaced: by our records, or by its own marker; where it has
    lost that, by what it holds."""
    public = capability(sink, SupportsPublicName)
    marker = public.shown() if public is not None else None
    if marker is None:
        if public is not None and recorded is not None:
            _look_at_unmarked(session, sink, recorded, adopt=adopt, sign=sign)
        return recorded
    if marker.build_id == recorded:
        return recorded
    if not session.owns(marker) and not adopt:
        raise OtherHome(
            f"what {sink.name} shows was made by another home ({marker.home_id:.12}...), not by {session.state.home}; "
            "it is left alone. If this home shall replace it, say --adopt; else give the index another name"
        )
    return marker.build_id


def _look_at_unmarked(session: Session, sink: Sink, recorded: str, *, adopt: bool, sign: bool) -> None:
    """What is shown bears no marker, or there is nothing. A sink that knows its builds by their markers alone may take
    it for the one that we showed; so do we where we know most of what it holds."""
    if recorded in sink.builds():
        return
    try:
        build = sink.open(recorded)
    except (BuildMissing, BuildBroken):
        return
    with closing(build):
        sample = list(islice(build.scan(), _SAMPLE))
        if not sample:  # its making was broken off
            return
        if not adopt and not _are_known(session, sample, recorded):
            raise OtherHome(
                f"what {sink.name} shows has lost its marker, and most of what it holds is unknown to "
                f"{session.state.home}; it is left alone. To take it over, run `chunksink sync --adopt`; else give the "
                "index another name"
            )
        if sign:
            build.sign(session.marker(recorded))


def _are_known(session: Session, sample: Sequence[Stored], build_id: str) -> bool:
    """Whether most are of families as this build has confirmed them, or as the chunks have them now."""
    ours = (
        "select 1 from receipt where build = ? and family = ? and family_hash = ? "
        "union all select 1 from current where family = ? and family_hash = ?"
    )
    known = 0
    for found in sample:
        family = [found.parent_id, found.family_hash]
        known += session.state.db.execute(ours, [build_id, *family, *family]).fetchone() is not None
    return 2 * known > len(sample)
