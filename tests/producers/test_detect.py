"""What a file holds, told by what stands in it: every form of record, and files that hold none."""

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from chunksink.producers.detect import look_at
from chunksink.producers.errors import SourceFailed
from chunksink.producers.kinds import KINDS
from chunksink.producers.produced import LeftOut
from tests.conftest import ROOT
from tests.producers.bridges.samples import canonical_chunk, markdown_chunk, recorder_chunk, structural_chunk
from tests.producers.ir.samples import ir_record
from tests.producers.parsed.samples import parsed
from tests.producers.reading import MAKING, write_lines
from tests.producers.recorder.support import said

SOURCE = {"path": "a/b.pdf", "folder": "a", "type": "policy"}
CASES: dict[str, list[dict[str, Any]]] = {
    "chunks": [
        canonical_chunk(),
        canonical_chunk(source={"path": "a"}, doc_id="d", blocks=[]),
        canonical_chunk(content={"content_text": "x"}, content_hash="ab" * 32),
        canonical_chunk(event_type="egress_output", pane_id=1),
        markdown_chunk(),
        markdown_chunk(source=SOURCE, text="x", doc_id="d"),
        structural_chunk(),
        structural_chunk(title="A"),
        {"id": "c", "text": "x", "source": SOURCE, "doc_id": "d", "index": 0},
        {"id": "c", "text": "x", "source": SOURCE, "doc_id": "d", "index": 0, "content_hash": "ab" * 32, "content": {}},
        recorder_chunk(),
        recorder_chunk(source=SOURCE, doc_id="d"),
    ],
    "ir": [
        ir_record(),
        ir_record(schema_version="0.9"),
        {name: value for name, value in ir_record().items() if name != "schema_version"},
        ir_record(doc_id="d", index=3, text="x", blocks=[]),
    ],
    "parsed": [
        parsed(),
        parsed(index=3, neighbors=[]),
        {"source": SOURCE, "text": "Words."},
        {"source": SOURCE, "text": "Words.", "direction": "ltr"},
        {"source": SOURCE, "tables": [{"rows": [["a"]]}]},
        {"source": SOURCE, "images": [{"caption": "A mast"}]},
        {"source": SOURCE, "blocks": []},
    ],
    "rows": [
        {"id": 1, "text": "x"},
        {"_id": "1", "text": "x", "metadata": {}},
        {"_id": "1", "text": "x", "metadata": {"url": "https://a.example/"}},
        {"id": "1", "title": "A", "content": "x", "meta": {"source": "a.md"}},
        {"Id": "4", "Title": "A", "Body": "<p>x</p>"},
    ],
    "recorder": [
        said("x", 0),
        said("x", 0, schema_version="ft.recorder.event.v1", source=SOURCE, blocks=[]),
        said("x", 0, source=SOURCE),
        {"direction": "egress", "pane_id": 1, "text": "x", "source": SOURCE},
        {"event_type": "gap"},
        {"event_type": "of another release", "pane_id": 1},
    ],
}
RECORDS = [(kind, record) for kind, records in CASES.items() for record in records]


@pytest.mark.parametrize(("kind", "record"), RECORDS)
def test_every_form_is_told(tmp_path: Path, kind: str, record: dict[str, Any]) -> None:
    one = tmp_path / "r.json"
    one.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    assert (look_at(one).kind, look_at(one).is_value) == (kind, True)
    lines = write_lines(tmp_path / "r.jsonl", [b"{broken", {"other": 1}, record, record])
    assert (look_at(lines).kind, look_at(lines).is_value) == (kind, False)


@pytest.mark.parametrize(("kind", "record"), [(kind, records[0]) for kind, records in CASES.items()])
def test_what_is_told_is_read(tmp_path: Path, kind: str, record: dict[str, Any]) -> None:
    make = KINDS[kind].records
    assert make is not None
    read = list(make().read(write_lines(tmp_path / "r.jsonl", [record]), "r.jsonl", MAKING))
    assert read
    assert not any(isinstance(one, LeftOut) for one in read)


def test_the_examples_are_told() -> None:
    found = {path.parent.name: look_at(path).kind for path in sorted((ROOT / "examples").glob("*/*.jsonl"))}
    assert found == {"ir": "ir", "parsed": "parsed", "recorder": "recorder", "rows": "rows"}


@pytest.mark.parametrize(
    "data",
    [b'{"name": "x"}', b'{\n"name": "x"\n}', b'[{"event_type": "gap"}]', b'[\n{"event_type": "gap"}\n]', b"7"],
)
def test_json_that_is_no_record_is_one_value_of_no_kind(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(data)
    assert (look_at(path).kind, look_at(path).is_value) == (None, True)


@pytest.mark.parametrize(
    "record",
    [
        {"direction": "rtl", "name": "Arabic"},
        {"event_type": "click", "user": 7},
        {"direction": "in", "text": "Hello"},
        {"event_type": ["gap"], "pane_id": 1},
        {"pane_id": 1, "text": "x"},
    ],
)
def test_fields_that_other_json_has_too_make_no_recorder_log(tmp_path: Path, record: dict[str, Any]) -> None:
    lines = write_lines(tmp_path / "r.jsonl", [record, record])
    assert look_at(lines).kind is None


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("recorder", {"event_type": "gap", "pane_id": 1, "text": "ls", "metadata": {"path": "a"}}),
        ("parsed", {"source": {"path": "a.pdf"}, "text": "x", "metadata": {}, "relationships": {}}),
        ("chunks", {"text": "x", "metadata": {"path": "a"}}),
    ],
)
def test_what_only_looks_like_the_passage_of_a_framework_is_what_else_it_is(
    tmp_path: Path, kind: str, record: dict[str, Any]
) -> None:
    assert look_at(write_lines(tmp_path / "r.jsonl", [record, record])).kind == kind


@pytest.mark.parametrize("data", [b'{"name": ', b"\xff\xfe{\x00}\x00", b"// said\n{}x"])
def test_what_is_no_json_is_of_no_kind(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(data)
    look = look_at(path)
    assert (look.kind, look.is_value, look.is_empty) == (None, False, False)


@pytest.mark.parametrize("data", [b"", b" \n\n", b"\xef\xbb\xbf"])
def test_a_file_without_a_word_is_empty(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(data)
    assert look_at(path).is_empty


@pytest.mark.parametrize("layout", ["{}", "{}\n", "\ufeff{}\r\n", "{}\n{}\n", "\n\n{}\n{}\n"])
def test_a_first_record_of_megabytes_is_looked_at(tmp_path: Path, layout: str) -> None:
    record = orjson.dumps({**parsed(), "text": "x" * 2**20}).decode()
    path = tmp_path / "r.json"
    path.write_text(layout.replace("{}", record), encoding="utf-8")
    assert (look_at(path).kind, look_at(path).is_value) == ("parsed", layout.count("{}") == 1)


def test_what_cannot_be_opened_says_so(tmp_path: Path) -> None:
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe.jsonl")
    for name, reason in (("dangling", "link to nothing"), ("pipe", "not a regular file")):
        with pytest.raises(SourceFailed, match=reason) as caught:
            look_at(tmp_path / f"{name}.jsonl")
        assert caught.value.code == "SOURCE_UNREADABLE"


def test_a_lone_record_with_a_title_may_be_a_translation(tmp_path: Path) -> None:
    for name, kind in (("de.json", None), ("one.jsonl", "rows")):
        path = tmp_path / name
        path.write_bytes(orjson.dumps({"title": "Meine App", "text": "Willkommen", "link": "Verweis"}))
        assert look_at(path).kind == kind


def test_rows_say_the_least(tmp_path: Path) -> None:
    passage = {"id": "1", "text": "x", "metadata": {"source": "a.md"}}
    assert look_at(write_lines(tmp_path / "r.jsonl", [{"id": 1, "text": "x"}, passage])).kind == "chunks"
    assert look_at(write_lines(tmp_path / "r.jsonl", [passage, passage | {"title": "A"}])).kind == "chunks"
    assert look_at(write_lines(tmp_path / "r.jsonl", [passage | {"title": "A"}, {"id": 1, "text": "x"}])).kind == "rows"


def test_records_within_a_value_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    for value, within in (
        ({"total": 2, "note": "Said of all that follows.", "data": [{"id": 1, "text": "x"}]}, (("data",),)),
        ({"data": [{"other": 1}]}, ()),
        ({"data": {"id": 1, "text": "x"}}, ()),
        ({"id": 1, "text": "x", "data": [{"id": 1, "text": "x"}]}, ()),
    ):
        path.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))
        assert look_at(path).within == within
