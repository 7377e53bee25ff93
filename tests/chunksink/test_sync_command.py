"""`chunksink sync`: what it writes, what it tells, and that it does nothing twice."""

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Models, Shell
from tests.support.bus import source

A, B, C = source("a.md", "a cat", "a mat"), source("b.md", "a boat"), source("c.md", "a cow")


@pytest.fixture
def synced(shell: Shell, models: Models) -> Shell:
    """Three sources in two partitions, and nobody has been asked anything since."""
    shell.begin("synced", "sync", p1=[A, B], p2=[C])
    models.asked()
    models.loaded.clear()
    return shell


def test_a_second_sync_writes_nothing_and_loads_no_model(synced: Shell, models: Models) -> None:
    before = synced.files()
    ended = synced("sync", "--json")
    assert (ended.code, ended.json["status"], ended.err) == (Exit.OK, "ok", "")
    families = {name: number for name, number in ended.json["families"].items() if number}
    assert families == {"unchanged": 3}
    assert ended.json["chunks"] == {"written": 0, "deleted": 0}
    assert all((sink["written"], sink["deleted"], sink["scanned"]) == (0, 0, False) for sink in sinks(ended.json))
    assert models.loaded == []
    assert synced.files() == before
    assert "synced fts, chroma: 3 sources unchanged, in " in synced("sync").out


def test_a_bus_without_chunks_makes_an_empty_index(shell: Shell) -> None:
    shell.commit("p1")
    assert shell("sync").out.startswith("synced fts, chroma: no sources, in ")
    assert shell("verify").code == Exit.OK
    shell.commit("p1", A)
    assert "1 source added" in shell("sync").out


def sinks(report: dict[str, dict[str, dict[str, object]]]) -> list[dict[str, object]]:
    assert len(report["sinks"]) == 2
    return list(report["sinks"].values())
