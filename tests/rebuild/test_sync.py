"""A sync writes what has changed, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.embeddings.encoder import Vectors
from chunksink.rebuild.errors import OtherPlan, UnknownPlan
from chunksink.rebuild.plan import FamilyCounts
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.state import State
from chunksink.sinks.errors import Unreachable
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import FEBRUARY, MARCH, commit, parent_of, projected, source
from tests.support.home import CatalogProbe, Home, PoisonedEncoder, each, sinks_with
from tests.support.tampering import require_sound
from tests.support.watched_sinks import Calls, Moment, watching

A, B, C, D, E = (parent_of(f"docs/{name}.md") for name in "abcde")
NOTHING = FamilyCounts()


@pytest.fixture
def synced(root: BusRoot, home: Home) -> Home:
    commit(root, "p1", [*source("docs/a.md", "a0", "a1"), *source("docs/b.md", "b0"), *source("docs/c.md", "c0", "c1")])
    commit(root, "p2", source("docs/d.md", "d0"))
    home.rebuild()
    home.encoder.asked.clear()
    return home


def move_on(root: BusRoot) -> list[list[object]]:
    """a: a text changed. b: only what is said about it. c: gone. d: as it was. e: new."""
    a = source("docs/a.md", "a0", "a1, edited", version="2", at=FEBRUARY)
    b = source("docs/b.md", "b0", metadata={"tags": ["seen"]})
    e = source("docs/e.md", "e0", "e1", at=FEBRUARY)
    commit(root, "p1", [*a, *b])
    commit(root, "p3", e, at=FEBRUARY)
    return [a, b, source("docs/d.md", "d0"), e]  # type: ignore[list-item]


def test_what_it_did_is_counted_by_what_became_of_each_source(root: BusRoot, synced: Home, tmp_path: Path) -> None:
    wanted = projected(*move_on(root))  # type: ignore[arg-type]
    calls = Calls()
    outcome = synced.sync(wrap=calls)
    assert outcome.families == FamilyCounts(added=1, changed=2, removed=1, unchanged=1, metadata_only=1)
    assert each(outcome, "families") == {"fts": outcome.families, "memory": outcome.families}
    assert (outcome.chunks_written, each(outcome, "written")) == (5, {"fts": 5, "memory": 5})
    # c's two chunks go, and a's two are replaced; b's stays under the texts that it has.
    assert (outcome.chunks_deleted, each(outcome, "deleted")) == (4, {"fts": 4, "memory": 4})
    assert sinks_with(outcome, "scanned") == []
    for sink in ("fts", "memory"):
        assert calls.sent(sink) == sorted([A, B, E])
        assert [families for name, call, families in calls if (name, call) == (sink, "delete")] == [{C}]
    assert synced.contents() == {"fts": wanted, "memory": wanted}
    assert sorted(synced.encoder.asked) == ["a1, edited", "e0", "e1"]
    require_sound(synced, tmp_path)


def test_where_nothing_changed_nothing_is_written_read_or_computed(synced: Home, opened_files: list[str]) -> None:
    for _ in range(2):
        calls = Calls()
        outcome = synced.sync(wrap=calls)
        assert calls == []
        assert outcome.families == FamilyCounts(unchanged=4)
        assert (outcome.chunks_written, sum(each(outcome, "written").values())) == (0, 0)
    assert (opened_files, synced.encoder.asked) == ([], [])


@pytest.mark.parametrize("how", ["rewritten", "moved", "copied"])
def test_chunks_that_stand_elsewhere_are_no_change(how: str, root: BusRoot, synced: Home) -> None:
    """Other lines, other places, other manifests: the index is a function of what the chunks say."""
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


def test_no_model_is_loaded_where_all_vectors_are_cached(root: BusRoot, synced: Home) -> None:
    class Unloadable(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            raise AssertionError(f"asked for {texts}")

    commit(root, "p2", source("docs/d.md", "a0", "c1", "b0", version="2"))
    synced.encoder = Unloadable(dimension=8)
    assert each(synced.sync(), "written") == {"fts": 3, "memory": 3}
    assert (synced.embedded.encoded, synced.embedded.reused) == (0, 3)
    assert synced.verify(deep=True).ok


def test_a_sink_that_fails_does_not_hinder_the_other_and_is_caught_up_with(
    root: BusRoot, synced: Home, tmp_path: Path
) -> None:
    move_on(root)

    def fail() -> None:
        raise Unreachable("memory went away")

    outcome = synced.sync(wrap=watching("memory", Moment("flush", 1, fail)))
    assert set(outcome.failed) == {"memory"}
    assert outcome.sinks["fts"].written == 5
    calls = Calls()
    outcome = synced.sync(wrap=calls)
    assert {name for name, _, _ in calls} == {"memory"}
    assert outcome.sinks["fts"].families == FamilyCounts(unchanged=4)
    assert outcome.failed == {}
    require_sound(synced, tmp_path)


def test_places_where_something_else_stands_are_taken_in_anew(synced: Home, tmp_path: Path) -> None:
    """Although the files are the ones that were read: it is the catalog that is wrong."""
    build = synced.live().builds["fts"]
    with State.existing(synced.folder) as state:
        with state.db.atomic():
            state.db.execute("update chunk set length = length - 9 where partition = 'p1'")
        Receipts(state.db, build).intend([A])
    calls = Calls()
    synced.sync(wrap=calls)
    assert calls.sent("fts") == [A]
    require_sound(synced, tmp_path)


def test_hashes_of_another_reading_are_not_noted(root: BusRoot, probe: CatalogProbe) -> None:
    """They were read before the partition was taken in anew, and come late."""
    commit(root, "p1", source("docs/a.md", "a"))
    (before,) = probe.refresh().catalog.families()
    commit(root, "p1", source("docs/a.md", "a, edited", version="2"))
    (now,) = probe.refresh().catalog.families()
    assert now.taken > before.taken
    probe.catalog.note_projected([(A, before.taken, "old hash", "old digest", "old texts")])
    assert noted(probe) == [(None, None, None)]
    probe.catalog.note_projected([(A, now.taken, "hash", "digest", "texts")])
    assert noted(probe) == [("hash", "digest", "texts")]
    commit(root, "p1", source("docs/a.md", "a, edited again", version="3"))
    assert noted(probe.refresh()) == [(None, None, None)]


def noted(probe: CatalogProbe) -> list[tuple[str | None, ...]]:
    return probe.state.db.execute("select family_hash, digest, texts from current").fetchall()


def test_a_plan_that_was_looked_at_is_carried_out_or_nothing(root: BusRoot, synced: Home, tmp_path: Path) -> None:
    move_on(root)
    looked_at = plan_of(synced)
    assert plan_of(synced) == looked_at
    commit(root, "p2", source("docs/d.md", "d0, edited", version="2"))
    before, calls = synced.contents(), Calls()
    for stale in (looked_at, looked_at[:12]):
        with pytest.raises(OtherPlan, match="nothing was written"):
            synced.sync(wrap=calls, only_plan=stale)
    with pytest.raises(UnknownPlan, match="nothing was written"):
        synced.sync(wrap=calls, only_plan=plan_of(synced)[:11])  # eleven digits name nothing
    assert calls == []
    assert synced.contents() == before
    synced.sync(only_plan=plan_of(synced)[:12])
    require_sound(synced, tmp_path)


def plan_of(home: Home) -> str:
    calls = Calls()
    digest = home.plan_sync(wrap=calls).hash
    assert calls == []
    assert digest is not None
    return digest


@pytest.mark.promise(7)
def test_a_refused_document_is_not_sent_again_until_it_changes(root: BusRoot, synced: Home) -> None:
    synced.encoder = PoisonedEncoder(dimension=8)
    bad, alone = source("docs/d.md", "d0", "poison", version="2"), source("docs/e.md", "poison too")
    commit(root, "p2", [*bad, *alone])
    poisoned = sorted(document.id for document in projected(bad, alone) if "poison" in document.text)
    synced.sync()
    assert synced.refused() == {"fts": [], "memory": poisoned}
    for options in ({}, {"scan": True}, {"scan": True}):
        calls = Calls()
        synced.sync(wrap=calls, **options)
        assert {call for _, call, _ in calls} <= {"scan"}, "refused it is, not missing"
        found = synced.verify()
        assert found.ok
        assert sorted(found.sinks["memory"].refused) == poisoned
    synced.encoder = HashEncoder(dimension=8)
    with State.existing(synced.folder) as state:
        assert Receipts(state.db, synced.live().builds["memory"]).retry_dead_letters() == 2
    synced.sync()
    assert synced.verify().sinks["memory"].refused == ()
    assert synced.contents()["memory"] == synced.contents()["fts"]
