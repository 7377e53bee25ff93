"""Scrubbing a keyword build: no byte of what was deleted is left in its files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from chunksink.sinks.conformance.samples import family, held, wanted
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import Transient
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.fts.sink import FILE

CANARY = "kanarienvogelsang"
SECRET = family("secret.md", [f"{CANARY}{number} 東京{CANARY}" for number in range(600)])
KEPT = [family(f"kept{number}.md", [f"plain words {number} 東京都庁"]) for number in range(10)]


def traces(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir() if CANARY[1:].encode() in file.read_bytes()}


@pytest.fixture
def sink(tmp_path: Path) -> FtsSink:
    sink = FtsSink(tmp_path)
    with sink.create(Marker("home", "b1", 1)) as build:
        build.replace([*KEPT, SECRET])
    return sink


def test_deleted_by_a_sqlite_that_overwrites_nothing(sink: FtsSink, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "b1" / FILE)) as other:
        other.execute("PRAGMA secure_delete = OFF")
        other.execute("DELETE FROM documents WHERE parent_id = ?", [SECRET.parent_id])
        other.commit()
    assert traces(tmp_path / "b1") == {FILE}
    with sink.open("b1") as build, closing(sink.reader("b1")) as reader:
        build.scrub()
        assert held(build) == wanted(KEPT)
        assert len(reader.search("plain words")) == len(reader.search("東京都庁")) == 10
        assert reader.search(CANARY) == []
    assert traces(tmp_path / "b1") == set()


def test_the_log_of_one_that_is_being_read(sink: FtsSink, tmp_path: Path) -> None:
    """Its tail is never written again where nobody empties it."""
    with closing(sink.reader("b1")) as reader, sink.open("b1") as build:
        assert reader.search("plain")
        build.replace([SECRET])
        build.delete([SECRET.parent_id])
        assert f"{FILE}-wal" in traces(tmp_path / "b1")
        build.scrub()
        assert traces(tmp_path / "b1") == set()


def test_while_an_answer_is_being_read_it_says_so(sink: FtsSink, tmp_path: Path) -> None:
    with sink.open("b1") as build, closing(sqlite3.connect(tmp_path / "b1" / FILE)) as other:
        build._connection.execute("PRAGMA busy_timeout = 10")
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM documents").fetchone()
        with pytest.raises(Transient, match="is being read"):
            build.scrub()
        other.execute("ROLLBACK")
        build.scrub()
        assert held(build) == wanted([*KEPT, SECRET])
