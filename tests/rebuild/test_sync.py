"""A sync writes exactly what has changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild import families, plan
from chunksink.rebuild.plan import FamilyCounts
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.report import RunOutcome
from chunksink.rebuild.state import State
from chunksink.sinks.contract import Sink
from chunksink.sinks.errors import Unreachable
from chunksink.sinks.fts.sink import FILE
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import FEBRUARY, MARCH, commit, parent_of, projected, source
from tests.support.home import Home, PoisonedEncoder, each, sinks_with
from tests.support.local_engines import fts, memory
from tests.support.tampering import require_sound
from tests.support.watched_sinks import Calls, Moment, raising, watching

A, B, C, D, E = (parent_of(f"docs/{name}.md") for name in "abcde")


def failing(*engines: str, call: str, number: int = 1) -> Callable[[Sink], Sink]:
    moments = {engine: Moment(call, number, raising(Unreachable("it went away"))) for engine in engines}
    return lambda sink: watching(sink.name, moments[sink.name])(sink) if sink.name in moments else sink


def chunks(outcome: RunOutcome) -> tuple[int, int]:
    return outcome.chunks_written, outcome.chunks_deleted


@pytest.fixture
def synced(root: BusRoot, home: Home) -> Home:
    commit(root, "p1", [*source("docs/a.md", "a0", "a1"), *source("docs/b.md", "b0"), *source("docs/c.md", "c0", "c1")])
    commit(root, "p2", source("docs/d.md", "d0"))
    home.rebuild()
    home.encoder.asked.clear()
    return home


def move_on(root: BusRoot) -> list[list[object]]:
    """a: text changed. b: only metadata changed. c: removed. d: unchanged. e: new."""
    a = source("docs/a.md", "a0", "a1, edited", version="2", at=FEBRUARY)
    b = source("docs/b.md", "b0", metadata={"tags": ["seen"]})
    e = source("docs/e.md", "e0", "e1", at=FEBRUARY)
    commit(root, "p1", [*a, *b])
    commit(root, "p3", e, at=FEBRUARY)
    return [a, b, source("docs/d.md", "d0"), e]  # type: ignore[list-item]


def test_sync_counts_each_source_by_its_outcome(root: BusRoot, synced: Home, tmp_path: Path) -> None:
    wanted = projected(*move_on(root))  # type: ignore[arg-type]
    calls = Calls()
    outcome = synced.sync(wrap=calls)
    assert outcome.families == FamilyCounts(added=1, changed=2, removed=1, unchanged=1)
    assert each(outcome, "families") == {"fts": outcome.families, "memory": outcome.families}
    assert (outcome.chunks_written, each(outcome, "written")) == (5, {"fts": 5, "memory": 5})
    assert (outcome.chunks_deleted, each(outcome, "deleted")) == (2, {"fts": 2, "memory": 2}), "the chunks of c"
    assert sinks_with(outcome, "scanned") == []
    for sink in ("fts", "memory"):
        assert calls.sent(sink) == sorted([A, B, E])
        assert [families for name, call, families in calls if (name, call) == (sink, "delete")] == [{C}]
    assert synced.contents() == {"fts": wanted, "memory": wanted}
    assert sorted(synced.encoder.asked) == ["a1, edited", "e0", "e1"]
    require_sound(synced, tmp_path)


def test_sync_without_changes_writes_reads_and_computes_nothing(synced: Home, opened_files: list[str]) -> None:
    for _ in range(2):
        calls = Calls()
        outcome = synced.sync(wrap=calls)
        assert calls == []
        assert outcome.families == FamilyCounts(unchanged=4)
        assert (outcome.chunks_written, sum(each(outcome, "written").values())) == (0, 0)
    assert (opened_files, synced.encoder.asked) == ([], [])


@pytest.mark.parametrize("how", ["rewritten", "moved", "copied"])
def test_moved_chunks_are_no_change(how: str, root: BusRoot, synced: Home) -> None:
    """Lines, places and manifests may change: the index depends only on the chunks."""
    a, b, c = source("docs/a.md", "a0", "a1"), source("docs/b.md", "b0"), source("docs/c.md", "c0", "c1")
    if how == "rewritten":
        commit(root, "p1", [*c, *b, *a], at=MARCH)
    else:
        commit(root, "p9", a, at=FEBRUARY)
        commit(root, "p1", [*b, *c] if how == "moved" else [*a, *b, *c], at=FEBRUARY)
    calls = Calls()
    assert synced.sync(wrap=calls).families == FamilyCounts(unchanged=4)
    assert calls == []
    assert synced.verify().ok


def test_cached_vectors_are_not_computed(root: BusRoot, synced: Home) -> None:
    commit(root, "p2", source("docs/d.md", "a0", "c1", "b0", version="2"))
    assert each(synced.sync(), "written") == {"fts": 3, "memory": 3}
    assert (synced.encoder.asked, synced.embedded.reused) == ([], 3)
    assert synced.verify(deep=True).ok


def test_failing_sink_does_not_block_the_other_and_catches_up(root: BusRoot, synced: Home, tmp_path: Path) -> None:
    move_on(root)
    outcome = synced.sync(wrap=failing("memory", call="flush"))
    assert set(outcome.failed) == {"memory"}
    assert outcome.sinks["fts"].written == 5
    calls = Calls()
    outcome = synced.sync(wrap=calls)
    assert {name for name, _, _ in calls} == {"memory"}
    assert outcome.sinks["fts"].families == FamilyCounts(unchanged=4)
    assert outcome.failed == {}
    require_sound(synced, tmp_path)


def test_places_with_other_content_are_read_again(synced: Home, tmp_path: Path) -> None:
    """The files are unchanged, but the catalog is wrong."""
    build = synced.live().builds["fts"]
    with State.existing(synced.folder) as state:
        with state.db.atomic():
            of_p1 = "select id from chunk where partition = 'p1'"
            state.db.execute(f"update chunk_line set length = length - 9 where id in ({of_p1})")
        Receipts(state.db, build).intend([A])
    calls = Calls()
    synced.sync(wrap=calls)
    assert calls.sent("fts") == [A]
    require_sound(synced, tmp_path)


@pytest.mark.promise(7)
def test_refused_document_is_not_sent_again_until_it_changes(root: BusRoot, synced: Home) -> None:
    synced.encoder = PoisonedEncoder(dimension=8)
    bad, alone = source("docs/d.md", "d0", "poison", version="2"), source("docs/e.md", "poison too")
    commit(root, "p2", [*bad, *alone])
    poisoned = sorted(document.id for document in projected(bad, alone) if "poison" in document.text)
    synced.sync()
    assert synced.refused() == {"fts": [], "memory": poisoned}
    for options in ({}, {"scan": True}, {"scan": True}):
        calls = Calls()
        synced.sync(wrap=calls, **options)
        assert {call for _, call, _ in calls} <= {"scan"}, "it counts as refused, not as missing"
        found = synced.verify()
        assert found.ok
        assert sorted(found.sinks["memory"].refused) == poisoned
    synced.encoder = HashEncoder(dimension=8)
    with State.existing(synced.folder) as state:
        assert Receipts(state.db, synced.live().builds["memory"]).retry_dead_letters() == 2
    synced.sync()
    assert synced.verify().sinks["memory"].refused == ()
    assert synced.contents()["memory"] == synced.contents()["fts"]


# -- a run reports what the engines have confirmed, not what was planned


@pytest.fixture
def changed(root: BusRoot, home: Home, small_batches: None) -> Home:
    """Of five sources with two chunks each, two are edited, one gets another title, one is removed; one is new."""
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


ALL = FamilyCounts(added=1, changed=3, removed=1, unchanged=1)


@pytest.mark.parametrize("call", ["replace", "flush"])
def test_sources_taken_by_no_engine_are_not_counted(changed: Home, call: str) -> None:
    nothing = FamilyCounts(unchanged=1)
    for _ in range(2):  # the second time of what the first has begun
        outcome = changed.sync(wrap=failing("fts", "memory", call=call))
        assert (outcome.families, chunks(outcome)) == (nothing, (0, 0))
        assert each(outcome, "families") == {"fts": nothing, "memory": nothing}
        assert each(outcome, "deleted") == {"fts": 0, "memory": 0}
    assert chunks(changed.sync()) == (8, 2), "the rest is counted by the run that writes it"


def test_sources_taken_by_one_engine_are_counted(changed: Home) -> None:
    outcome = changed.sync(wrap=failing("fts", call="flush", number=2))
    assert (outcome.families, chunks(outcome)) == (ALL, (8, 2))
    part = outcome.sinks["fts"].families
    assert (part.added + part.changed, part.removed, part.unchanged) == (1, 0, 1)
    assert outcome.sinks["fts"].written == 2
    assert outcome.sinks["memory"].families == ALL
    again = changed.sync()
    assert again.sinks["memory"].families == FamilyCounts(unchanged=5)
    assert (again.families.added + again.families.changed, again.families.removed) == (3, 1)


def test_work_done_before_the_bus_moved_is_counted(
    root: BusRoot, home: Home, monkeypatch: pytest.MonkeyPatch, small_batches: None
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
    assert (outcome.families, chunks(outcome)) == (FamilyCounts(changed=12), (12, 0))
    assert each(outcome, "families") == {"fts": FamilyCounts(changed=12), "memory": FamilyCounts(changed=12)}
    assert each(outcome, "deleted") == {"fts": 0, "memory": 0}
    put("3")
    outcome = home.sync(wrap=lambda sink: failing("memory", call="flush")(moving("8")(sink)))
    assert outcome.failed == {}, "failed sinks are tried again"


def test_refused_document_is_not_counted_as_written(changed: Home) -> None:
    changed.sync()
    changed.encoder = PoisonedEncoder(dimension=8)
    commit(changed.root, "p2", source("docs/g.md", "poison"))
    outcome = changed.sync()
    assert outcome.sinks["memory"].families.added == 1, "the source's refusal is recorded"
    assert (outcome.sinks["memory"].written, outcome.sinks["fts"].written, chunks(outcome)) == (0, 1, (1, 0))


def test_home_of_an_earlier_version_is_updated(tmp_path: Path, root: BusRoot) -> None:
    """Its keyword index has another layout."""
    home = Home(tmp_path / "home", root, fts, memory())
    commit(root, "p1", source("docs/a.md", "a", "b"))
    home.rebuild()
    (index,) = home.folder.glob(f"*/*/{FILE}")
    with closing(sqlite3.connect(index, isolation_level=None)) as other:
        other.execute("PRAGMA user_version = 2")
    assert "fts" in home.plan_sync().empty
    assert sinks_with(home.sync(), "made_again") == ["fts"]
    assert home.verify().ok
