"""`chunksink dead-letters` lists what engines refused, and has it sent again."""

import json
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.cli import run
from chunksink.exits import Exit
from tests.support.bus import commit, parent_of, source
from tests.support.home import Home, PoisonedEncoder
from tests.support.local_engines import fts, memory


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """One document of two sources has no vector, so that the store of vectors refuses it."""
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts, memory())
    home.encoder = PoisonedEncoder(dimension=8)
    commit(home.root, "p1", [*source("a.md", "a cat", "a poison"), *source("b.md", "a poison, too", "a boat")])
    home.rebuild()
    return home


def letters(home: Home, capsys: pytest.CaptureFixture[str], *more: str) -> list[dict[str, Any]]:
    code = run(["dead-letters", "--home", str(home.folder), "--json", *more])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    assert code == (Exit.REFUSED if found else Exit.OK)
    return found


def test_they_are_listed_with_source_and_reason(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    found = letters(home, capsys)
    assert {(one["sink"], one["source"], one["family"]) for one in found} == {
        ("memory", name, parent_of(name)) for name in ("a.md", "b.md")
    }
    assert all(one["reason"].startswith("its text has no vector: ") and one["at"] for one in found)
    assert run(["dead-letters", "--home", str(home.folder)]) == Exit.REFUSED
    out = capsys.readouterr().out
    assert f"memory  {found[0]['id']}  ({found[0]['source']}, " in out


def test_of_one_sink_and_at_most_so_many(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert letters(home, capsys, "--sink", "fts") == []
    assert len(letters(home, capsys, "--limit", "1")) == 1
    run(["dead-letters", "--home", str(home.folder), "--limit", "1"])
    assert capsys.readouterr().err == "1 of 2; ask for more with --limit\n"
    assert run(["dead-letters", "--home", str(home.folder), "--sink", "nope"]) == Exit.USAGE
    assert "fts, memory" in capsys.readouterr().err
    assert run(["dead-letters", "--home", str(home.folder), "--sink", "fts", "retry"]) == Exit.OK
    assert "nothing will be sent again" in capsys.readouterr().out


def test_what_was_mended_is_not_listed_any_more(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.encoder = Home(home.folder, home.root).encoder  # has a vector for everything
    assert run(["dead-letters", "--home", str(home.folder), "retry"]) == Exit.OK
    capsys.readouterr()
    home.sync()
    assert letters(home, capsys) == []
    assert run(["dead-letters", "--home", str(home.folder)]) == Exit.OK
    assert capsys.readouterr().out == "no document is refused\n"
    assert run(["dead-letters", "retry", "--home", str(home.folder)]) == Exit.OK
    assert "nothing will be sent again" in capsys.readouterr().out
    assert len(home.contents()["memory"]) == 4
