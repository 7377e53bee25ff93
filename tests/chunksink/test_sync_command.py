"""`chunksink sync`: what it writes, what it tells, and that it does nothing twice."""

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Models, Shell
from tests.support.bus import FEBRUARY, source

A, B, C = source("a.md", "a cat", "a mat"), source("b.md", "a boat"), source("c.md", "a cow")


@pytest.fixture
def synced(shell: Shell, models: Models) -> Shell:
    """Three sources in two partitions, and nobody has been asked anything since."""
    shell.begin("synced", "sync", p1=[A, B], p2=[C])
    models.asked()
    models.loaded.clear()
    return shell


def test_the_first_sync_builds_the_index(shell: Shell, models: Models) -> None:
    shell.commit("p1", A, B)
    ended = shell("sync")
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert "synced fts, chroma: 2 sources added (3 chunks written), in " in ended.out
    assert "vectors: 3 computed in float32, 0 from the cache\n" in ended.out
    assert sorted(models.asked()) == ["a boat", "a cat", "a mat"]
    for sink in ("fts", "chroma"):
        assert shell.texts(sink) == ["a boat", "a cat", "a mat"]


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


def test_edited_added_and_removed(synced: Shell, models: Models) -> None:
    """The partition does not hold `b.md` any more, `a.md` has lost a chunk and changed the other, `d.md` is new."""
    synced.commit("p1", source("a.md", "a cheetah", version="2"), source("d.md", "a dog"), at=FEBRUARY)
    report = synced("sync", "--json").json
    assert {name: number for name, number in report["families"].items() if number} == {
        "added": 1,
        "changed": 1,
        "removed": 1,
        "unchanged": 1,
    }
    assert report["chunks"] == {"written": 2, "deleted": 3}
    assert all((sink["written"], sink["deleted"], sink["chunks"]) == (2, 3, 3) for sink in sinks(report))
    assert sorted(models.asked()) == ["a cheetah", "a dog"]
    for sink in ("fts", "chroma"):
        assert synced.texts(sink) == ["a cheetah", "a cow", "a dog"]
    assert synced("sync").out.startswith("synced fts, chroma: 3 sources unchanged")


def test_only_metadata_changed(synced: Shell, models: Models) -> None:
    """The documents are written anew, and nothing is embedded."""
    synced.commit("p2", source("c.md", "a cow", metadata={"title": "Of cows"}))
    planned = synced("plan")
    assert "1 source to change, 1 of them in metadata alone\n" in planned.out
    assert "1 chunk to write: 1 vectors cached, 0 to compute\n" in planned.out
    report = synced("sync", "--json").json
    assert (report["families"]["changed"], report["families"]["metadata_only"]) == (1, 1)
    assert report["chunks"] == {"written": 1, "deleted": 0}
    assert (report["embeddings"]["computed"], report["embeddings"]["cached"]) == (0, 1)
    assert (models.loaded, models.asked()) == ([], [])
    for sink in ("fts", "chroma"):
        titles = [stored.document.title for stored in synced.stored(sink) if stored.document]
        assert titles.count("Of cows") == 1


def test_a_bus_without_chunks_makes_an_empty_index(shell: Shell) -> None:
    shell.commit("p1")
    assert shell("sync").out.startswith("synced fts, chroma: no sources, in ")
    assert shell("verify").code == Exit.OK
    shell.commit("p1", A)
    assert "1 source added" in shell("sync").out


def sinks(report: dict[str, dict[str, dict[str, object]]]) -> list[dict[str, object]]:
    assert len(report["sinks"]) == 2
    return list(report["sinks"].values())
