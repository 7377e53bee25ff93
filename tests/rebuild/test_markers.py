"""Each sync checks the engine's marker: whose index is it, and do the receipts describe it?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild.errors import OtherHome
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.state import State
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildBroken, BuildMissing
from chunksink.sinks.fts.sink import FILE
from tests.support.bus import FEBRUARY, commit, parent_of, projected, source
from tests.support.home import Home, each, sinks_with
from tests.support.memory_sink import MemorySink
from tests.support.tampering import live_build, lose, put, require_sound, sink_of
from tests.support.watched_sinks import Calls, Moment, raising, watching

pytestmark = pytest.mark.promise(4)

A, B = parent_of("docs/a.md"), parent_of("docs/b.md")
OURS = [source("docs/a.md", "a0", "a1"), source("docs/b.md", "b0"), source("docs/c.md", "c0")]


@pytest.fixture
def indexed(root: FolderRoot, home: Home) -> Home:
    commit(root, "p1", [record for records in OURS for record in records])
    home.rebuild()
    return home


def marker(home: Home, engine: str) -> Marker | None:
    with live_build(home, engine) as build:
        return build.marker()


def sign(home: Home, engine: str, **fields: object) -> None:
    ours = marker(home, engine)
    assert ours is not None
    with live_build(home, engine) as build:
        build.sign(replace(ours, **fields))  # type: ignore[arg-type]


def whose(marker: Marker | None) -> Marker | None:
    return None if marker is None else replace(marker, stamp="")


def repaired(home: Home, engine: str) -> Calls:
    """A sync that scans this engine, and another that has nothing left to do."""
    calls = Calls()
    assert sinks_with(home.sync(wrap=calls), "scanned")[:1] == [engine]
    again = Calls()
    assert sinks_with(home.sync(wrap=again), "scanned") == []
    assert again == []
    return calls


def test_build_of_another_home_is_refused_and_unchanged(indexed: Home, root: FolderRoot) -> None:
    sign(indexed, "fts", home_id="0" * 32)
    commit(root, "p2", source("docs/d.md", "d"))
    before, calls = indexed.contents(), Calls()
    for options in ({}, {"scan": True}):
        with pytest.raises(OtherHome, match="--adopt"):
            indexed.sync(wrap=calls, **options)
    verified = indexed.verify()
    assert {name: type(error) for name, error in verified.failed.items()} == {"fts": OtherHome}
    assert calls == []
    assert indexed.contents() == before
    assert marker(indexed, "fts").home_id == "0" * 32  # type: ignore[union-attr]


def test_adopted_build_is_scanned_signed_and_updated(indexed: Home, root: FolderRoot, tmp_path: Path) -> None:
    theirs = projected(source("docs/theirs.md", "theirs"))
    put(indexed, "fts", theirs)
    lose(indexed, "fts", projected(OURS[0])[:1])
    sign(indexed, "fts", home_id="0" * 32)
    assert sinks_with(indexed.sync(adopt=True), "scanned")[:1] == ["fts"]
    with State.existing(indexed.folder) as state:
        assert marker(indexed, "fts").home_id == state.home_id  # type: ignore[union-attr]
    require_sound(indexed, tmp_path)
    calls = Calls()
    indexed.sync(wrap=calls)
    assert calls == []


@pytest.mark.parametrize("fields", [{"build_id": "another"}, {"projection_version": 0}, {"stamp": "earlier"}])
def test_build_with_another_marker_is_scanned_and_signed(
    fields: dict[str, object], indexed: Home, tmp_path: Path
) -> None:
    """The name is the same, but the content is another build's, for example from an old copy."""
    (document,) = projected(OURS[1])
    put(indexed, "fts", [msgspec.structs.replace(document, text="what it said before", title="Old")])
    before = marker(indexed, "fts")
    sign(indexed, "fts", **fields)
    calls = repaired(indexed, "fts")
    assert whose(marker(indexed, "fts")) == whose(before)
    assert calls.sent("fts") == [B], "correct documents are not written again"
    require_sound(indexed, tmp_path)


@pytest.mark.parametrize("after", [False, True])
def test_run_that_ends_while_it_stamps_causes_no_scan(after: bool, indexed: Home, root: FolderRoot) -> None:
    commit(root, "p2", source("docs/new.md", "new"))
    with pytest.raises(KeyboardInterrupt):
        indexed.sync(wrap=watching("fts", Moment("sign", 1, raising(KeyboardInterrupt()), after=after)))
    assert sinks_with(indexed.sync(), "scanned") == []
    assert indexed.verify().ok


@pytest.mark.parametrize("drifted", [True, False])
def test_plan_does_not_write_to_the_engine(drifted: bool, indexed: Home, root: FolderRoot, tmp_path: Path) -> None:
    """The sync after it scans again, because an older copy of the build may have its present stamp."""
    if drifted:
        put(indexed, "fts", projected(source("docs/theirs.md", "theirs")))
    else:
        commit(root, "p2", source("docs/new.md", "new"))
        with pytest.raises(KeyboardInterrupt):
            indexed.sync(wrap=watching("fts", Moment("flush", 1, raising(KeyboardInterrupt()), after=True)))
        for path in (root.chunks_file("p2"), root.manifest_file("p2")):
            path.unlink()
    calls = Calls()
    planned = indexed.plan_sync(wrap=calls)
    assert {call for _, call, _ in calls} == {"scan"}
    assert indexed.plan_sync().hash == planned.hash
    assert "fts" in sinks_with(indexed.sync(plan_hash=planned.hash), "scanned")
    assert sinks_with(indexed.sync(), "scanned") == []
    if drifted:
        require_sound(indexed, tmp_path)


def test_lost_marker_is_written_again(indexed: Home, tmp_path: Path) -> None:
    sink = sink_of(indexed, "memory")
    assert isinstance(sink, MemorySink)
    before = marker(indexed, "memory")
    sink.content(indexed.live().builds["memory"]).marker = None
    verified = indexed.verify()
    assert not verified.ok, "searches do not use it so"
    assert isinstance(verified.failed["memory"], BuildBroken)
    calls = repaired(indexed, "memory")
    assert [call for _, call, _ in calls] == ["scan", "sign"], "nothing was wrong with its documents"
    assert whose(marker(indexed, "memory")) == whose(before)
    require_sound(indexed, tmp_path)


@pytest.mark.parametrize("lost", [True, False])
def test_build_with_an_unconfirmed_count_is_scanned_and_repaired(lost: bool, indexed: Home, tmp_path: Path) -> None:
    if lost:
        lose(indexed, "fts", projected(OURS[0])[:1])
    else:
        put(indexed, "fts", projected(source("docs/theirs.md", "theirs")))
    calls = repaired(indexed, "fts")
    assert calls.sent("fts") == ([A] if lost else [])
    assert lost != (("fts", "delete", frozenset([parent_of("docs/theirs.md")])) in calls)
    require_sound(indexed, tmp_path)


def test_missing_build_is_created_and_filled(indexed: Home, tmp_path: Path) -> None:
    before = indexed.live()
    indexed.encoder.asked.clear()
    sink_of(indexed, "memory").drop(before.builds["memory"])
    found = indexed.verify()
    assert (found.ok, type(found.failed["memory"])) == (False, BuildMissing)
    calls = Calls()
    outcome = indexed.sync(wrap=calls)
    assert ("memory", "create", frozenset()) in calls
    assert outcome.sinks["memory"].families.added == 3
    assert (indexed.live(), indexed.encoder.asked) == (before, [])
    assert {name for name, _, _ in calls} == {"memory"}
    calls.clear()
    indexed.sync(wrap=calls)
    assert calls == []
    require_sound(indexed, tmp_path)


def test_broken_build_is_reported_and_created_again_by_a_repair(
    indexed: Home, root: FolderRoot, tmp_path: Path
) -> None:
    file = indexed.folder / "fts" / indexed.live().builds["fts"] / FILE
    file.write_bytes(b"this is no database, whatever it is called" * 500)
    commit(root, "p2", source("docs/d.md", "d", at=FEBRUARY))
    outcome = indexed.sync()
    assert isinstance(outcome.failed["fts"], BuildBroken)
    assert each(outcome, "written") == {"fts": 0, "memory": 1}, "the other sink is synced"
    assert isinstance(indexed.verify().failed["fts"], BuildBroken)
    assert indexed.sync(scan=True).failed == {}
    require_sound(indexed, tmp_path)


def test_lost_receipts_are_restored_from_the_engine(indexed: Home, tmp_path: Path) -> None:
    with State.existing(indexed.folder) as state:
        for build in indexed.live().builds.values():
            Receipts(state.db, build).forget_all()
    calls = Calls()
    assert sorted(sinks_with(indexed.sync(wrap=calls), "scanned")) == ["fts", "memory"]
    assert {call for _, call, _ in calls} == {"scan", "sign"}
    calls.clear()
    indexed.sync(wrap=calls)
    assert calls == []
    require_sound(indexed, tmp_path)


def test_home_without_records_removes_its_former_builds(indexed: Home, tmp_path: Path) -> None:
    """The home's id still exists. A build of another home in the same place is not touched."""
    old = indexed.live().builds
    with live_build(indexed, "fts") as build:
        theirs = Marker("0" * 32, "fts-theirs", build.marker().projection_version)  # type: ignore[union-attr]
    sink = sink_of(indexed, "fts")
    sink.create(theirs).close()
    sink.close()
    indexed.lose_records()
    indexed.makers = indexed.makers[:1]  # a sink with a public name refuses what it does not know
    indexed.rebuild()
    assert indexed.builds() == {"fts": sorted([indexed.live().builds["fts"], "fts-theirs"])}
    assert old["fts"] not in indexed.builds()["fts"]
    require_sound(indexed, tmp_path)
