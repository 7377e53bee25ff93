"""Files of JSON records: every layout, and refused records."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.ingest import json_records
from chunksink.ingest.errors import RecordRefused, SourceFailed
from chunksink.ingest.json_records import NumberedRecord, find_records, parse_record, read_records
from chunksink.ingest.model import Notice

ROWS = [{"id": number, "text": f'Row {number}: "],[" \\ é'} for number in range(3)]
values = st.recursive(
    st.none() | st.integers(-9, 9) | st.text() | st.sampled_from(['"', "\\", '\\"', "],[", "{"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=3), values, max_size=3)


def is_hit(record: Record) -> bool:
    return "text" in record


def read(path: Path, data: str | bytes, limit: int = 2**20) -> tuple[list[Record], list[tuple[str, int | None]]]:
    """The records, and code and line of each notice."""
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    entries = list(read_records(path, is_hit, limit))
    return (
        [entry.record for entry in entries if isinstance(entry, NumberedRecord)],
        [(entry.code, entry.line) for entry in entries if isinstance(entry, Notice)],
    )


def as_lines(records: list[Any]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", as_lines(ROWS)),
        ("a.json", as_lines(ROWS)),
        ("a.jsonl", "\ufeff" + as_lines(ROWS).replace("\n", "\r\n\r\n  \r\n")),
        ("a.json", json.dumps(ROWS)),
        ("a.jsonl", json.dumps(ROWS)),
        ("a.json", "\ufeff\n" + json.dumps(ROWS, indent=1)),
        ("a.json", json.dumps(ROWS, indent=2).replace("\n", "\r\n")),
        ("a.json", json.dumps({"data": ROWS})),
        ("a.json", json.dumps({"total": 3, "found": {"tags": ["x"], "docs": ROWS}, "next": None}, indent=1)),
    ],
)
def test_read_records_when_layout_differs_returns_the_same(tmp_path: Path, name: str, data: str) -> None:
    assert read(tmp_path / name, data) == (ROWS, [])


@pytest.mark.parametrize("indent", [None, 2])
def test_read_records_when_file_is_one_object_returns_it(tmp_path: Path, indent: int | None) -> None:
    record = {"text": "Words", "comments": ROWS}
    assert read(tmp_path / "a.json", json.dumps(record, indent=indent)) == ([record], [])


@pytest.mark.parametrize(
    "value",
    [{"articles": ROWS, "more": ROWS[:1]}, {"a": {"b": {"c": {"d": ROWS}}}}, {"data": [{"id": 1}]}, {"data": []}],
)
def test_find_records_when_no_list_or_several_match_returns_none(value: Record) -> None:
    assert find_records(value, is_hit) is None


@pytest.mark.parametrize(("name", "data"), [("a.jsonl", ""), ("a.json", "\ufeff \n\n"), ("a.json", "[ ]")])
def test_read_records_when_file_is_empty_returns_nothing(tmp_path: Path, name: str, data: str) -> None:
    assert read(tmp_path / name, data) == ([], [])


@given(st.lists(objects, max_size=5), st.sampled_from([None, 0, 2]), st.booleans(), st.integers(1, 9))
def test_read_records_when_array_is_read_in_any_blocks_returns_its_elements(
    tmp_path_factory: pytest.TempPathFactory, records: list[Record], indent: int | None, as_ascii: bool, block: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "array.json"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_records, "_BLOCK_CHARACTERS", block)
        assert read(path, json.dumps(records, indent=indent, ensure_ascii=as_ascii)) == (records, [])


@given(objects, objects)
def test_read_records_when_anything_surrounds_the_list_finds_it(
    tmp_path_factory: pytest.TempPathFactory, before: Record, after: Record
) -> None:
    path = tmp_path_factory.getbasetemp() / "answer.json"
    value = {"before": [before], "inner": {"after": after, "found": ROWS}}
    assert read(path, json.dumps(value)) == (ROWS, [])


@pytest.mark.parametrize(
    ("data", "good", "lines"),
    [
        ('[{"a": 1}, 5, {"b": 2}]', 2, [2]),
        ('[{"a": 1}, {"b": }, {"c": "]"}]', 1, [2]),
        ('[{"a": 1}, {"b": "cut o', 1, [2]),
        ('[{"a": 1}', 1, [2]),
        ("[", 0, [1]),
        ('[{"a": 1}]\n oops', 1, [2]),
        ('[{"a": 1}]]', 1, [2]),
        ('[{"a": 1}, {"b": 1, "b": 2}, {"c": "\n"}, {"d": "]"}]', 2, [2, 3]),
    ],
)
@pytest.mark.parametrize("block", [1, 3, 2**20])
def test_read_records_when_array_is_broken_reports_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str, good: int, lines: list[int], block: int
) -> None:
    monkeypatch.setattr(json_records, "_BLOCK_CHARACTERS", block)
    records, notices = read(tmp_path / "a.json", data)
    assert (len(records), notices) == (good, [(findings.JSON_PARSE, line) for line in lines])


@pytest.mark.parametrize("first", ["[INFO] export begins", "[cut off", '["a", {', "[", "[ 5,", "[1]", "{"])
def test_read_records_when_first_line_of_jsonl_is_broken_reads_the_rest(tmp_path: Path, first: str) -> None:
    records, notices = read(tmp_path / "a.jsonl", f"{first}\n5\n{as_lines(ROWS)}")
    assert (records, notices) == (ROWS, [(findings.JSON_PARSE, 1), (findings.JSON_PARSE, 2)])


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ('{\n"a": 1,\n', findings.JSON_PARSE),
        ('{\n"a": 1,\n"a": 2}', findings.JSON_PARSE),
        ('{\n"a": "\\ud800"}', findings.ENCODING),
    ],
)
def test_read_records_when_the_one_object_is_broken_fails(tmp_path: Path, data: str, code: str) -> None:
    with pytest.raises(SourceFailed) as failure:
        read(tmp_path / "a.json", data)
    assert failure.value.code == code


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("block", [7, 2**20])
def test_read_records_when_one_is_over_the_limit_reads_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_array: bool, block: int
) -> None:
    monkeypatch.setattr(json_records, "_BLOCK_CHARACTERS", block)
    records = [{"a": "x"}, {"a": "x" * 1000}, {"a": "y"}]
    data = json.dumps(records) if as_array else as_lines(records)
    assert read(tmp_path / "a.json", data, limit=50) == ([records[0], records[2]], [(findings.LINE_TOO_LONG, 2)])


def test_read_records_when_the_one_object_is_too_large_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "MAX_VALUE_BYTES", 100)
    with pytest.raises(SourceFailed) as failure:
        read(tmp_path / "a.json", json.dumps({"text": "x" * 200}, indent=1))
    assert failure.value.code == findings.LINE_TOO_LONG


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"a": NaN}', findings.JSON_PARSE),
        (b'{"a": {"b": 1, "b": 1}}', findings.JSON_PARSE),
        (b'{"a": "\\ud800"}', findings.ENCODING),
        (b'{"a": "\x00"}', findings.ENCODING),
        (b'{"a": "\xff"}', findings.ENCODING),
        (b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}", findings.JSON_PARSE),
        (b'{"a": ' + b"[" * 100_000, findings.JSON_PARSE),
        (b'{"a": "' + b"x" * 9 * 2**20 + b'"}', findings.LINE_TOO_LONG),
    ],
)
def test_parse_record_when_json_is_not_clean_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(RecordRefused) as refusal:
        parse_record(data)
    assert refusal.value.code == code


def test_parse_record_when_integers_are_not_exact_keeps_their_digits() -> None:
    assert parse_record(b'{"a": 9007199254740993, "b": 9007199254740991, "c": -123456789012345678901}') == {
        "a": "9007199254740993",
        "b": 9007199254740991,
        "c": "-123456789012345678901",
    }
