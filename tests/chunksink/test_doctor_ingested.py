"""`chunksink doctor` looks at what an ingest keeps, and what it says is to be done is enough."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Shell
from tests.chunksink.test_doctor_command import amiss
from tests.chunksink.test_doctor_findings import checks

FILES = {"ingest": "ingest.db"}


@pytest.fixture
def ingested(quick_shell: Shell) -> Shell:
    notes = quick_shell.folder / "notes"
    notes.mkdir()
    for number in range(60):
        (notes / f"{number}.md").write_text(f"# A note\n\nabout {number}\n")
    assert quick_shell("ingest", "notes").code == Exit.OK
    return quick_shell


def half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def foreign(file: Path) -> None:
    file.write_bytes(b"no database " * 1000)


def inside(file: Path) -> None:
    """All pages are there, and one is not what it was."""
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 4096 // 2 * 4096)
        opened.write(b"\xff" * 4096)


def newer(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at) "
            "select migration_set, 'to come', '' from _sqlite_migrations limit 1"
        )
    db.close()


def test_a_sound_database_is_no_trouble(ingested: Shell) -> None:
    found = checks(ingested, Exit.OK)
    assert amiss(found) == {}
    assert [found[name]["found"] for name in FILES] == [f".chunksink/{file} can be read" for file in FILES.values()]


def test_none_yet(quick_shell: Shell) -> None:
    quick_shell.commit("p1")
    found = checks(quick_shell, Exit.OK)
    assert amiss(found).keys() <= {"chunks"}
    assert {found[name]["found"] for name in FILES} == {"none yet; `chunksink ingest` makes it"}
    assert not quick_shell.home.exists()


@pytest.mark.parametrize("harm", [half, foreign, inside, newer], ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("name", FILES)
def test_one_that_cannot_be_used(name: str, harm: object, ingested: Shell) -> None:
    file = ingested.home / FILES[name]
    assert callable(harm)
    harm(file)
    found = checks(ingested)
    assert amiss(found) == {name: "fail"}
    assert FILES[name] in found[name]["found"]
    remedy = found[name]["remedy"]
    assert "move it away: the next `chunksink ingest` makes another, and reads all files again" in remedy
    file.rename(file.with_suffix(".away"))
    before = {path: path.read_bytes() for path in ingested.root.canonical.iterdir()}
    assert ingested("ingest", "notes").code == Exit.OK
    assert {path: path.read_bytes() for path in ingested.root.canonical.iterdir()} == before
    assert amiss(checks(ingested, Exit.OK)) == {}
