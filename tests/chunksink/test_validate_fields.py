"""`chunksink validate --fields`: a producer sees what of its chunks the index will have."""

import json
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.cli import run
from chunksink.exits import Exit
from tests.chunkbus.samples import chunk, lines_of, put

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BusRoot:
    monkeypatch.chdir(tmp_path)
    return BusRoot(tmp_path / "chunks")


def test_the_table_and_what_is_left_out(root: BusRoot, capsys: Captured) -> None:
    dates = ["1999-12-31", "31.12.1999", "1.1.2000"]
    chunks = [chunk(i, metadata={"date": date, "product": "p"}) for i, date in enumerate(dates)]
    put(root, "k", lines_of(chunks))
    assert run(["validate", "--fields"]) == Exit.OK
    out, err = capsys.readouterr()
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "Fields of the index, and how many of 3 chunks fill them:" in lines
    assert 'year 1 2 not read: metadata.date is "31.12.1999" in k:2' in lines
    assert "text 3" in lines
    assert any(line.startswith("Nothing fills: ") and "authors" in line for line in lines)
    assert "No field reads: metadata.product (3)." in lines
    assert "docs/contract.md" in err


def test_a_long_value_is_cut_and_none_moves_the_cursor(root: BusRoot, capsys: Captured) -> None:
    put(root, "k", lines_of([chunk(0, metadata={"date": "\x9b" + "x" * 1000})]))
    assert run(["validate", "--fields"]) == Exit.OK
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "not read" in line]
    assert "\x9b" not in line
    assert len(line) < 150


def test_machines_read_the_same(root: BusRoot, capsys: Captured) -> None:
    put(root, "k", lines_of([chunk(0, metadata={"year": "soon", "product": "p"})]))
    assert run(["validate", "--fields", "--json"]) == Exit.OK
    document = json.loads(capsys.readouterr().out)
    first = {"path": "metadata.year", "value": "soon", "partition": "k", "line": 1}
    assert document["fields"]["year"] == {"filled": 0, "unread": 1, "first_unread": first}
    assert document["fields"]["text"] == {"filled": 1, "unread": 0, "first_unread": None}
    assert document["unasked"] == {"metadata.product": 1}


def test_it_waits_for_chunks_without_errors(root: BusRoot, capsys: Captured) -> None:
    put(root, "k", b"{\n")
    assert run(["validate", "--fields"]) == Exit.INVALID_INPUT
    out, err = capsys.readouterr()
    assert "Fields of the index" not in out
    assert "The fields are counted once there is no error." in err
