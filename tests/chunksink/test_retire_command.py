"""`chunksink retire-partition`: only what is gone can be given up; what it had withdrawn may come back."""

import pytest

from chunksink.chunkbus.manifest import Tombstone
from chunksink.exits import Exit
from tests.chunksink.shell import Shell
from tests.support.bus import FEBRUARY, parent_of, source

A, B, C = source("a.md", "a cat", "a mat"), source("b.md", "a boat"), source("c.md", "a cow")


@pytest.fixture
def synced(quick_shell: Shell) -> Shell:
    """`b.md` stands in both partitions."""
    return quick_shell.begin("to retire", "sync", p1=[A, B], p2=[B, C])


def test_one_that_is_there_is_refused(synced: Shell) -> None:
    ended = synced("retire-partition", "p1")
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert "partition p1 is still in chunks: to empty it, write it again without chunks" in ended.err


def test_what_it_withdrew_comes_back_and_that_is_said(synced: Shell) -> None:
    synced.commit("p3", at=FEBRUARY, tombstones=[Tombstone(parent_id=parent_of("a.md"))])
    assert synced("sync").code == Exit.OK
    assert synced.texts() == ["a boat", "a cow"]
    synced.remove("p3")
    ended = synced("retire-partition", "p3")
    assert ended.out == "partition p3 is given up; the next sync removes 0 sources that only it held\n"
    assert ended.err == (
        "it brings back 1 source that this one had withdrawn and another partition holds: withdraw it there too\n"
    )
    assert synced("sync").code == Exit.OK
    assert synced.texts() == ["a boat", "a cat", "a cow", "a mat"]


def test_what_is_still_withdrawn_or_held_does_not_come_back(synced: Shell) -> None:
    for key in ("p3", "p4"):
        synced.commit(key, at=FEBRUARY, tombstones=[Tombstone(parent_id=parent_of("a.md"))])
    assert synced("sync").code == Exit.OK
    for key in ("p3", "p4", "p1"):
        synced.remove(key)
    for key in ("p3", "p4"):
        assert synced("retire-partition", key).err == ""
    assert synced("sync").code == Exit.INVALID_INPUT
    assert synced.texts() == ["a boat", "a cow"]
