"""`chunksink ledger` shows what the ledger holds, and makes none."""

import json
from pathlib import Path

import pytest

from chunksink.cli import run
from chunksink.exits import Exit
from chunksink.ingest.store import IngestStore
from chunksink.output import printable


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with IngestStore(tmp_path) as store:
        for number in range(60):
            failed = number % 3 == 0
            attempt = {
                "source_uri": f"docs/{number}.md",
                "source_checksum": "a" * 64,
                "parser_name": "markdown",
                "parser_version": "1.2",
                "canonicalizer_name": "plain",
                "canonicalizer_version": "1",
                "processed_at": f"2026-01-31T12:00:{number:02}Z",
                "run_id": f"run-{number // 30}",
                "status": "failed" if failed else "processed",
                "error_type": "SCHEMA_INVALID:encoding" if failed else None,
                "partition_key": f"p{number % 2}",
                "left_out": None,
            }
            store.db.table("attempts").insert(attempt)
    return tmp_path


def test_the_newest_first_and_at_most_fifty(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "--home", str(home)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert len(lines) == 50
    assert err == "the newest 50; ask for more with --limit\n"
    assert lines[0].split() == ["2026-01-31T12:00:59Z", "processed", "docs/59.md", "(markdown", "1.2)"]
    assert lines[2].split()[1] == "SCHEMA_INVALID:encoding"


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (["--status", "failed"], 20),
        (["--status", "processed", "--run", "run-1"], 20),
        (["--partition", "p1", "--limit", "7"], 7),
        (["--source", "docs/1"], 11),
        (["--source", "nowhere"], 0),
    ],
)
def test_filters(filters: list[str], count: int, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "--home", str(home), "--json", *filters]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found) == count
    assert all({"source_uri", "source_checksum", "parser_version", "status", "error_type"} <= set(row) for row in found)
    assert run(["ledger", "--home", str(home), *filters]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == count
    assert bool(err) is (count in (0, 7)), "nothing found, or more to ask for"


def test_without_a_ledger_it_says_so_and_makes_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"
    assert run(["ledger", "--home", str(home)]) == 0
    assert "no ledger at" in capsys.readouterr().err
    assert run(["ledger", "--home", str(home), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert not home.exists()


def test_what_is_no_ledger_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ingest.db").write_bytes(b"no database " * 100)
    assert run(["ledger", "--home", str(tmp_path)]) not in (Exit.OK, Exit.BUG)
    assert "ingest.db" in capsys.readouterr().err


def test_a_name_cannot_forge_a_row_or_move_the_cursor() -> None:
    assert printable("a\nb\x1b[2J\u202e é") == "a\\nb\\x1b[2J\\u202e é"
