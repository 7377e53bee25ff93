"""What a run holds in memory does not grow with the number of files: that is in tables on disk."""

import gc
import tracemalloc
from pathlib import Path

import pytest

from tests.producers.bench import LATER, Bench

FEW, MANY = 700, 1400
MOST_BYTES = 400
"""For each file more: caches of a fixed size fill up. Lists of all files and families take more than a thousand."""


def peaks(home: Path, files: int) -> dict[str, int]:
    """The most bytes that Python held at once, in one run after the other."""
    home.mkdir()
    bench = Bench(home)
    for number in range(files):
        bench.write(f"{number % 10}/{number}.txt", f"Text {number}")
    bench.grow_old()
    found = {}

    def measure(name: str, **said: object) -> None:
        gc.collect()
        tracemalloc.start(1)
        try:
            assert bench.ingest(kind="text", **said).documents == files
            found[name] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    measure("first")
    measure("again")
    bench.write("0/0.txt", "other")
    measure("one changed, and every file is read", every_file=True, now=LATER)
    return found


@pytest.fixture(scope="module")
def for_each_file(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    folder = tmp_path_factory.mktemp("flat")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("producers.standing.Draft.LISTED", 10)  # sources that a manifest names: else a thousand
        peaks(folder / "warm", 5)  # what is loaded once
        few, many = peaks(folder / "few", FEW), peaks(folder / "many", MANY)
    return {name: (many[name] - few[name]) / (MANY - FEW) for name in few}


@pytest.mark.parametrize("run", ["first", "again", "one changed, and every file is read"])
def test_memory_does_not_grow_with_the_number_of_files(for_each_file: dict[str, float], run: str) -> None:
    assert for_each_file[run] < MOST_BYTES


def test_no_room_for_tables_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path)
    for number in range(100):
        bench.write(f"{number}.txt", f"Text {number}")
    few_pages = "pragma page_size = 512; pragma max_page_count = 120"
    monkeypatch.setattr("producers.tables._SETTINGS", few_pages)
    with pytest.raises(OSError, match="make room on that disk"):
        bench.ingest(kind="text")
    monkeypatch.undo()
    assert bench.ingest(kind="text").documents == 100
