"""What a run holds in memory does not grow with the number of families that one source gives."""

import gc
import json
import tracemalloc
from pathlib import Path

import pytest

from tests.producers.bench import LATER, NOW, Bench
from tests.producers.bridges.samples import markdown_chunk

FEW, MANY = 1000, 1600
MOST_BYTES = 500
"""For each family more: buffers of a fixed size fill up. Lists of all families take more than eight hundred."""


def peaks(home: Path, families: int) -> dict[str, int]:
    """The most bytes that Python held at once, in one run after the other."""
    home.mkdir()
    bench = Bench(home)
    found = {}

    def write(text: str) -> None:
        records = (markdown_chunk(document=f"d{number}", chunk_text=text) for number in range(families))
        bench.write("r.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        bench.grow_old()

    def measure(name: str, now: str, documents: int) -> None:
        gc.collect()
        tracemalloc.start(1)
        try:
            assert bench.ingest(kind="chunks", now=now).documents == documents
            found[name] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    write("Text")
    measure("first", NOW, families)
    measure("again", LATER, families)
    write(" ")
    measure("emptied", LATER, 0)
    return found


@pytest.fixture(scope="module")
def for_each_family(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    folder = tmp_path_factory.mktemp("flat")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("producers.standing.Draft.LISTED", 10)  # sources that a manifest names: else a thousand
        patched.setattr("producers.reading._MOST_NAMED", 10)  # what is told of one file: else a thousand
        peaks(folder / "warm", 5)  # what is loaded once
        few, many = peaks(folder / "few", FEW), peaks(folder / "many", MANY)
    return {name: (many[name] - few[name]) / (MANY - FEW) for name in few}


@pytest.mark.parametrize("run", ["first", "again", "emptied"])
def test_memory_does_not_grow_with_the_number_of_families(for_each_family: dict[str, float], run: str) -> None:
    assert for_each_family[run] < MOST_BYTES
