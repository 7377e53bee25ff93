"""The home folder: one writer at a time, and a bus that may be broken."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild import locks
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.errors import HomeLocked, InvalidBus
from chunksink.rebuild.state import State
from tests.conftest import ROOT, sampled
from tests.support.bus import FEBRUARY, commit, source
from tests.support.damage import Damage, cut_off, lose_chunks, lose_manifest
from tests.support.home import Home

HOLD = """
import sys, pathlib
from chunksink.rebuild.locks import writing
with writing(pathlib.Path(sys.argv[1])): print(flush=True); input()
"""


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
        with locks.writing(tmp_path, wait_seconds=30):
            assert process.wait(30) == 0


def test_the_lock_of_a_killed_writer_is_free(tmp_path: Path) -> None:
    with other_writer(tmp_path) as process:
        with pytest.raises(HomeLocked), locks.writing(tmp_path, wait_seconds=0):
            pass
        process.kill()
        process.wait()
        with locks.writing(tmp_path, wait_seconds=0):
            pass


def break_text(root: BusRoot, key: str) -> None:
    path = root.chunks_file(key)
    path.write_bytes(path.read_bytes().replace(b"fine", b"evil"))


FINDINGS = {
    break_text: "INTEGRITY_VIOLATION:text_hash_mismatch p2:1",
    cut_off: "SCHEMA_INVALID:json_parse p2:1",
    lose_manifest: "MISSING_OUTPUT:manifest p2",
    lose_chunks: "MISSING_OUTPUT:chunks_file p2",
}


@pytest.mark.parametrize("damage", sampled(FINDINGS))
@pytest.mark.parametrize("first", [False, True])
def test_an_invalid_bus_is_refused_before_any_sink_is_written(
    first: bool, damage: Damage, root: BusRoot, home: Home
) -> None:
    commit(root, "p1", source("docs/a.md", "a"))
    home.folder.mkdir()
    if not first:
        home.rebuild()
        commit(root, "p1", source("docs/a.md", "edited", version="2"))
    commit(root, "p2", source("docs/b.md", "fine"), at=FEBRUARY)
    damage(root, "p2")
    before, builds = snapshot(home.folder / "fts"), home.builds()
    with State(home.folder) as state:
        generations = state.generations()
    with pytest.raises(InvalidBus, match=f"the index is unchanged(.|\n)*{FINDINGS[damage]}"):
        home.rebuild()
    assert (snapshot(home.folder / "fts"), home.builds()) == (before, builds)
    with State.existing(home.folder) as state:
        assert state.generations() == generations, "nothing was begun"


@pytest.mark.parametrize("folder", ["canonical", "manifest"])
def test_a_file_that_no_partition_can_be_named_after_is_invalid_input(folder: str, root: BusRoot, home: Home) -> None:
    """Nothing would read it, so somebody's chunks would be left out in silence."""
    commit(root, "p1", source("docs/a.md", "a"))
    home.rebuild()
    live = home.live()
    stray = root.path / folder / ("my notes" + (".jsonl" if folder == "canonical" else ".manifest.json"))
    stray.write_text("")
    with pytest.raises(InvalidBus, match=f"{folder}/{stray.name}"):
        home.rebuild()
    assert home.live() == live
    home.sync()
    with State.existing(home.folder) as state:
        assert Catalog(state).is_whole(), "it is no reason to keep what is gone"
    stray.unlink()
    home.sync(strict=True)
