"""The home folder: one writer at a time, a state that may be lost, and a bus that may be broken."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from chunkbus.errors import NewerStore, StoreUnreadable
from chunkbus.layout import BusRoot
from chunksink.cli import run
from chunksink.exits import Exit
from rebuild import lock
from rebuild.errors import HomeLocked, NoGeneration
from rebuild.state import State
from tests.conftest import ROOT
from tests.rebuild.support import FEBRUARY, Home, commit, projected, source

HOLD = "import sys, pathlib, rebuild.lock as l\nwith l.writing(pathlib.Path(sys.argv[1])): print(flush=True); input()"


@contextmanager
def other_writer(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the home's lock until it is told to go on, or killed."""
    command = [sys.executable, "-c", HOLD, str(home)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def snapshot(folder: Path) -> dict[str, str]:
    """Every file and folder below, by content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in folder.rglob("*")
    }


def test_a_second_writer_waits_for_the_first(tmp_path: Path) -> None:
    with other_writer(tmp_path) as process:
        assert process.stdin is not None
        threading.Timer(0.3, process.communicate, ["\n"]).start()
        with lock.writing(tmp_path, wait_seconds=30):
            assert process.wait(30) == 0


def test_a_second_writer_leaves_with_its_own_exit_code(
    root: BusRoot, home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(root, "p1", source("docs/a.md", "a"))
    home.rebuild()
    before = snapshot(home.folder / "fts")
    monkeypatch.setattr(lock, "writing", partial(lock.writing, wait_seconds=0.1))
    with other_writer(home.folder):
        assert run(["rebuild", "--chunks", str(root.path), "--home", str(home.folder)]) == Exit.LOCKED
        error = capsys.readouterr().err
        assert f"another run is writing to {home.folder}" in error
        assert "Traceback" not in error
        # Readers are not in its way, nor it in theirs.
        assert home.contents()["fts"] == projected(source("docs/a.md", "a"))
    assert snapshot(home.folder / "fts") == before


def test_the_lock_of_a_killed_writer_is_free(tmp_path: Path) -> None:
    with other_writer(tmp_path) as process:
        with pytest.raises(HomeLocked), lock.writing(tmp_path, wait_seconds=0):
            pass
        process.kill()
        process.wait()
        with lock.writing(tmp_path, wait_seconds=0):
            pass


def test_a_lost_state_is_made_again_from_the_chunks(root: BusRoot, embedded_home: Home) -> None:
    records = source("docs/a.md", "a0", "a1")
    commit(root, "p1", records)
    embedded_home.rebuild()
    for file in embedded_home.folder.glob("state.db*"):
        file.unlink()
    with pytest.raises(NoGeneration, match="chunksink rebuild"):
        embedded_home.live()
    embedded_home.rebuild()
    assert embedded_home.contents() == {"fts": projected(records), "chroma": projected(records)}
    assert embedded_home.embedded.encoded == 0


@pytest.mark.parametrize("command", ["rebuild", "search"])
def test_a_state_that_is_no_database_is_said_to_be_none(
    command: str, root: BusRoot, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(root, "p1", source("docs/a.md", "a"))
    home.folder.mkdir()
    (home.folder / "state.db").write_text("this is not a database, but long enough to be looked at as one" * 100)
    before = snapshot(home.folder)
    arguments = ["rebuild", "--chunks", str(root.path)] if command == "rebuild" else ["search", "a"]
    assert run([*arguments, "--home", str(home.folder)]) == Exit.USAGE
    error = capsys.readouterr().err
    assert f"{home.folder / 'state.db'} is not a database of chunksink" in error
    assert "move it away" in error
    after = snapshot(home.folder)
    assert {name: after[name] for name in before} == before
    assert not {"fts", "chroma"} & set(after)


def test_a_state_damaged_inside_is_said_to_be_damaged(root: BusRoot, home: Home) -> None:
    commit(root, "p1", [record for number in range(300) for record in source(f"docs/{number}.md", f"text {number}")])
    home.rebuild()
    state = home.folder / "state.db"
    data = bytearray(state.read_bytes())
    data[4096 * 4 :] = b"\xff" * len(data[4096 * 4 :])
    state.write_bytes(data)
    with pytest.raises(StoreUnreadable, match=r"state\.db is damaged .* move it away and rebuild"):
        home.rebuild()


def test_a_state_of_a_newer_chunksink_is_left_alone(root: BusRoot, home: Home) -> None:
    commit(root, "p1", source("docs/a.md", "a"))
    home.rebuild()
    with State(home.folder) as state, state.db.conn:
        state.db.conn.execute("update _sqlite_migrations set name = 'from_the_future' where name = 'create_receipts'")
    with pytest.raises(NewerStore, match="upgrade"):
        home.rebuild()


def break_text(root: BusRoot) -> str:
    lines = root.chunks_file("p2").read_bytes().replace(b"fine", b"evil")
    root.chunks_file("p2").write_bytes(lines)
    return "INTEGRITY_VIOLATION:text_hash_mismatch p2:1"


def cut_off(root: BusRoot) -> str:
    root.chunks_file("p2").write_bytes(root.chunks_file("p2").read_bytes()[:-10])
    return "SCHEMA_INVALID:json_parse p2:1"


def lose_manifest(root: BusRoot) -> str:
    root.manifest_file("p2").unlink()
    return "MISSING_OUTPUT:manifest p2"


def lose_chunks(root: BusRoot) -> str:
    root.chunks_file("p2").unlink()
    return "MISSING_OUTPUT:chunks_file p2"


@pytest.mark.parametrize("damage", [break_text, cut_off, lose_manifest, lose_chunks])
@pytest.mark.parametrize("live", [True, False], ids=["live index", "first run"])
def test_an_invalid_bus_is_refused_before_any_sink_is_written(
    damage: object, live: bool, root: BusRoot, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(root, "p1", source("docs/a.md", "a"))
    if live:
        home.rebuild()
    commit(root, "p2", source("docs/b.md", "fine"), at=FEBRUARY)
    finding = damage(root)  # type: ignore[operator]
    before = snapshot(home.folder)
    assert run(["rebuild", "--chunks", str(root.path), "--home", str(home.folder)]) == Exit.INVALID_INPUT
    error = capsys.readouterr().err
    assert finding in error
    assert "the index is unchanged" in error
    assert "Traceback" not in error
    after = {
        name: digest for name, digest in snapshot(home.folder).items() if not name.startswith(("runs", "writer.lock"))
    }
    assert after == before
