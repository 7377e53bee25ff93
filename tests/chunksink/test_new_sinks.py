"""What a sync reports of a sink that is new in the configuration."""

import pytest

from chunksink.exits import Exit
from chunksink.rebuild.locks import RebuildLock
from chunksink.sinks.jsonl import JsonlBuild
from tests.chunksink.shell import Models, Shell
from tests.support.bus import source

TAKE = RebuildLock.__call__

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


def test_what_a_new_sink_took_is_reported(shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who watches the costs reads it there: documents written, vectors computed; and the model is loaded once."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    shell.synced(p1=[A], p2=[B])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chroma,jsonl")
    shell.commit("p3", source("c.md", "a ship"))
    models.asked()
    models.loaded.clear()
    report = shell("sync", "--json").json
    assert len(models.asked()) == report["embeddings"]["computed"] == 4
    assert len(models.loaded) == 1
    assert (report["chunks"]["written"], report["families"]["added"], report["families"]["unchanged"]) == (4, 1, 2)
    took = {
        name: (sink["built"], sink["written"], sink["families"]["added"], sink["families"]["unchanged"])
        for name, sink in report["sinks"].items()
    }
    assert took == {"fts": (False, 1, 1, 2), "chroma": (True, 4, 3, 0), "jsonl": (True, 4, 3, 0)}
    assert shell("runs", "--json").json[0]["facts"]["chunks"]["written"] == 4
    assert not any(sink["built"] for sink in shell("sync", "--json").json["sinks"].values())


def test_a_new_sink_is_told_with_what_it_took(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    shell.synced(p1=[A])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    ended = shell("sync")
    assert ended.code == Exit.OK
    assert "1 source unchanged (2 chunks written)" in ended.out
    assert "jsonl is new: 2 chunks written\n" in ended.out


@pytest.fixture
def added(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """fts is live, jsonl is new; a source came since."""
    quick_shell.synced(p1=[A])
    quick_shell.commit("p2", B)
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    return quick_shell


def test_a_new_sink_that_does_not_hold_what_it_was_sent_is_told_and_the_others_sync(
    added: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(JsonlBuild, "scan", lambda _build, **_asked: iter(()))
        ended = added("sync", "--json")
    assert (ended.code, ended.json["status"], ended.json["families"]["added"]) == (Exit.ENGINE, "failed", 1)
    assert ended.json["sinks"]["jsonl"]["error"].startswith("jsonl holds something else than it was sent: missing ")
    assert added.texts() == ["a boat", "a cat", "a mat"]
    assert added("sync").code == Exit.OK


def test_a_new_sink_waits_for_a_rebuild_under_way_and_the_others_sync(
    added: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, RebuildLock(added.home)():
        patched.setattr(RebuildLock, "__call__", lambda lock: TAKE(lock, 0.1))
        ended = added("sync")
    assert (ended.code, added.texts()) == (Exit.ENGINE, ["a boat", "a cat", "a mat"])
    assert "synced fts: 1 source added" in ended.out
    assert "jsonl is not up to date: another run is building in " in ended.err
    assert added("sync").code == Exit.OK
    assert added.texts("jsonl") == ["a boat", "a cat", "a mat"]
