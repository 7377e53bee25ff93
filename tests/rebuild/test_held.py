"""Missing or invalid partitions delete nothing: their families stay and all others are synced."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import Tombstone
from chunksink.rebuild.catalog import Catalog, HeldFamily, RetireReport
from chunksink.rebuild.errors import InvalidBus, NotMissing
from chunksink.rebuild.receipts import receipts_of_live
from chunksink.rebuild.schema import is_whole
from chunksink.rebuild.state import State
from tests.conftest import HEAVY
from tests.rebuild.conftest import OLD_A, OLD_B, OLD_C
from tests.support.bus import FEBRUARY, MARCH, commit, parent_of, projected, source
from tests.support.damage import DAMAGES, Damage, cut_off, damaged, lose_chunks, lose_manifest, take_away
from tests.support.home import CatalogProbe, Home, reasons
from tests.support.tampering import altered, lose, put, require_sound
from tests.support.watched_sinks import Calls, raising

pytestmark = pytest.mark.promise(6)

A, B, C, D = (parent_of(f"docs/{name}.md") for name in "abcd")


EVERY_DAMAGE = pytest.mark.parametrize("damage", DAMAGES)
# One makes the partition invalid, the other makes it missing.
SOME_DAMAGE = pytest.mark.parametrize("damage", DAMAGES if HEAVY else (cut_off, take_away))


@EVERY_DAMAGE
def test_families_of_a_held_partition_stay_and_others_are_synced(
    damage: Damage, root: FolderRoot, indexed: Home, tmp_path: Path
) -> None:
    put_back = damaged(root, "p2", damage)
    new_a, new_d = source("docs/a.md", "a, edited", version="2", at=FEBRUARY), source("docs/d.md", "d")
    commit(root, "p1", new_a)
    commit(root, "p3", new_d)
    calls = Calls()
    outcome = indexed.sync(wrap=calls)
    assert calls.sent("fts") == calls.sent("memory") == sorted([A, D])
    assert (outcome.families.added, outcome.families.changed, outcome.families.removed) == (1, 1, 0)
    wanted = projected(new_a, new_d, OLD_B, OLD_C)
    assert indexed.contents() == {"fts": wanted, "memory": wanted}
    state = "missing" if damage is take_away else "invalid"
    assert reasons(indexed) == {B: state, C: state}
    assert indexed.verify().ok, "held sources do not count as drift"
    with pytest.raises(InvalidBus, match="p2"):
        indexed.sync(strict=True)
    builds = indexed.builds()
    with pytest.raises(InvalidBus, match="p2"):
        indexed.rebuild()
    assert (indexed.builds(), indexed.unfinished()) == (builds, None), "no new build was created"
    assert indexed.contents() == {"fts": wanted, "memory": wanted}
    # It returns unchanged: nothing is written or held any more.
    put_back()
    calls.clear()
    indexed.sync(wrap=calls)
    assert (calls, reasons(indexed)) == ([], {})
    require_sound(indexed, tmp_path)


@SOME_DAMAGE
def test_documents_lost_by_the_engine_are_written_once_the_partition_returns(
    damage: Damage, root: FolderRoot, indexed: Home, tmp_path: Path
) -> None:
    put_back = damaged(root, "p2", damage)
    by_family = {each.parent_id: each for each in indexed.contents()["fts"]}
    b, c = by_family[B], by_family[C]
    lose(indexed, "fts", [b])
    put(indexed, "fts", [altered(c, text="something else")])
    for scan in (False, True):  # no run can write it, with or without a scan
        indexed.sync(scan=scan)
        with State.existing(indexed.folder) as state:
            missing = {sink: receipts.held_and_missing() for sink, receipts in receipts_of_live(state).items()}
        assert missing == {"fts": 1, "memory": 0}
        verified = indexed.verify()
        assert (verified.held, verified.ok) == (2, True)
    put_back()
    indexed.sync()
    require_sound(indexed, tmp_path)


@SOME_DAMAGE
def test_scan_accepts_the_confirmed_older_version(
    damage: Damage, root: FolderRoot, indexed: Home, tmp_path: Path
) -> None:
    commit(root, "p2", [*source("docs/b.md", "b, edited", version="2"), *OLD_C], at=FEBRUARY)
    with indexed.session() as session:
        session.refresh()
        session.reader.hash_families([B])
    put_back = damaged(root, "p2", damage)
    for _ in range(3):
        assert indexed.verify().ok
        indexed.sync(scan=True)
    put_back()
    indexed.sync()
    assert indexed.contents()["fts"] == projected(OLD_A, source("docs/b.md", "b, edited", version="2"), OLD_C)
    require_sound(indexed, tmp_path)


@pytest.mark.parametrize("damage", [cut_off, lose_chunks, lose_manifest])
def test_new_invalid_partition_withholds_removals(
    damage: Damage, root: FolderRoot, indexed: Home, tmp_path: Path
) -> None:
    commit(root, "p1", [])
    commit(root, "p3", source("docs/a.md", "a, moved", version="2", at=FEBRUARY))
    put_back = damaged(root, "p3", damage)
    assert indexed.sync().families.removed == 0
    assert "a" in {document.text for document in indexed.contents()["memory"]}
    put_back()
    indexed.sync()
    assert "a, moved" in {document.text for document in indexed.contents()["memory"]}
    require_sound(indexed, tmp_path)


def test_new_invalid_partition_that_disappears_is_forgotten(root: FolderRoot, indexed: Home) -> None:
    commit(root, "p3", source("docs/d.md", "d"))
    cut_off(root, "p3")
    indexed.sync()
    take_away(root, "p3")
    commit(root, "p1", [])
    assert indexed.sync().families.removed == 1
    with State.existing(indexed.folder) as state:
        assert (Catalog(state).missing_partitions(), Catalog(state).findings()) == ([], [])


def test_tombstone_of_a_missing_partition_still_counts(root: FolderRoot, home: Home) -> None:
    """The tombstone stays in the catalog, so the source does not return."""
    commit(root, "p1", [*OLD_A, *OLD_B])
    commit(root, "p2", [], at=FEBRUARY, tombstones=[Tombstone(parent_id=A)])
    home.rebuild()
    take_away(root, "p2")
    calls = Calls()
    home.sync(wrap=calls)
    assert calls == []
    assert home.contents()["fts"] == projected(OLD_B)


def test_newer_version_in_another_partition_is_held_too(root: FolderRoot, indexed: Home, tmp_path: Path) -> None:
    put_back = damaged(root, "p1", cut_off)
    commit(root, "p3", source("docs/a.md", "a, edited", version="2", at=FEBRUARY))
    calls = Calls()
    indexed.sync(wrap=calls)
    assert (calls, reasons(indexed)) == ([], {A: "invalid"})
    # The engine loses it while it is held, is scanned, and is repaired once the partition is valid.
    indexed.sync(scan=True)
    assert indexed.contents()["fts"] == projected(OLD_A, OLD_B, OLD_C)
    put_back()
    indexed.sync()
    assert "a, edited" in {document.text for document in indexed.contents()["fts"]}
    require_sound(indexed, tmp_path)


def test_retired_partition_removes_only_its_families(root: FolderRoot, indexed: Home, tmp_path: Path) -> None:
    commit(root, "p3", source("docs/c.md", "c, older", version="0", at="2025-01-01T00:00:00Z"))
    take_away(root, "p2")
    indexed.sync()
    assert reasons(indexed) == {B: "missing", C: "missing"}
    with State.existing(indexed.folder) as state:
        assert Catalog(state).retire(root, "p2").removed == 1, "c has an older version elsewhere"
    outcome = indexed.sync()
    assert (outcome.families.changed, outcome.families.removed) == (1, 1)
    assert {document.text for document in indexed.contents()["fts"]} == {"a", "c, older"}
    require_sound(indexed, tmp_path)


def test_only_a_known_missing_partition_can_be_retired(root: FolderRoot, probe: CatalogProbe) -> None:
    commit(root, "p1", OLD_A)
    commit(root, "p2", OLD_B, at=MARCH)
    probe.refresh()
    with pytest.raises(NotMissing, match="p1"):
        probe.catalog.retire(root, "p1")
    lose_chunks(root, "p1")
    with pytest.raises(NotMissing, match="p1"):
        probe.catalog.retire(root, "p1")
    take_away(root, "p2")
    probe.refresh()
    with pytest.raises(NotMissing, match=r"p9 .* p2$"):
        probe.catalog.retire(root, "p9")
    assert probe.catalog.retire(root, "p2") == RetireReport(removed=0, returning=0), "no index has it"
    assert probe.refresh().catalog.held() == [HeldFamily(A, "invalid", "partition p1 is invalid")]


@pytest.mark.parametrize("folder", ["canonical", "manifest"])
def test_link_to_itself_is_a_finding_about_its_partition(folder: str, root: FolderRoot, home: Home) -> None:
    commit(root, "good", source("docs/a.md", "a"))
    commit(root, "loop", source("docs/b.md", "b"))
    home.rebuild()
    path = root.chunks_file("loop") if folder == "canonical" else root.manifest_file("loop")
    path.unlink()
    path.symlink_to(path.name)
    commit(root, "good", source("docs/a.md", "edited", version="2", at=FEBRUARY), at=FEBRUARY)
    outcome = home.sync()
    assert (outcome.families.changed, outcome.families.removed) == (1, 0)
    assert {finding.partition for finding in home.findings} == {"loop"}


@pytest.mark.parametrize("name", ["canonical/my notes.jsonl", "manifest/my notes.manifest.json"])
def test_file_with_an_unusable_name_is_invalid_input(name: str, root: FolderRoot, home: Home) -> None:
    """Otherwise chunks would be left out silently."""
    commit(root, "p1", OLD_A)
    home.rebuild()
    live = home.live()
    (root.path / name).write_text("")
    with pytest.raises(InvalidBus, match=name):
        home.rebuild()
    assert home.live() == live
    home.sync()
    with State.existing(home.folder) as state:
        assert is_whole(state.db), "no partition is missing"
    (root.path / name).unlink()
    home.sync(strict=True)


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE])
def test_unreadable_partition_is_read_again(
    number: int, root: FolderRoot, indexed: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are unchanged. A lack of open files is not a finding: the run ends."""
    edited = source("docs/a.md", "a, edited", version="2", at=FEBRUARY)
    commit(root, "p1", edited)
    with monkeypatch.context() as patch:
        patch.setattr(FolderRoot, "open", raising(OSError(number, os.strerror(number), "p1")))
        if number == errno.EMFILE:
            with pytest.raises(OSError, match="Too many open files"):
                indexed.sync()
        else:
            indexed.sync()
        assert reasons(indexed) == ({} if number == errno.EMFILE else {A: "invalid"})
    indexed.sync()
    assert reasons(indexed) == {}
    assert indexed.contents()["fts"] == projected(edited, OLD_B, OLD_C)
