"""A home recognises chunks that its index was not made from."""

import shutil

import pytest

from chunksink.command_line.commands import sync
from chunksink.command_line.exits import Exit
from chunksink.index import Index
from chunksink.rebuild.errors import OtherHome
from chunksink.rebuild.state import State
from tests.chunksink.shell import Shell
from tests.support.bus import commit, source

A, B, C = source("a.md", "a cat", "a mat"), source("b.md", "a boat"), source("c.md", "a cow")


@pytest.fixture
def replaced(quick_shell: Shell) -> Shell:
    """An index of the partitions p1 and p2, and other chunks at the same place."""
    quick_shell.begin("of another bus", "sync", p1=[A], p2=[B])
    shutil.rmtree(quick_shell.root.path)
    quick_shell.commit("q1", C)
    return quick_shell


@pytest.mark.parametrize("command", ["plan", "sync", "sync --dry-run", "sync --watch", "rebuild", "verify"])
def test_bus_without_any_known_partition_is_refused_before_it_is_read(
    command: str, replaced: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "_sleep", lambda _seconds: pytest.fail("the watch goes on"))
    ended = replaced(*command.split())
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    for named in (f"{replaced.root.path} has", "2 partitions", "--chunks", "--home", "retire-partition"):
        assert named in ended.err
    with State.existing(replaced.home) as state:
        assert state.db.execute("select key from partition order by key").fetchall() == [("p1",), ("p2",)]


def test_watch_ends_after_another_home_has_taken_over_the_index(
    quick_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def displaced(*_: object, **__: object) -> None:
        raise OtherHome("made by another home")

    synced = quick_shell.synced(p1=[A])
    monkeypatch.setattr(Index, "sync", displaced)
    monkeypatch.setattr(sync, "_sleep", lambda _seconds: pytest.fail("the watch goes on"))
    assert synced("sync", "--watch").code == Exit.USAGE


def test_replaced_partitions_are_read_after_the_old_ones_were_retired(replaced: Shell) -> None:
    for key in ("p1", "p2"):
        assert replaced("retire-partition", key).code == Exit.OK
    assert replaced("sync").code == Exit.OK
    assert replaced.texts() == ["a cow"]


def test_bus_of_the_same_partitions_at_another_place_is_noted_once(quick_shell: Shell) -> None:
    synced = quick_shell.synced(p1=[A])
    assert synced("sync").err == ""
    synced.root.path.rename(synced.folder / "moved")
    other = ("sync", "--chunks", "moved")
    assert synced(*other, "--json").err == ""
    synced("sync", "--chunks", str(synced.folder / "moved"))
    shutil.copytree(synced.folder / "moved", synced.root.path)
    noted = synced("sync")
    assert noted.code == Exit.OK
    for place in ("moved", "chunks"):
        assert str(synced.folder / place) in noted.err
    assert synced("sync").err == ""


def test_new_index_is_noted_with_its_place(quick_shell: Shell) -> None:
    commit(quick_shell.root, "p1", A)
    assert quick_shell("plan").err == ""
    assert str(quick_shell.home) in quick_shell("sync").err
    assert quick_shell("sync").err == ""
    assert str(quick_shell.folder / "other") in quick_shell("rebuild", "--home", "other").err
    assert quick_shell("sync", "--home", "third", "--json").err == ""
    assert "creating a new index" not in quick_shell("sync", "--home", "fourth", "--chunks", "nowhere").err
