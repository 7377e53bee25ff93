"""After an open intent the engine's state of a family is unknown, regardless of the receipt."""

from __future__ import annotations

from pathlib import Path

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild.plan import FamilyCounts
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.state import State
from chunksink.sinks.chroma import handle
from chunksink.sinks.fts.sink import FILE
from tests.support.bus import FEBRUARY, commit, parent_of, projected, source
from tests.support.damage import Damage, cut_off, damaged, take_away
from tests.support.home import Home, each, sinks_with
from tests.support.local_engines import chroma, fts
from tests.support.tampering import lose, require_sound
from tests.support.watched_sinks import Calls, Moment, raising, watching

pytestmark = [pytest.mark.promise(4), pytest.mark.promise(2)]

A, B = parent_of("docs/a.md"), parent_of("docs/b.md")
KEPT = source("docs/a.md", "a")


@pytest.fixture
def home(tmp_path: Path, root: BusRoot) -> Home:
    home = Home(tmp_path / "home", root, fts, chroma)
    commit(root, "p1", KEPT)
    home.rebuild()
    return home


def intents(home: Home) -> set[tuple[str, str]]:
    """Sink and family."""
    with State.existing(home.folder) as state:
        rows = state.db.execute("select build, family from intent").fetchall()
    return {(build.partition("-")[0], family) for build, family in rows}


def dies(home: Home, call: str, *, after: bool, engine: str = "chroma") -> None:
    """A sync that is killed at the first such call."""
    with pytest.raises(KeyboardInterrupt):
        home.sync(wrap=watching(engine, Moment(call, 1, raising(KeyboardInterrupt()), after=after)))


EDITED = source("docs/a.md", "a, edited", version="2", at=FEBRUARY)
ADDED = source("docs/b.md", "b0", "b1")


def test_verify_after_a_kill_finds_only_what_the_next_sync_writes(home: Home) -> None:
    commit(home.root, "p1", [*EDITED, *ADDED])
    dies(home, "flush", after=False)
    assert intents(home) == {("chroma", A), ("chroma", B)}
    assert (home.verify().status, home.verify().drifted) == ("behind", {})
    home.sync()
    assert home.verify().status == "ok"


def test_verify_after_a_kill_still_finds_drift(home: Home) -> None:
    commit(home.root, "p1", [*KEPT, *ADDED])
    home.sync()
    commit(home.root, "p1", [*EDITED, *ADDED])
    dies(home, "flush", after=True)
    lose(home, "chroma", projected(ADDED)[:1])
    assert home.verify().drifted.keys() == {"chroma"}


EDITS = {
    "added": (KEPT, [*KEPT, *ADDED], "replace", B, "delete"),
    "replaced": (KEPT, EDITED, "replace", A, "replace"),
    "removed": ([*KEPT, *ADDED], KEPT, "delete", B, "replace"),
}
MOMENTS = [(False, False), (True, False), (True, True)]
CUT_OFF = [
    pytest.param(*MOMENTS[moment], *edit, id=f"{name}-{moment}")
    for name, edit in EDITS.items()
    for moment in range(len(MOMENTS))
]


@pytest.mark.parametrize(("is_flushing", "after", "before", "edit", "call", "family", "undone_by"), CUT_OFF)
def test_edit_killed_and_undone_is_undone_in_the_engine(
    before: list[Record],
    edit: list[Record],
    call: str,
    family: str,
    undone_by: str,
    is_flushing: bool,
    after: bool,
    home: Home,
    tmp_path: Path,
) -> None:
    """The receipt claims success, but describes the version before."""
    commit(home.root, "p1", before)
    home.sync()
    commit(home.root, "p1", edit)
    dies(home, "flush" if is_flushing else call, after=after)
    assert ("chroma", family) in intents(home)
    commit(home.root, "p1", before)
    calls = Calls()
    outcome = home.sync(wrap=calls)
    done = [(what, families) for sink, what, families in calls if sink == "chroma" and what in ("replace", "delete")]
    assert done == [(undone_by, {family})]
    assert sinks_with(outcome, "scanned") == [], "the intents named the families"
    assert intents(home) == set()
    require_sound(home, tmp_path)


def test_open_intent_is_closed_by_writing_despite_the_receipt(home: Home) -> None:
    with State.existing(home.folder) as state:
        Receipts(state.db, home.live().builds["chroma"]).intend([A])
    calls = Calls()
    outcome = home.sync(wrap=calls)
    assert [call for call in calls if call[1] != "sign"] == [("chroma", "replace", frozenset({A}))]
    assert each(outcome, "families") == {"fts": FamilyCounts(unchanged=1), "chroma": FamilyCounts(changed=1)}
    assert intents(home) == set()
    calls.clear()
    home.sync(wrap=calls)
    assert calls == []


def test_intents_are_committed_before_the_engine_is_called(home: Home) -> None:
    commit(home.root, "p2", source("docs/b.md", "b"))
    seen: list[set[tuple[str, str]]] = []
    home.sync(wrap=watching("chroma", Moment("replace", 1, lambda: seen.append(intents(home)))))
    commit(home.root, "p2", [])
    home.sync(wrap=watching("chroma", Moment("delete", 1, lambda: seen.append(intents(home)))))
    assert [("chroma", B) in found for found in seen] == [True, True]


@pytest.mark.parametrize("damage", [cut_off, take_away])
def test_intent_of_a_held_family_is_closed_by_a_scan(damage: Damage, home: Home, tmp_path: Path) -> None:
    """It stays unchanged and does not block the others. Documents that the engine loses meanwhile are reported."""
    records = source("docs/b.md", "b0", "b1")
    commit(home.root, "p2", records)
    dies(home, "flush", after=True)
    put_back = damaged(home.root, "p2", damage)
    commit(home.root, "p1", source("docs/a.md", "a, edited", version="2", at=FEBRUARY))
    calls = Calls()
    home.sync(wrap=calls)
    assert calls.sent("chroma") == [A]
    assert ("chroma", "scan", frozenset()) in calls
    assert intents(home) == set()
    lose(home, "chroma", [document for document in home.contents()["chroma"] if document.parent_id == A])
    calls.clear()
    home.sync(wrap=calls)
    assert calls.sent("chroma") == [A]
    put_back()
    calls.clear()
    home.sync(wrap=calls)
    assert calls.sent("chroma") == [], "it was written completely before the kill"
    require_sound(home, tmp_path)


def test_build_broken_while_written_is_created_again_by_the_next_run(home: Home, tmp_path: Path) -> None:
    """Embedded Chroma saves its vectors in place: a kill leaves files that do not fit together. If no run was
    writing, the build is reported as broken (`test_markers`)."""
    file = home.folder / "fts" / home.live().builds["fts"] / FILE
    commit(home.root, "p2", source("docs/b.md", "b0", "b1"))
    dies(home, "replace", after=False, engine="fts")
    file.write_bytes(b"half of what it was" * 500)
    looked = home.plan_sync()
    assert looked.empty == {"fts": "its build broke while it was written; a sync writes all of it again"}
    outcome = home.sync(plan_hash=looked.hash)
    assert (sinks_with(outcome, "made_again"), outcome.failed) == (["fts"], {})
    require_sound(home, tmp_path)


def test_half_saved_vectors_are_created_again_after_a_kill(
    embedded_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle, "GRAPH", {"space": "cosine", "batch_size": 2, "sync_threshold": 2})
    commit(embedded_home.root, "p1", source("docs/a.md", "a0", "a1", "a2"))
    embedded_home.rebuild()
    commit(embedded_home.root, "p2", source("docs/b.md", "b0", "b1"))
    dies(embedded_home, "flush", after=False, engine="chroma")
    [saved] = (embedded_home.folder / "chroma" / embedded_home.live().builds["chroma"]).glob("*/length.bin")
    saved.write_bytes(saved.read_bytes()[:-4])
    before = list(embedded_home.encoder.asked)
    assert sinks_with(embedded_home.sync(), "made_again") == ["chroma"]
    assert embedded_home.encoder.asked == before, "what was computed is in the cache"
    assert embedded_home.verify(deep=True).ok
    require_sound(embedded_home, tmp_path)
