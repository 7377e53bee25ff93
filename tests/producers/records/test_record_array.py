"""A JSON array of records: its elements by their places, whatever stands in them."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.chunkbus import findings
from chunksink.producers.bridges import BridgeReader
from chunksink.producers.detect import look_at
from chunksink.producers.records import array
from chunksink.producers.records.files import RecordFile
from tests.producers.bridges.samples import markdown_chunk
from tests.producers.reading import read_all, refusals

values = st.recursive(
    st.none() | st.integers() | st.text(st.characters(codec="utf-8")) | st.sampled_from(['"', "\\", '\\"', "],[", "{"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(values, max_size=5), st.sampled_from([None, 0, 2]), st.integers(1, 7))
def test_the_elements_of_any_array(held: list[Any], indent: int | None, block: int) -> None:
    data = b"\xef\xbb\xbf " + json.dumps(held, indent=indent, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(array, "_BLOCK", block)
        found = [data[start:end] for start, end in array.elements(BytesIO(data), 4)]
    assert [json.loads(element) for element in found if element.strip()] == held


def write(path: Path, data: str) -> Path:
    path.write_text(data, newline="")
    return path


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", ["chunks.json", "chunks.jsonl"])
def test_records_of_an_array_are_those_of_lines(tmp_path: Path, name: str, indent: int | None) -> None:
    records = [markdown_chunk(number, chunk_text=f'{number}: "],[" \\') for number in range(3)]
    lines = write(tmp_path / "lines.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    together = write(tmp_path / name, "\ufeff\n" + json.dumps(records, indent=indent))
    produced, left = read_all(BridgeReader(), together)
    assert left == []
    assert produced == read_all(BridgeReader(), lines)[0]


def test_what_is_wrong_is_told_with_its_line_and_the_others_go_on(tmp_path: Path) -> None:
    good, odd = (json.dumps(markdown_chunk(0, document=name), indent=1) for name in ("a", "b"))
    path = write(tmp_path / "r.json", f'\n\n[\n{good},\r\n5,\n\n{odd},\n  {{"chunk_text": "cut o')
    produced, left = read_all(BridgeReader(), path)
    assert [one.records[0]["document_id"] for one in produced] == ["a", "b"]
    number = 4 + good.count("\n") + 1
    last = number + 2 + odd.count("\n") + 1
    assert refusals(left) == [(line, findings.JSON_PARSE, True) for line in (number, last, None)]


@pytest.mark.parametrize("end", ["", ",", ",\n", "]]", "][", ']"'])
def test_an_array_that_is_not_closed_is_told(tmp_path: Path, end: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (tmp_path / "r.json", folder / "r.json"):
        write(path, f"[{json.dumps(markdown_chunk())}{end}")
    for read in (tmp_path / "r.json", folder):
        produced, left = read_all(BridgeReader(), read)
        assert len(produced) == 1
        told = [item for item in left if "brackets do not match" in item.reason]
        assert [(item.code, item.is_failure, item.line) for item in told] == [(findings.JSON_PARSE, True, None)]


def test_what_stands_behind_it_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", f"[\n{json.dumps(markdown_chunk())}\n]\n oops")
    produced, left = read_all(BridgeReader(), path)
    assert len(produced) == 1
    assert refusals(left) == [(4, findings.JSON_PARSE, True)]


def test_what_stands_between_two_is_told(tmp_path: Path) -> None:
    one, two, three = (json.dumps(markdown_chunk(number)) for number in range(3))
    path = write(tmp_path / "r.json", f"[{one},\n{two}] lost\n[{three}]\n{{}} {{}}")
    produced, left = read_all(BridgeReader(), path)
    assert len(produced[0].records) == 3
    assert [line for line, _, _ in refusals(left)] == [2, 4, 4]


@pytest.mark.parametrize("first", ["[INFO] export begins", "[cut off", '["a", {', "[", "[ 5,"])
def test_a_first_line_that_only_looks_like_one_is_refused_alone(tmp_path: Path, first: str) -> None:
    lines = "".join(json.dumps(markdown_chunk(number)) + "\n" for number in range(3))
    path = write(tmp_path / "r.jsonl", f"{first}\n5\n{lines}")
    assert look_at(path).kind == "chunks"
    _, left = read_all(BridgeReader(), path)
    assert refusals(left) == [(1, findings.JSON_PARSE, True), (2, findings.JSON_PARSE, True)]


def test_a_recording_may_begin_with_a_line_in_brackets(tmp_path: Path) -> None:
    event = {"event_type": "segment", "pane_id": 1, "text": "ls"}
    path = write(tmp_path / "r.jsonl", f"[INFO] begins\n{json.dumps(event)}\n")
    assert look_at(path).kind == "recorder"
    assert look_at(write(tmp_path / "r.json", json.dumps([event]))).kind is None


def test_lines_within_an_array_are_no_records(tmp_path: Path) -> None:
    document = {"source": {"path": "a.pdf"}, "blocks": [{"text": "x", "metadata": {"filename": "a.pdf"}}]}
    path = write(
        tmp_path / "r.json",
        '[{"source": {"path": "a.pdf"}, "blocks": [\n' + json.dumps(document["blocks"][0]) + "\n]}]",
    )
    assert look_at(path).kind == look_at(write(tmp_path / "s.json", json.dumps([document]))).kind == "parsed"


def test_lines_that_are_arrays_are_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", f"[1]\n{json.dumps(markdown_chunk())}\n")
    produced, left = read_all(BridgeReader(), path)
    assert len(produced) == 1
    assert refusals(left) == [(1, findings.JSON_PARSE, True)]


def test_an_element_over_the_limit_is_cut(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", json.dumps([{"a": "x" * 100}, {"b": 1}]))
    with RecordFile(path, limit=20) as file:
        assert [(place.offset, len(data)) for place, data in file.records()] == [(1, 21), (112, 8)]


def test_white_space_is_no_part_of_an_element(tmp_path: Path) -> None:
    far = "\n" * 10_000
    path = write(tmp_path / "r.json", f'{far[:3]}[{far}{{"a":\n\n"{"x" * 100}\n"}}, {far} 5{far}]')
    with RecordFile(path, limit=20) as file:
        found = [(place.line, place.length, len(data)) for place, data in file.records()]
    assert found == [(10_004, 21, 21), (20_007, 20 + 1, 1)]
    (tmp_path / "folder").mkdir()
    path.rename(tmp_path / "folder" / "r.json")
    with RecordFile(tmp_path / "folder", limit=20) as file:
        assert [len(data) for _, data in file.records()] == [21, 1]


@pytest.mark.parametrize("indent", [None, 1])
def test_families_of_one_line_are_families(tmp_path: Path, indent: int | None) -> None:
    """In the order of their last records, wherever the lines end."""
    records = [markdown_chunk(number // 3, document=f"d{number % 3}") for number in range(7)]
    path = write(tmp_path / "r.json", json.dumps(records, indent=indent))
    produced, left = read_all(BridgeReader(), path)
    assert left == []
    assert [[chunk["document_id"] for chunk in family.records] for family in produced] == [
        ["d1"] * 2,
        ["d2"] * 2,
        ["d0"] * 3,
    ]


def test_what_an_array_holds_is_seen_at_its_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunksink.producers.detect._HEAD_BYTES", 1000)
    monkeypatch.setattr("chunksink.producers.detect.LARGEST", 1000)
    many = [markdown_chunk(number) for number in range(100)]
    for name, held, kind in (
        ("lines.json", json.dumps(many, indent=1), "chunks"),
        ("one-line.json", json.dumps(many), "chunks"),
        ("after-others.json", json.dumps([{"a": 1}, "x", *many]), "chunks"),
        ("others.json", json.dumps([{"a": 1}] * 200), None),
        ("events.json", json.dumps([{"event_type": "gap"}] * 200), None),
        ("few.json", json.dumps(many[:1]), "chunks"),
    ):
        assert look_at(write(tmp_path / name, held)).kind == kind, name


def test_files_of_a_folder_may_be_arrays(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    first, second, third = (markdown_chunk(number) for number in range(3))
    write(folder / "a.json", json.dumps([first, second], indent=1))
    write(folder / "b.json", json.dumps(third, indent=1))
    write(folder / "c.json", json.dumps([5]))
    [family], left = read_all(BridgeReader(), folder, uri="records")
    assert [chunk["text"] for chunk in family.records] == [one["chunk_text"] for one in (first, second, third)]
    assert [(one.source_uri, one.code) for one in left] == [("records/c.json", findings.JSON_PARSE)]
