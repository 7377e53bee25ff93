"""What a run holds in memory grows neither with the number of files nor with that of the families of one file: that is
in tables and files on disk."""

import json
import sqlite3
from pathlib import Path

import pytest

from chunksink.chunkbus.errors import StoreUnreadable
from chunksink.producers.memory import Memory
from tests.conftest import HEAVY
from tests.producers.bench import LATER, NOW, Bench, growth
from tests.producers.bridges.samples import markdown_chunk

MOST_OF_A_FILE = 400
"""Bytes for each one more: caches of a fixed size fill up. Lists of all files and families take over a thousand."""
MOST_OF_A_FAMILY = 500
"""Lists of all families of a file take more than eight hundred."""
AGAIN = "one changed, and every file is read"


def of_files(home: Path, files: int) -> dict[str, int]:
    home.mkdir()
    bench = Bench(home)
    for number in range(files):
        bench.write(f"{number % 10}/{number}.txt", f"Text {number}")
    bench.grow_old()
    found = {name: bench.peak_of(files, kind="text") for name in ("first", "again")}
    bench.write("0/0.txt", "other")
    return {**found, AGAIN: bench.peak_of(files, kind="text", every_file=True, now=LATER)}


def of_families(home: Path, families: int) -> dict[str, int]:
    home.mkdir()
    bench = Bench(home)

    def write(text: str) -> None:
        records = (markdown_chunk(document=f"d{number}", chunk_text=text) for number in range(families))
        bench.write("r.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        bench.grow_old()

    write("Text")
    found = {name: bench.peak_of(families, kind="chunks", now=now) for name, now in (("first", NOW), ("again", LATER))}
    write(" ")
    return {**found, "emptied": bench.peak_of(0, kind="chunks", now=LATER)}


@pytest.fixture(scope="module")
def for_each_file(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    return growth(of_files, tmp_path_factory.mktemp("files"), 400, 900)


@pytest.fixture(scope="module")
def for_each_family(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    return growth(of_families, tmp_path_factory.mktemp("families"), 600, 1000)


@pytest.mark.parametrize("run", ["first", "again", AGAIN])
def test_memory_does_not_grow_with_the_number_of_files(for_each_file: dict[str, float], run: str) -> None:
    assert for_each_file[run] < MOST_OF_A_FILE


@pytest.mark.skipif(not HEAVY, reason="takes long for what it shows: `make soak`")
@pytest.mark.parametrize("run", ["first", "again", "emptied"])
def test_memory_does_not_grow_with_the_number_of_families(for_each_family: dict[str, float], run: str) -> None:
    assert for_each_family[run] < MOST_OF_A_FAMILY


def test_no_room_for_tables_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    for number in range(100):
        bench.write(f"{number}.txt", f"Text {number}")
    with monkeypatch.context() as patch:
        patch.setattr("chunksink.producers.tables._SETTINGS", "pragma page_size = 512; pragma max_page_count = 120")
        with pytest.raises(OSError, match="make room on that disk") as told:
            bench.ingest(kind="text")
    assert told.value.filename == "the folder for temporary files"
    assert bench.ingest(kind="text").documents == 100


def test_what_is_wrong_with_another_database_is_not_said_of_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever read it explains it: nobody should move the folder for temporary files away."""
    bench = Bench(tmp_path)
    bench.write("a.txt", "Text")
    damaged = sqlite3.DatabaseError("database disk image is malformed")
    damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT

    def families(*_given: object) -> None:
        raise damaged

    bench.ingest(kind="text")
    monkeypatch.setattr(Memory, "families", families)
    with pytest.raises(StoreUnreadable, match=r"ingest\.db is damaged"), bench.memory:
        bench.ingest(kind="text")
