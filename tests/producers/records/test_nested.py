"""Records within one JSON value: `{"data": [...]}` is read as the array alone would be, where nothing else is in it."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.producers import errors
from chunksink.producers.bridges import BridgeReader
from chunksink.producers.detect import look_at
from chunksink.producers.ir import IrReader
from chunksink.producers.parsed import ParsedReader
from chunksink.producers.produced import RecordReader
from chunksink.producers.records.nested import find_list
from chunksink.producers.rows.reader import RowReader
from tests.producers.bench import LATER, Bench
from tests.producers.bridges.samples import markdown_chunk
from tests.producers.ir.samples import ir_record
from tests.producers.parsed.samples import paragraph, parsed
from tests.producers.reading import read_all, refusals

ROWS = [
    {"id": number, "title": f"Row {number}", "text": f'Text "{number}" ]}} \u00e9 of a row.'} for number in range(3)
]
ENVELOPES = [
    {"data": ROWS},
    {"total": 3, "\u00e9\u00e8": ["a", {"b": "]"}], "data": ROWS, "next": None},
    {"meta": {"page": 1, "data": 5}, "response": {"numFound": 3, "docs": ROWS}, "took": 0.1},
]
names = st.text(max_size=3)
fillings = st.recursive(
    st.none() | st.integers() | st.sampled_from(['"', "\\", "]}", "\u00e9"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)


def is_hit(record: Record, *, is_alone: bool) -> bool:
    return "hit" in record


def found_in(data: bytes) -> bytes:
    found = find_list(data, orjson.loads(data), is_hit)
    assert found is not None
    return data[found.start : found.end]


@given(
    st.dictionaries(names, fillings, max_size=3),
    st.dictionaries(names, fillings, max_size=3),
    st.sampled_from([None, 1]),
)
def test_the_list_is_found_whatever_stands_around_it(before: Record, after: Record, indent: int | None) -> None:
    records = [{"hit": "x" * 2000, "more": [before]}]
    inner = {**before, "found": records, **{name + "+": value for name, value in after.items()}}
    data = json.dumps({**before, "inner": inner, **after}, indent=indent, ensure_ascii=False).encode()
    assert json.loads(found_in(data)) == records


def test_of_a_name_that_stands_twice_the_last_counts() -> None:
    data = b'{"a": [], "a": [{"hit": "once and for all"}], "b": 1}'
    assert found_in(data) == b'[{"hit": "once and for all"}]'


def write(path: Path, value: Any, indent: bool) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else 0))
    return path


@pytest.mark.parametrize("indent", [False, True])
@pytest.mark.parametrize("envelope", ENVELOPES)
def test_rows_within_a_value_are_those_of_an_array(tmp_path: Path, envelope: Any, indent: bool) -> None:
    array = write(tmp_path / "a" / "answer.json", ROWS, indent)
    within = write(tmp_path / "b" / "answer.json", envelope, indent)
    produced, left = read_all(RowReader(), within)
    assert left == []
    assert look_at(within).kind == "rows"
    assert [one.records[0]["text"] for one in produced] == [
        one.records[0]["text"] for one in read_all(RowReader(), array)[0]
    ]


@pytest.mark.parametrize(
    ("reader", "record", "kind"),
    [
        (BridgeReader(), markdown_chunk(0, document="d"), "chunks"),
        (IrReader(), ir_record(), "ir"),
        (ParsedReader(), parsed("a.x", paragraph("Words.")), "parsed"),
    ],
)
def test_records_of_other_forms(tmp_path: Path, reader: RecordReader, record: Record, kind: str) -> None:
    path = write(tmp_path / "answer.json", {"count": 1, "results": [record]}, indent=False)
    produced, left = read_all(reader, path)
    assert (len(produced), left, look_at(path).kind) == (1, [], kind)


def test_what_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(
        '\ufeff{\n"total": 2,\n"data": [\n{"id": 1, "text": "A text."},\n{"id": 2, "id": 3, "text": "x"}\n]}'
    )
    produced, left = read_all(RowReader(), path)
    assert len(produced) == 1
    assert refusals(left) == [
        (5, findings.JSON_KEY_TWICE if hasattr(findings, "JSON_KEY_TWICE") else left[0].code, True)
    ]


@pytest.mark.parametrize(
    "value",
    [
        {"about": "What these rows are made of.", "data": ROWS},
        {"title": "A post", "text": "Hi", "comments": ROWS},
        {"articles": ROWS, "authors": ROWS[:1]},
        {"tags": [{"name": "pets", "id": 1, "text": "Pets"}], "paths": {f"/pets/{n}": {"get": n} for n in range(9)}},
        {"a": {"b": {"c": {"d": ROWS}}}},
    ],
)
def test_where_nobody_knows_what_is_meant_nothing_is_guessed(bench: Bench, value: Any) -> None:
    write(bench.docs / "answer.json", value, indent=False)
    report = bench.ingest(kind="auto")
    assert (report.documents, report.left_out) == (0, {errors.RECORD_FORM_UNKNOWN: 1})


@pytest.mark.parametrize("levels", [240, 300, 1010])
@pytest.mark.parametrize("where", ["beside", "within"])
def test_what_is_nested_deeply_is_one_source_that_fails_and_not_the_run(bench: Bench, levels: int, where: str) -> None:
    rows = [ROWS[0] | ({"x": "DEEP"} if where == "within" else {}), *ROWS[1:]]
    value = {"data": rows} | ({"x": "DEEP"} if where == "beside" else {})
    bench.write("a.json", json.dumps(value).replace('"DEEP"', "[" * levels + "1" + "]" * levels))
    bench.write("b.md", "# Words")
    for kind in ("auto", "rows", "chunks", "parsed", "ir"):
        bench.ingest(kind=kind)
        assert [record["text"] for record in bench.records()][-1] == "# Words"


def test_an_answer_that_is_empty_has_no_records(bench: Bench) -> None:
    write(bench.docs / "a.json", {"total": 3, "data": ROWS}, indent=False)
    assert bench.ingest(kind="auto").documents == 3
    write(bench.docs / "a.json", {"total": 0, "data": []}, indent=False)
    report = bench.ingest(kind="auto", prune=True, now=LATER)
    assert (report.documents, report.failed) == (0, 0)


@pytest.mark.parametrize("value", [{"data": [], "status": "failed"}, {"a": [], "b": []}, {"data": [], "more": [1]}])
def test_what_is_empty_and_says_something_is_told(tmp_path: Path, value: Any) -> None:
    produced, left = read_all(RowReader(), write(tmp_path / "a.json", value, indent=False))
    assert (produced, [one.code for one in left]) == ([], [findings.FIELD_MISSING])


def test_of_several_lists_all_are_named(bench: Bench) -> None:
    write(bench.docs / "a.json", {"cats": ROWS, "in": {"dogs": ROWS}}, indent=False)
    report = bench.ingest([bench.docs / "a.json"], kind="auto")
    (failure,) = report.failures
    assert "within `cats` and `in.dogs`, and nobody knows what of it is meant" in failure.reason
    assert """jq -c '.["cats"][], .["in"]["dogs"][]' FILE""" in failure.reason


def test_a_folder_of_answers_is_read_file_by_file(bench: Bench) -> None:
    for page in range(2):
        rows = [row | {"id": f"{page}-{row['id']}"} for row in ROWS]
        write(bench.docs / f"page{page}.json", {"page": page, "items": rows}, indent=True)
    write(bench.docs / "settings.json", {"colour": "red"}, indent=True)
    report = bench.ingest(kind="auto")
    assert (report.documents, report.left_out) == (6, {errors.RECORD_FORM_UNKNOWN: 1})
    again = bench.ingest(kind="rows")
    assert (again.documents, again.failed) == (6, 1)
