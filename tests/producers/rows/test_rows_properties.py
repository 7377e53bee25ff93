"""What must hold for every row: no word is lost, whatever writes the file, and the same bytes each time."""

import csv
import tracemalloc
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.chunkbus import findings
from chunksink.producers.produced import LeftOut, Produced
from chunksink.producers.rows.reader import RowReader
from chunksink.producers.rows.separated import SeparatedFile
from tests.producers.reading import MAKING, write_lines

text = st.text(alphabet="ab .!?,;\"'茶é-#|`<p>/\n\r\t\u2028", max_size=60)
long_text = text | text.map(lambda said: (said + " word. ") * 40)
field = text.filter(lambda said: said != "")
rows = st.lists(
    st.fixed_dictionaries(
        {"id": st.integers(0, 5).map(str), "text": long_text}, optional={"title": field, "note": field}
    ),
    max_size=8,
)
NAMES = ("id", "text", "title", "note")


def solid(said: str) -> str:
    return "".join(said.split())


@given(rows)
def test_no_word_is_lost_and_two_readings_agree(
    tmp_path_factory: pytest.TempPathFactory, written: list[dict[str, str]]
) -> None:
    path = write_lines(tmp_path_factory.mktemp("p") / "r.jsonl", written)
    found = list(RowReader().read(path, "r.jsonl", MAKING))
    assert found == list(RowReader().read(path, "r.jsonl", MAKING))
    assert {one.code for one in found if isinstance(one, LeftOut) and one.is_failure} <= {findings.DUPLICATE_IDS}
    last = {row["id"]: row for row in written}
    families = {one.source_uri.rpartition("=")[2]: one for one in found if isinstance(one, Produced)}
    assert families.keys() <= last.keys()
    for number, row in last.items():
        own = (
            "".join(solid(chunk["text"][chunk["overlap_chars"] :]) for chunk in families[number].records)
            if number in families
            else ""
        )
        if "<" not in row["text"]:
            assert own == solid(row["text"])


@given(rows, st.sampled_from([",", ";", "\t", "|"]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), st.booleans())
def test_separated_values_say_what_json_says(
    tmp_path_factory: pytest.TempPathFactory,
    written: list[dict[str, str]],
    separator: str,
    quoting: int,
    has_mark: bool,
) -> None:
    path = tmp_path_factory.mktemp("p") / "r.csv"
    with path.open("w", newline="", encoding="utf-8-sig" if has_mark else "utf-8") as file:
        writer = csv.DictWriter(file, NAMES, delimiter=separator, quoting=quoting)
        writer.writeheader()
        writer.writerows(written)
    with SeparatedFile(path, 2**20) as read:
        records = [read.parse(data) for _, data in read.records()]
        assert [read.parse(read.read(place)) for place, _ in read.records()] == records
    assert records == [{name: row[name] for name in NAMES if row.get(name)} for row in written]


def test_a_file_of_any_size_is_read_in_little_memory(tmp_path: Path) -> None:
    """One row at a time, of each kind of file."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(orjson.dumps({"id": n, "text": f"Words of {n}. " * 80}) + b"\n" for n in range(4000)))
    table = tmp_path / "r.csv"
    table.write_text("id,text\n" + "".join(f'{n},"{f"Words of {n}. " * 80}"\n' for n in range(4000)))
    for file in (path, table):
        next(RowReader().read(file, file.name, MAKING))  # what is imported and compiled once
        reading = RowReader().read(file, file.name, MAKING)
        tracemalloc.start()
        for _ in zip(range(100), reading, strict=False):
            pass
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < path.stat().st_size / 4, peak
