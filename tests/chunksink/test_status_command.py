"""`chunksink status` shows, from records alone, what is live, held, due or in progress."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import time_machine

from chunksink.chunkbus.manifest import Tombstone
from chunksink.chunkbus.runlog import RunLog
from chunksink.command_line.exits import Exit
from chunksink.command_line.status_report import page_report
from chunksink.rebuild import spot_check
from chunksink.rebuild import state as state_module
from chunksink.rebuild.errors import HomeLocked
from chunksink.rebuild.locks import RebuildLock, held_locks, writing
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.run_records import newest_run
from chunksink.rebuild.state import State
from chunksink.settings.config import Config
from tests.chunksink.shell import Shell, write
from tests.conftest import ROOT
from tests.journey.support import environment
from tests.support.bus import FEBRUARY, commit, parent_of, source
from tests.support.home import Home
from tests.support.local_engines import fts, memory
from tests.support.watched_sinks import Moment, watching


@pytest.fixture
def home(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Three sources in two partitions, indexed in a keyword engine and in a vector store."""
    home = Home(shell.home, shell.root, fts, memory())
    commit(home.root, "p1", [*source("a.md", "a cat", "a mat"), *source("b.md", "a boat")])
    commit(home.root, "p2", source("c.md", "a cow"))
    home.rebuild()
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,memory")
    return home


def report(shell: Shell) -> dict[str, Any]:
    """The JSON of `status`."""
    ended = shell("status", "--json")
    assert (ended.code, ended.err) == (Exit.OK, "")
    return ended.json


def test_status_after_a_new_projection_version_has_all_to_write(home: Home, shell: Shell) -> None:
    assert {sink["to_write"] for sink in report(shell)["sinks"].values()} == {0}
    with State(home.folder) as state:
        state.db.execute("update projection set version = version - 1")
    assert {sink["to_write"] for sink in report(shell)["sinks"].values()} == {3}


@pytest.mark.parametrize("command", ["status", "search cat", "why x", "verify"])
def test_commands_during_the_first_build_are_usage_errors(command: str, shell: Shell) -> None:
    started = Home(shell.home, shell.root, fts)
    commit(started.root, "p1", source("a.md", "a cat"))
    with pytest.raises(KeyboardInterrupt):
        started.rebuild(wrap=watching("fts", Moment("flush", 1, stop)))
    with RebuildLock(started.folder)():
        ended = shell(*command.split())
        assert (ended.code, "the run that builds one is under way" in ended.err) == (Exit.USAGE, True)
    ended = shell(*command.split())
    assert (ended.code, "build one with `chunksink sync`" in ended.err) == (Exit.USAGE, True)


def test_status_of_a_current_index(home: Home, shell: Shell) -> None:
    found = report(shell)
    assert (found["current"], found["live"]["id"], found["live"]["model"]) == (True, home.live().id, "hash")
    assert set(found["sinks"]) == {"fts", "memory"}
    for sink in found["sinks"].values():
        assert (sink["families"], sink["chunks"], sink["to_write"], sink["to_remove"]) == (3, 4, 0, 0)
        assert sink["coverage"]["syncs_a_round"] == 1
        assert sink["coverage"]["compared_since"].startswith("2"), "the rebuild has compared all"
    assert found["previous"] is found["unfinished"] is None
    assert (found["locks"], found["held"], found["begun_flip"]) == ([], 0, False)
    assert "a rebuild is due: the live index was made with hash" in shell("status").out


def test_status_lists_partitions_to_sync(home: Home, shell: Shell) -> None:
    commit(home.root, "p2", source("c.md", "a crow", version="2"))
    commit(home.root, "p3", source("d.md", "a dog"))
    found = report(shell)
    assert (found["current"], found["bus"]["pending"]) == (False, ["p2", "p3"])


def test_status_counts_what_is_read_but_not_written(home: Home, shell: Shell) -> None:
    tombstones = [Tombstone(parent_id=parent_of("a.md"), reason="gone", at=FEBRUARY)]
    commit(home.root, "p3", source("d.md", "a dog"), at=FEBRUARY, tombstones=tombstones)
    with home.session() as session:
        session.refresh()
    found = report(shell)
    assert (found["current"], found["bus"]["pending"]) == (False, [])
    assert (found["sinks"]["fts"]["to_write"], found["sinks"]["fts"]["to_remove"]) == (1, 1)
    out = shell("status").out
    assert "fts         3 sources, 4 chunks  (1 to write, 1 to remove)" in out
    assert "not every engine matches the chunks" in out


def test_status_counts_open_intents_once_and_not_those_of_held_sources(
    home: Home, shell: Shell, config: Config
) -> None:
    edited = source("b.md", "a boat, edited", version="2", at=FEBRUARY)
    commit(home.root, "p1", [*source("a.md", "a cat", "a mat"), *edited])
    commit(home.root, "p2", [])
    commit(home.root, "p3", source("d.md", "a dog"))
    with pytest.raises(KeyboardInterrupt):
        home.sync(wrap=watching("memory", Moment("flush", 1, stop, after=True)))
    with State.existing(home.folder) as state:
        Receipts(state.db, home.live().builds["fts"]).intend([parent_of("a.md"), parent_of("gone.md")])

    def counted() -> dict[str, tuple[int, int, int]]:
        sinks = report(shell)["sinks"]
        return {name: (sink["open_intents"], sink["to_write"], sink["to_remove"]) for name, sink in sinks.items()}

    assert counted() == {"fts": (2, 1, 2), "memory": (2, 2, 1)}
    figures = {figure.label: figure.value for figure in page_report(config).figures}
    assert figures["To be synced"] == "3"
    home.root.chunks_file("p1").write_text("no json\n")
    with home.session() as session:
        session.refresh()
    assert counted() == {"fts": (2, 0, 0), "memory": (2, 1, 0)}
    figures = {figure.label: figure.value for figure in page_report(config).figures}
    assert figures["To be synced"] == "1"


def test_status_lists_broken_partitions_and_held_sources(home: Home, shell: Shell) -> None:
    home.root.manifest_file("p2").unlink()
    home.root.chunks_file("p2").unlink()
    home.root.chunks_file("p1").write_text("no json\n")
    assert report(shell)["bus"]["pending"] == ["p1", "p2"]
    home.sync()
    found = report(shell)
    assert [(one["key"], one["state"], one["families"]) for one in found["bus"]["broken"]] == [
        ("p1", "invalid", 2),
        ("p2", "missing", 1),
    ]
    assert found["held"] == len(found["held_families"]) == 3
    assert {one["source"] for one in found["held_families"]} == {"a.md", "b.md", "c.md"}
    assert found["current"] is False
    out = shell("status").out
    assert "INTEGRITY_VIOLATION:checksum_mismatch p1 " in out
    assert "`chunksink retire-partition p2`" in out


def test_status_names_partitions_that_are_dated_in_the_future(home: Home, shell: Shell) -> None:
    assert report(shell)["bus"]["dated_ahead"] == []
    commit(home.root, "p3", source("d.md", "a dog", at="2999-01-01T00:00:00Z"), at="2999-01-01T00:00:00Z")
    home.sync()
    assert report(shell)["bus"]["dated_ahead"] == ["p3"]
    with time_machine.travel("2999-01-02"):
        assert report(shell)["bus"]["dated_ahead"] == []


def test_status_names_the_first_held_sources_and_all_with_all(home: Home, shell: Shell) -> None:
    commit(home.root, "p3", [chunk for name in "defgh" for chunk in source(f"{name}.md", name)])
    home.sync()
    home.root.chunks_file("p3").write_text("")
    home.sync()
    out = shell("status").out
    assert out.count(".md is held") == 3
    assert "2 more" in out
    assert shell("status", "--all").out.count(".md is held") == 5


def stop() -> None:
    raise KeyboardInterrupt


def test_status_shows_a_stopped_and_a_running_rebuild(home: Home, shell: Shell) -> None:
    with pytest.raises(KeyboardInterrupt):
        home.rebuild(wrap=watching("fts", Moment("flush", 1, stop)))
    found = report(shell)
    assert found["unfinished"]["under_way"] is False
    assert found["unfinished"]["generation"]["id"] > found["live"]["id"]
    assert "was stopped; `chunksink rebuild` continues it" in shell("status").out
    with RebuildLock(home.folder)(), writing(home.folder):
        found = report(shell)
        assert (found["unfinished"]["under_way"], found["locks"]) == (True, ["writer", "rebuild"])
        out = shell("status").out
    assert "is under way" in out
    assert "a run is writing to this home now" in out
    assert held_locks(home.folder) == ()


@pytest.mark.usefixtures("home")
def test_status_without_chunks_reports_it(shell: Shell) -> None:
    ended = shell("status", "--chunks", "elsewhere")
    assert (ended.code, "no chunks at" in ended.out) == (Exit.OK, True)


def test_status_loads_no_engine(home: Home) -> None:
    program = (
        "import sys; from chunksink.command_line.cli import run; assert run(sys.argv[1:]) == 0; "
        "heavy = {'torch', 'chromadb', 'starlette', 'meilisearch', 'httpx', 'chunksink.sinks.fts'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    arguments = ["status", "--home", str(home.folder), "--chunks", str(home.root.path)]
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, check=True)
    assert done.stdout.decode().splitlines()[-1] == "[]"


# -- the status page of `serve` ----------------------------------------------------------------------------------------


@pytest.fixture
def config(home: Home) -> Config:
    return Config(home=str(home.folder), chunks=str(home.root.path), sinks=("fts", "memory"))


def test_failed_verify_does_not_hide_the_last_one(home: Home, config: Config) -> None:
    with RunLog(home.folder, "verify") as log:
        log.finish("ok", sinks={"fts": {"chunks": 4}, "memory": {"error": "down"}})
    with suppress(HomeLocked), RunLog(home.folder, "verify"):
        raise HomeLocked("busy")
    with State.existing(home.folder) as state:
        verified = newest_run(state.home, "verify")
    assert verified is not None and verified.status == "ok"
    [section] = [each for each in page_report(config).sections if each.title == "Last verify"]
    rows = [(row.label, row.tone) for row in section.rows]
    assert rows == [("verified", ""), ("fts", ""), ("memory", "bad")]


def test_a_verify_before_the_last_sync_is_marked_as_older(shell: Shell) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    shell("verify")
    assert "before the last sync" not in shell("status").out
    shell("sync")
    found = shell("status", "--json").json
    assert found["last_verify"]["started_at"] < found["updated_at"]
    assert "before the last sync" in shell("status").out


def test_rebuild_after_a_verify_needs_no_other_one(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """It compares every document before it goes live."""
    shell = quick_shell
    shell.synced(p1=[source("a.md", "a cat")])
    assert shell("verify").code == Exit.OK
    assert shell("rebuild").code == Exit.OK
    out = shell("status").out
    assert ("run it again" in out, "compared later" in out) == (False, True)
    with monkeypatch.context() as patch:
        patch.setattr(spot_check, "MAX_CHUNKS", 0)
        assert "run it again" in shell("status").out, "spot checks may have left out the source"
    assert shell("verify").code == Exit.OK
    assert shell("rollback").code == Exit.OK
    assert "run it again" in shell("status").out, "nothing has compared the former builds since"


def test_the_last_reading_of_sources_is_shown(shell: Shell) -> None:
    write(shell, "notes/a.md", "# A\n\nA cat.\n")
    shell.synced(p1=[source("a.md", "a cat")])
    assert shell("status", "--json").json["ingested_at"] is None
    assert shell("ingest", "notes").code == Exit.OK
    assert shell("status", "--json").json["ingested_at"] is not None
    assert "`chunksink ingest` reads them again" in shell("status").out


def test_sources_that_the_last_ingest_could_not_read_are_counted(quick_shell: Shell) -> None:
    shell = quick_shell
    write(shell, "notes/a.md", "# A\n\nA cat.\n")
    assert shell("ingest", "notes", "--sync").code == Exit.OK
    (shell.folder / "notes" / "a.md").write_bytes(b"# A\n\x80")
    assert shell("ingest", "notes", "--sync").code == Exit.INVALID_INPUT
    assert shell("status", "--json").json["ingest_failures"] == 1
    assert "chunksink ledger" in shell("status").out
    assert "ingest_failures=1;" in shell("status", "--check").out


def test_split_source_is_listed_by_name(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("b.md", "a boat")])
    for key, text in (("p2", "one part"), ("p3", "another part")):
        [part] = source("a.md", text, ids=text)
        del part["chunk_count"]
        quick_shell.commit(key, [part])
    ended = quick_shell("sync", "--json")
    assert (ended.code, list(ended.json["held_sources"].values())) == (Exit.INVALID_INPUT, [["a.md"]])
    [held] = quick_shell("status", "--json").json["held_families"]
    assert (held["reason"], held["source"]) == ("family split", "a.md")


def test_a_home_that_cannot_be_written_is_a_usage_error(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    monkeypatch.setattr(state_module, "can_write", lambda folder: folder != Path(".chunksink"))
    for command in ("status", "search cat", "verify"):
        ended = shell(*command.split())
        assert (ended.code, "--home" in ended.err) == (Exit.USAGE, True)
