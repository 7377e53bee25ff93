"""Decides which builds belong to this home: by markers, records or, without a marker, by the content and its receipts.

A sink's public name is changed only if it shows a build of this home or one that may be adopted. If this home lost its
records, the check against large removals (`removals.brake`) has nothing to compare with. So a rebuild first scans one
build of this home in each sink: the one that the public name shows, else the largest.
"""

from collections.abc import Iterable
from contextlib import closing, suppress
from itertools import islice

from chunksink.rebuild.errors import OtherHome
from chunksink.rebuild.scan import Scan
from chunksink.rebuild.schema import exists
from chunksink.rebuild.session import Session
from chunksink.sinks.capabilities import RENAME_ADVICE, SupportsPublicName, capability
from chunksink.sinks.contract import Build, Sink
from chunksink.sinks.errors import BuildBroken, BuildMissing, Refused, SinkError

_SAMPLE = 1000
"""Documents by which a build without its marker is recognised."""


def require_ours(session: Session, sinks: Iterable[str], *, adopt: bool, sign: bool = False) -> None:
    """Raises OtherHome if this home may not replace what these sinks show. With `sign`, a lost marker is restored."""
    for name in sinks:
        shown_build(session, session.sink(name), adopt=adopt, sign=sign)


def require_our_build(session: Session, sink: Sink, build: Build, *, adopt: bool) -> None:
    """Raises OtherHome if the live build, or the build under the sink's public name, belongs to another home."""
    marker = build.marker()
    if marker is not None and not session.owns(marker) and not adopt:
        raise OtherHome(
            f"the live build in {sink.name} was made by another home ({marker.home_id:.12}...), not by "
            f"{session.state.home}; nothing was written. To take it over, use --adopt"
        )
    require_ours(session, [sink.name], adopt=adopt)


def is_shown(session: Session, sink: Sink, build_id: str) -> bool:
    """Whether other programs find the build under the sink's public name. Also True if that name shows another home's
    build: `require_our_build` reports that case."""
    public = capability(sink, SupportsPublicName)
    if public is None:
        return True
    try:
        marker = public.shown()
    except Refused:
        return False
    return marker is not None and (marker.build_id == build_id or not session.owns(marker))


def shown_build(session: Session, sink: Sink, *, adopt: bool, sign: bool = False) -> str | None:
    """The build under the sink's public name, after checking that this home may replace it. Raises OtherHome if not,
    judging by the records, the build's marker or, without a marker, its content."""
    recorded = session.state.public_builds().get(sink.name)
    public = capability(sink, SupportsPublicName)
    marker = public.shown() if public is not None else None
    if marker is None:
        if public is not None and recorded is not None:
            _check_unmarked(session, sink, recorded, adopt=adopt, sign=sign)
        return recorded
    if marker.build_id == recorded:
        return recorded
    if not session.owns(marker) and not adopt:
        raise OtherHome(
            f"the public index in {sink.name} was made by another home ({marker.home_id:.12}...), not by "
            f"{session.state.home}, and was not changed. To keep both, {RENAME_ADVICE}; to replace it, use --adopt"
        )
    return marker.build_id


def _check_unmarked(session: Session, sink: Sink, recorded: str, *, adopt: bool, sign: bool) -> None:
    """Called if the public name shows no build with a marker.

    Raises OtherHome if the recorded build has documents but no marker, unless `adopt` is set or most of a sample of its
    documents belong to sources with a receipt for this build.
    """
    db = session.state.db
    if recorded in sink.builds():  # Meilisearch lists only builds with a marker
        return
    try:
        build = sink.open(recorded)
    except (BuildMissing, BuildBroken):
        return
    with closing(build):
        sample = list(islice(build.scan(), _SAMPLE))
        if not sample:  # left by a killed run
            return
        ours = "receipt where build = ? and family = ?"
        confirmed = sum(exists(db, ours, [recorded, stored.parent_id]) for stored in sample)
        if not adopt and 2 * confirmed <= len(sample):
            raise OtherHome(
                f"the public index in {sink.name} has lost its marker, and most of its content is unknown to "
                f"{session.state.home}; the index was not changed. To take it over, run `chunksink sync --adopt`; else "
                f"{RENAME_ADVICE}"
            )
        if sign:
            build.sign(session.marker(recorded))


def orphans(session: Session, sink: Sink) -> dict[str, int]:
    """Builds of this home without a record, because records were lost, with their numbers of documents; -1 if the
    number cannot be read."""
    recorded = {build for generation in session.state.generations() for build in generation.builds.values()}
    counts: dict[str, int] = {}
    for build_id in sink.builds():
        if build_id in recorded:
            continue
        with suppress(BuildMissing, BuildBroken), closing(sink.open(build_id)) as build:
            if session.owns(build.marker()):
                counts[build_id] = -1
                counts[build_id] = build.count()
    return counts


def recover_receipts(session: Session, others: Iterable[str]) -> list[str]:
    """After the records were lost: make receipts for one build of each sink, and return the ids of these builds.
    `others` are sinks that this run does not write; those that do not answer are left out."""
    session.refresh()
    recovered = []
    for name in dict.fromkeys([*session.sinks, *others]):
        ignored = BuildBroken if name in session.sinks else SinkError  # its builds then stay unknown
        with suppress(ignored):
            sink = session.sink(name)
            build_id = _most_likely(session, sink)
            if build_id is None:
                continue
            with closing(sink.open(build_id)) as build:
                scan = Scan(session.state.db, build, build_id, session.reader)
                with session.timed(f"scan {sink.name}", build.count(), "chunks") as advance:
                    scan.run(advance)
                scan.make_receipts()
            recovered.append(build_id)
    return recovered


def _most_likely(session: Session, sink: Sink) -> str | None:
    """Of the unrecorded builds of this home, the one that the public name shows, else the largest."""
    counts = orphans(session, sink)
    public = capability(sink, SupportsPublicName)
    marker = public.shown() if public is not None else None
    if marker is not None and marker.build_id in counts:
        return marker.build_id
    return max(counts, key=lambda build_id: (counts[build_id], build_id), default=None)
