"""`chunksink status` tells from records alone what is live, held, due or under way."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import Tombstone
from chunksink.cli import run
from chunksink.exits import Exit
from chunksink.rebuild.locks import RebuildLock, held_locks, writing
from chunksink.rebuild.state import State
from tests.conftest import ROOT
from tests.journey.support import environment
from tests.support.bus import FEBRUARY, commit, parent_of, source
from tests.support.home import Home
from tests.support.local_engines import fts, memory
from tests.support.watched_sinks import Moment, watching


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Three sources in two partitions, indexed in a keyword engine and in a store of vectors."""
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts, memory())
    commit(home.root, "p1", [*source("a.md", "a cat", "a mat"), *source("b.md", "a boat")])
    commit(home.root, "p2", source("c.md", "a cow"))
    home.rebuild()
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,memory")
    return home


def told(home: Home, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """Everything but the model, which is not the configured one here, is to be told."""
    assert run(["status", "--home", str(home.folder), "--chunks", str(home.root.path), *more]) == Exit.OK
    out, err = capsys.readouterr()
    assert err == ""
    return out


def report(home: Home, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(told(home, capsys, "--json"))
    return document


def test_after_an_upgrade_that_projects_otherwise_all_is_to_be_compared(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {sink["to_write"] for sink in report(home, capsys)["sinks"].values()} == {0}
    with State(home.folder) as state:
        state.db.execute("update projection set version = version - 1")
    assert {sink["to_write"] for sink in report(home, capsys)["sinks"].values()} == {3}


@pytest.mark.parametrize("command", [["status"], ["search", "cat"], ["why", "x"], ["verify"]])
def test_while_the_first_index_is_built_that_is_said(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = Home(tmp_path / "started", BusRoot(tmp_path / "chunks"), fts)
    commit(started.root, "p1", source("a.md", "a cat"))
    with pytest.raises(KeyboardInterrupt):
        started.rebuild(wrap=watching("fts", Moment("flush", 1, stop)))
    command += ["--home", str(started.folder), "--chunks", str(started.root.path)]
    with RebuildLock(started.folder)():
        assert run(command) == Exit.USAGE
        assert "the run that builds one is under way" in capsys.readouterr().err
    assert run(command) == Exit.USAGE
    assert "build one with `chunksink sync`" in capsys.readouterr().err


def test_an_index_that_is_up_to_date(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    found = report(home, capsys)
    assert found["current"] is True
    assert found["live"]["id"] == home.live().id
    assert found["live"]["model"] == "hash"
    assert set(found["sinks"]) == {"fts", "memory"}
    for sink in found["sinks"].values():
        assert (sink["families"], sink["chunks"], sink["to_write"], sink["to_remove"]) == (3, 4, 0, 0)
    assert found["previous"] is found["unfinished"] is None
    assert (found["locks"], found["held"], found["begun_flip"]) == ([], 0, False)
    out = told(home, capsys)
    assert "fts         3 sources, 4 chunks\n" in out
    assert "no rollback is possible" in out
    assert "a rebuild is due: the live index was made with hash" in out


def test_partitions_that_were_not_synced_yet(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    commit(home.root, "p2", source("c.md", "a crow", version="2"))
    commit(home.root, "p3", source("d.md", "a dog"))
    found = report(home, capsys)
    assert (found["current"], found["bus"]["pending"]) == (False, ["p2", "p3"])
    assert "2 partitions new, changed or gone since the last sync: p2, p3; run `chunksink sync`" in told(home, capsys)


def test_what_was_taken_in_but_not_written(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    tombstones = [Tombstone(parent_id=parent_of("a.md"), reason="gone", at=FEBRUARY)]
    commit(home.root, "p3", source("d.md", "a dog"), at=FEBRUARY, tombstones=tombstones)
    with home.session() as session:
        session.refresh()
    found = report(home, capsys)
    assert (found["current"], found["bus"]["pending"]) == (False, [])
    assert (found["sinks"]["fts"]["to_write"], found["sinks"]["fts"]["to_remove"]) == (1, 1)
    out = told(home, capsys)
    assert "fts         3 sources, 4 chunks  (1 to write, 1 to remove)" in out
    assert "not every engine has what the chunks say" in out


def test_a_missing_and_an_invalid_partition_and_the_sources_held_for_them(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.root.manifest_file("p2").unlink()
    home.root.chunks_file("p2").unlink()
    home.root.chunks_file("p1").write_text("no json\n")
    assert report(home, capsys)["bus"]["pending"] == ["p1", "p2"]
    home.sync()
    found = report(home, capsys)
    assert [(one["key"], one["state"], one["families"]) for one in found["bus"]["broken"]] == [
        ("p1", "invalid", 2),
        ("p2", "missing", 1),
    ]
    assert found["held"] == len(found["held_families"]) == 3
    assert {one["source"] for one in found["held_families"]} == {"a.md", "b.md", "c.md"}
    assert found["current"] is False
    out = told(home, capsys)
    assert "held as it was: source a.md: partition p1 is invalid" in out
    assert "partition p1 is invalid, 2 sources held: INTEGRITY_VIOLATION:manifest_mismatch p1 " in out
    assert "partition p2 is missing, 1 source held: bring it back, or `chunksink retire-partition p2`" in out


def test_of_many_held_sources_the_first_are_named(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    commit(home.root, "p3", [chunk for name in "defgh" for chunk in source(f"{name}.md", name)])
    home.sync()
    home.root.chunks_file("p3").write_text("")
    home.sync()
    out = told(home, capsys)
    assert out.count("held as it was") == 3
    assert "... and 2 more held sources; --all names them" in out
    assert told(home, capsys, "--all").count("held as it was") == 5


def stop() -> None:
    raise KeyboardInterrupt


def test_a_rebuild_that_was_stopped(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        home.rebuild(wrap=watching("fts", Moment("flush", 1, stop)))
    found = report(home, capsys)
    assert found["unfinished"]["under_way"] is False
    assert found["unfinished"]["generation"]["id"] > found["live"]["id"]
    assert "was stopped; `chunksink rebuild` continues it" in told(home, capsys)
    with RebuildLock(home.folder)(), writing(home.folder):
        found = report(home, capsys)
        assert (found["unfinished"]["under_way"], found["locks"]) == (True, ["writer", "rebuild"])
        out = told(home, capsys)
    assert "is under way" in out
    assert "a run is writing to this home now" in out
    assert held_locks(home.folder) == ()


def test_another_folder_than_that_of_the_chunks_is_told(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status", "--home", str(home.folder), "--chunks", str(tmp_path / "elsewhere")]) == Exit.OK
    assert "no chunks at" in capsys.readouterr().out


def test_a_misspelt_sink_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "ftx,memory")
    assert run(["status", "--home", str(home.folder), "--chunks", str(home.root.path)]) == Exit.USAGE
    assert "there is no sink 'ftx'; installed are" in capsys.readouterr().err


def test_it_asks_no_engine_and_loads_nothing_heavy(home: Home) -> None:
    program = (
        "import sys; from chunksink.cli import run; assert run(sys.argv[1:]) == 0; "
        "heavy = {'torch', 'chromadb', 'starlette', 'meilisearch', 'httpx', 'chunksink.sinks.fts'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    arguments = ["status", "--home", str(home.folder), "--chunks", str(home.root.path)]
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, check=True)
    assert done.stdout.decode().splitlines()[-1] == "[]"
