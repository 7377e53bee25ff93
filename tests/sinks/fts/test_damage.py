"""What somebody else did to the file of the keyword sink."""

import os
import sqlite3
from pathlib import Path

import pytest

from chunksink.sinks.conformance.samples import held, marker, wanted
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildBroken, BuildMissing, WrongShape
from chunksink.sinks.fts import FtsSink
from tests.support.many_families import FAMILIES, whole


@pytest.fixture
def keyword(tmp_path: Path) -> tuple[FtsSink, Marker, Path]:
    sink, signed = FtsSink(tmp_path / "fts"), marker()
    build = sink.create(signed)
    build.replace(FAMILIES)
    build.close()
    return sink, signed, tmp_path / "fts" / signed.build_id / "fts.db"


def test_a_folder_that_lost_its_file_is_made_again(keyword: tuple[FtsSink, Marker, Path]) -> None:
    sink, signed, path = keyword
    path.unlink()
    with pytest.raises(BuildMissing):
        sink.open(signed.build_id)
    with sink.create(signed) as build:
        assert (build.count(), build.marker()) == (0, signed)


@pytest.mark.parametrize("table", ["documents", "marker"])
def test_a_table_dropped_behind_our_back(keyword: tuple[FtsSink, Marker, Path], table: str) -> None:
    sink, signed, path = keyword
    build = sink.open(signed.build_id)
    run(path, f"DROP TABLE {table}")
    with pytest.raises(BuildBroken, match="verify --repair"):
        build.count() if table == "documents" else build.marker()
    build.close()
    with pytest.raises(BuildBroken, match="verify --repair"):
        sink.open(signed.build_id)
    whole(sink)


def test_a_row_that_nobody_can_read_differs_and_hinders_nothing(keyword: tuple[FtsSink, Marker, Path]) -> None:
    sink, signed, path = keyword
    run(path, "UPDATE documents SET tags = 'no list', year = 'x' WHERE row = 1")
    build = sink.open(signed.build_id)
    found = set(held(build, content=True)) ^ set(wanted(FAMILIES))
    assert {row[3:] for row in found} - {row[3:] for row in wanted(FAMILIES)} == {("", "")}
    assert len(found) == 2
    build.close()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_a_file_cut_off_is_broken_or_tells_what_is_there(keyword: tuple[FtsSink, Marker, Path], share: float) -> None:
    sink, signed, path = keyword
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises((BuildBroken, WrongShape), match=r"verify --repair|rebuild it"):
        build = sink.open(signed.build_id)
        build.marker()
        list(build.scan(content=True))
    whole(sink)


def run(path: Path, statement: str) -> None:
    other = sqlite3.connect(path)
    other.execute(statement)
    other.commit()
    other.close()
