"""Builds of this home that no record names: the records were lost, and nobody reads them."""

from contextlib import closing, suppress

from chunksink.rebuild.flip import NotRemoved
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.work import Work
from chunksink.sinks.contract import Sink
from chunksink.sinks.errors import BuildBroken, BuildMissing, SinkError, WrongShape


def strays(work: Work, sink: Sink) -> list[str]:
    """Builds that are ours and that no record names any more: the records were lost."""
    known = {build for generation in work.state.generations() for build in generation.builds.values()}
    return [build_id for build_id in sink.builds() if build_id not in known and _is_ours(work, sink, build_id)]


def drop_strays(work: Work) -> list[NotRemoved]:
    """Nor is this anything to stop for: the flip has been made."""
    left: list[NotRemoved] = []
    for sink in work.sinks.values():
        found: list[str] = []
        with suppress(SinkError):  # a later rebuild looks again
            found = strays(work, sink)
        for build_id in found:
            try:
                sink.drop(build_id)
            except SinkError as error:
                left.append(NotRemoved(sink.name, build_id, str(error)))
            else:
                Receipts(work.state.db, build_id).forget_all()
    return left


def _is_ours(work: Work, sink: Sink, build_id: str) -> bool:
    try:
        with closing(sink.open(build_id)) as build:
            return work.owns(build.marker())
    except (BuildMissing, BuildBroken, WrongShape):
        return False
