"""Builds of this home that no record names: the records were lost.

What readers have is asked of the engines then, before anything takes its place; afterwards such builds are dropped.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress

from chunksink.rebuild.families import label_of
from chunksink.rebuild.flip import NotRemoved
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.session import Session
from chunksink.sinks.capabilities import SupportsPublicName, capability
from chunksink.sinks.contract import Build, Sink
from chunksink.sinks.errors import BuildBroken, BuildMissing, SinkError, WrongShape


def orphans(session: Session, sink: Sink) -> list[str]:
    """Builds that are ours and that no record names any more: the records were lost."""
    known = {build for generation in session.state.generations() for build in generation.builds.values()}
    return [build_id for build_id in sink.builds() if build_id not in known and _is_ours(session, sink, build_id)]


def drop_orphans(session: Session) -> list[NotRemoved]:
    """Nor is this anything to stop for: the flip has been made."""
    left: list[NotRemoved] = []
    for sink in session.sinks.values():
        found: list[str] = []
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


def _is_ours(session: Session, sink: Sink, build_id: str) -> bool:
    try:
        with closing(sink.open(build_id)) as build:
            return session.owns(build.marker())
    except (BuildMissing, BuildBroken, WrongShape):
        return False


def recall(session: Session, beside: Iterable[str] = ()) -> list[str]:
    """The builds that readers may have had, one of each sink, with receipts that say which families they hold; also of
    sinks `beside` those that the run writes, as far as they answer.

    Where a sink does not say which one it shows, that is the one that holds the most.
    """
    recalled = []
    for name in dict.fromkeys([*session.sinks, *beside]):
        excused = BuildBroken if name in session.sinks else SinkError  # nobody can tell what readers had there
        with suppress(excused):
            sink = session.sink(name)
            build_id = _most_likely(session, sink)
            if build_id is None:
                continue
            with (
                closing(sink.open(build_id)) as build,
                session.stage(f"scan {sink.name}", build.count(), "chunks") as bar,
            ):
                Receipts(session.state.db, build_id).recall(_found(build), bar.advance)
            recalled.append(build_id)
    return recalled


def _most_likely(session: Session, sink: Sink) -> str | None:
    counts = {build_id: _count(sink, build_id) for build_id in orphans(session, sink)}
    shown = _shown(sink)
    if shown in counts:
        return shown
    return max(counts, key=lambda build_id: (counts[build_id], build_id), default=None)


def _shown(sink: Sink) -> str | None:
    public = capability(sink, SupportsPublicName)
    marker = public.shown() if public is not None else None
    return None if marker is None else marker.build_id


def _count(sink: Sink, build_id: str) -> int:
    """-1 where that cannot be read: any other one tells more."""
    try:
        with closing(sink.open(build_id)) as build:
            return build.count()
    except BuildBroken:
        return -1


def _found(build: Build) -> Iterator[tuple[str, str]]:
    """Family and label of each document that is ours."""
    for stored in build.scan(content=True):
        if stored.parent_id:
            yield stored.parent_id, "" if stored.document is None else label_of(stored.document)
