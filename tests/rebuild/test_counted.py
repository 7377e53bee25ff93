"""What a run says that it did is what the engines have confirmed, not what was planned."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild import families, plan
from chunksink.rebuild.plan import FamilyCounts
from chunksink.rebuild.report import RunOutcome
from chunksink.sinks.contract import Sink
from chunksink.sinks.errors import Unreachable
from tests.support.bus import FEBRUARY, MARCH, commit, source
from tests.support.home import Home, PoisonedEncoder, each
from tests.support.watched_sinks import Moment, raising, watching

pytestmark = [pytest.mark.promise(2), pytest.mark.usefixtures("small_batches")]


@pytest.fixture
def changed(root: BusRoot, home: Home) -> Home:
    """Of five sources of two chunks two are edited, one gets another title, one goes and one stays; one is new."""
    commit(root, "p1", [record for name in "abcde" for record in source(f"docs/{name}.md", f"{name} 0", f"{name} 1")])
    home.rebuild()
    edited = [
        *source("docs/a.md", "a 0", "a, edited", version="2", at=FEBRUARY),
        *source("docs/b.md", "b 0", "b, edited", version="2", at=FEBRUARY),
        *source("docs/c.md", "c 0", "c 1", metadata={"title": "See"}),
        *source("docs/d.md", "d 0", "d 1"),
        *source("docs/f.md", "f 0", "f 1"),
    ]
    commit(root, "p1", edited, at=FEBRUARY)
    return home


def failing(*engines: str, call: str, number: int = 1) -> Callable[[Sink], Sink]:
    moments = {engine: Moment(call, number, raising(Unreachable("it went away"))) for engine in engines}
    return lambda sink: watching(sink.name, moments[sink.name])(sink) if sink.name in moments else sink


def chunks(outcome: RunOutcome) -> tuple[int, int]:
    return outcome.chunks_written, outcome.chunks_deleted


ALL = FamilyCounts(added=1, changed=3, removed=1, unchanged=1, metadata_only=1)


@pytest.mark.parametrize("call", ["replace", "flush"])
def test_what_no_engine_took_was_not_done(changed: Home, call: str) -> None:
    nothing = FamilyCounts(unchanged=1)
    for _ in range(2):  # the second time of what the first has begun
        outcome = changed.sync(wrap=failing("fts", "memory", call=call))
        assert (outcome.families, chunks(outcome)) == (nothing, (0, 0))
        assert each(outcome, "families") == {"fts": nothing, "memory": nothing}
        assert each(outcome, "deleted") == {"fts": 0, "memory": 0}
    assert chunks(changed.sync()) == (8, 6), "and what was left is counted by the run that does it"


def test_what_one_engine_took_counts(changed: Home) -> None:
    outcome = changed.sync(wrap=failing("fts", call="flush", number=2))
    assert (outcome.families, chunks(outcome)) == (ALL, (8, 6))
    part = outcome.sinks["fts"].families
    assert (part.added + part.changed, part.removed, part.unchanged) == (1, 0, 1)
    assert outcome.sinks["fts"].written == 2
    assert outcome.sinks["memory"].families == ALL
    again = changed.sync()
    assert again.sinks["memory"].families == FamilyCounts(unchanged=5)
    assert (again.families.added + again.families.changed, again.families.removed) == (3, 1)


def test_what_was_done_before_the_bus_moved_counts_too(
    root: BusRoot, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "_PAGE", 2)
    monkeypatch.setattr(families, "KEPT_DOCUMENTS", 0)

    def put(version: str) -> None:
        for number in range(12):
            commit(root, f"p{number}", source(f"docs/{number}.md", f"{version} {number}", version=version), at=FEBRUARY)

    def moving(version: str) -> Callable[[Sink], Sink]:
        new = source("docs/9.md", f"moved {version}", version=version)
        return watching("fts", Moment("replace", 2, lambda: commit(root, "p9", new, at=MARCH)))

    put("1")
    first = home.rebuild_outcome(wrap=moving("8"))
    assert (first.families, chunks(first)) == (FamilyCounts(added=12), (12, 0))
    assert each(first, "written") == {"fts": 12, "memory": 12}
    put("2")
    outcome = home.sync(wrap=moving("9"))
    assert (outcome.families, chunks(outcome)) == (FamilyCounts(changed=12), (12, 12))
    assert each(outcome, "families") == {"fts": FamilyCounts(changed=12), "memory": FamilyCounts(changed=12)}
    assert each(outcome, "deleted") == {"fts": 12, "memory": 12}
    put("3")
    outcome = home.sync(wrap=lambda sink: failing("memory", call="flush")(moving("8")(sink)))
    assert outcome.failed == {}, "what failed until then is tried again"


def test_a_refused_document_was_not_written(changed: Home) -> None:
    changed.sync()
    changed.encoder = PoisonedEncoder(dimension=8)
    commit(changed.root, "p2", source("docs/g.md", "poison"))
    outcome = changed.sync()
    assert outcome.sinks["memory"].families.added == 1, "of the source it is known"
    assert (outcome.sinks["memory"].written, outcome.sinks["fts"].written, chunks(outcome)) == (0, 1, (1, 0))
