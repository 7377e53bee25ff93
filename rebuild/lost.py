"""A home that lost its records: what its readers have is asked of the engines, before anything takes its place."""

from collections.abc import Callable, Iterator
from contextlib import closing

from rebuild.flip import strays
from rebuild.receipts import Receipts
from rebuild.records import label_of
from rebuild.work import Work
from sinks.sink import Build, Marker, Sink


def recall(work: Work) -> list[str]:
    """The builds that readers may have had, one of each sink, with receipts that say which families they hold.

    Where a sink does not say which one it shows, that is the one that holds the most.
    """
    recalled = []
    for sink in work.sinks.values():
        ours = strays(work, sink)
        if not ours:
            continue
        shown = _shown(sink)
        build_id = shown if shown in ours else max(ours, key=lambda each: (_count(sink, each), each))
        with closing(sink.open(build_id)) as build, work.stage(f"scan {sink.name}", build.count(), "chunks") as bar:
            Receipts(work.state.db, build_id).recall(_found(build), bar.advance)
        recalled.append(build_id)
    return recalled


def _shown(sink: Sink) -> str | None:
    shown: Callable[[], Marker | None] | None = getattr(sink, "shown", None)
    marker = shown() if shown is not None else None
    return None if marker is None else marker.build_id


def _count(sink: Sink, build_id: str) -> int:
    with closing(sink.open(build_id)) as build:
        return build.count()


def _found(build: Build) -> Iterator[tuple[str, str]]:
    """Family and label of each document that is ours."""
    for stored in build.scan(content=True):
        if stored.parent_id:
            yield stored.parent_id, "" if stored.document is None else label_of(stored.document)
