"""`chunksink retire-partition`: only missing partitions can be retired, and the sources in them may return."""

import pytest

from chunksink.chunkbus.manifest import Tombstone
from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell
from tests.support.bus import FEBRUARY, parent_of, source

A, B, C = source("a.md", "a cat", "a mat"), source("b.md", "a boat"), source("c.md", "a cow")


@pytest.fixture
def synced(quick_shell: Shell) -> Shell:
    """`b.md` is in both partitions."""
    return quick_shell.begin("to retire", "sync", p1=[A, B], p2=[B, C])


def test_retire_when_the_partition_exists_is_refused(synced: Shell) -> None:
    ended = synced("retire-partition", "p1")
    assert (ended.code, ended.out) == (Exit.USAGE, "")


def test_retire_restores_withdrawn_sources_of_other_partitions(synced: Shell) -> None:
    synced.commit("p3", at=FEBRUARY, tombstones=[Tombstone(parent_id=parent_of("a.md"))])
    assert synced("sync").code == Exit.OK
    assert synced.texts() == ["a boat", "a cow"]
    synced.remove("p3")
    ended = synced("retire-partition", "p3")
    assert (ended.code, "1 source" in ended.err) == (Exit.OK, True)
    assert synced("sync").code == Exit.OK
    assert synced.texts() == ["a boat", "a cat", "a cow", "a mat"]


def test_retire_restores_no_source_that_is_still_withdrawn_or_held(synced: Shell) -> None:
    for key in ("p3", "p4"):
        synced.commit(key, at=FEBRUARY, tombstones=[Tombstone(parent_id=parent_of("a.md"))])
    assert synced("sync").code == Exit.OK
    for key in ("p3", "p4", "p1"):
        synced.remove(key)
    for key in ("p3", "p4"):
        assert synced("retire-partition", key).err == ""
    assert synced("sync").code == Exit.INVALID_INPUT
    assert synced.texts() == ["a boat", "a cow"]
