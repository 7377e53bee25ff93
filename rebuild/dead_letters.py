"""Documents of the live generation that engines refused: listed, and marked to be sent again."""

from collections.abc import Sequence
from dataclasses import dataclass

from chunksink.rebuild.errors import RebuildError
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.state import State


class UnknownSink(RebuildError):
    """The live generation has no build in a sink of this name."""


@dataclass(frozen=True)
class Letter:
    """A document that a sink is without, and why."""

    sink: str
    id: str
    family: str
    source: str
    """What people call its family; empty where that is not known."""
    reason: str
    at: str


def letters(state: State, sink: str | None = None, limit: int = -1) -> list[Letter]:
    """Of one sink or of all, at most so many of each."""
    found: list[Letter] = []
    for name, build in _builds(state, sink):
        rows = state.db.execute(
            "select d.id, d.family, coalesce(r.label, ''), d.reason, d.at from dead_letter d "
            "left join receipt r on r.build = d.build and r.family = d.family where d.build = ? order by d.id limit ?",
            [build, limit],
        )
        found += [Letter(name, *row) for row in rows]
    return found


def count(state: State, sink: str | None = None) -> int:
    builds = [build for _, build in _builds(state, sink)]
    marks = ", ".join("?" * len(builds))
    return int(state.db.execute(f"select count(*) from dead_letter where build in ({marks})", builds).fetchone()[0])


def retry(state: State, sink: str | None = None) -> dict[str, int]:
    """The next sync sends them again; how many wait for it, by sink. The caller holds the writer's lock."""
    return {name: Receipts(state.db, build).retry_dead_letters() for name, build in _builds(state, sink)}


def _builds(state: State, sink: str | None) -> Sequence[tuple[str, str]]:
    builds = state.live().builds
    if sink is not None and sink not in builds:
        raise UnknownSink(f"the live index is in {', '.join(builds)}; there is no sink {sink!r:.100} in it")
    return [(name, build) for name, build in builds.items() if sink in (None, name)]
