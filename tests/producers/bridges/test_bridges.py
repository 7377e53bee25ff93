"""Chunks of others become canonical ones: told apart, placed, and refused one by one."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import chunk_object_hash
from chunksink.chunkbus.chunk import Record
from chunksink.producers import errors
from chunksink.producers.bridges import BridgeReader, Form, detect
from chunksink.producers.errors import RecordRefused
from chunksink.producers.produced import Making
from chunksink.sinks.projection import project_family
from tests.producers.bridges.samples import canonical_chunk, markdown_chunk, recorder_chunk, structural_chunk
from tests.producers.ir.samples import ir_record
from tests.producers.reading import MAKING, make_partition, read_all, read_records, refusals, write_lines

READER = BridgeReader()


def one(tmp_path: Path, record: Record, making: Making = MAKING) -> Record:
    produced, left = read_records(READER, tmp_path, [record], making)
    assert left == []
    return produced[0].records[0]


def seen(tmp_path: Path, record: Record) -> dict[str, Any]:
    return project_family([one(tmp_path, record)])[0].fields()


def test_each_form_is_told_by_its_fields() -> None:
    assert detect(canonical_chunk()) is Form.CANONICAL
    assert detect(markdown_chunk()) is Form.MARKDOWN
    assert detect(structural_chunk()) is Form.STRUCTURAL
    assert detect(recorder_chunk()) is Form.RECORDER
    with pytest.raises(RecordRefused, match="IR record"):
        detect(ir_record())
    with pytest.raises(RecordRefused, match="parsed document"):
        detect({"doc_id": "doc_1", "blocks": []})
    with pytest.raises(RecordRefused, match="it has a, b"):
        detect({"a": 1, "b": 2})


def test_a_markdown_chunk_in_an_index(tmp_path: Path) -> None:
    record = markdown_chunk(
        source_version_id="cd" * 32,
        source_uri="wiki/setup.md",
        title="Setup",
        metadata={"language": "de", "tags": "a;b"},
    )
    fields = seen(tmp_path, record)
    expected = {
        "chunk_id": "doc-7-0",
        "document_id": "doc-7",
        "tenant_id": "acme",
        "text": "Step 0 of the setup.",
        "title": "Setup",
        "headings": ("Setup", "Linux"),
        "section": "/Setup/Linux/ol[1]",
        "token_count": 5,
        "language": "de",
        "tags": ("a", "b"),
        "source_uri": "wiki/setup.md",
        "source_folder": "wiki",
        "chunk_index": 0,
    }
    assert {name: fields.get(name) for name in expected} == expected
    assert one(tmp_path, record)["provenance"]["source_checksum"] == "sha256:" + "cd" * 32


def test_a_markdown_document_without_a_source_is_its_own_family(tmp_path: Path) -> None:
    chunk = one(tmp_path, markdown_chunk(document="doc/../7", tenant_id=None))
    assert chunk["parent_id"] == hashlib.sha256(b"doc/../7").hexdigest()
    assert chunk["provenance"]["source_ref"] == "doc/../7"


def test_the_chunk_of_the_structural_specification(tmp_path: Path) -> None:
    example = {
        "id": "chunk_0481",
        "text": "Enterprise data is retained for 90 days…",
        "source": {"path": "policies/data/retention.pdf", "folder": "policies/data", "type": "policy"},
        "doc_id": "doc_0007",
        "index": 0,
        "neighbors": ["chunk_0480", "chunk_0482"],
        "metadata": {"title": "Retention", "topics": ["data"], "language": "en", "year": 2023, "page_number": 4},
        "relations": [{"type": "continues", "target": "chunk_0482"}],
        "embedding": [0.1, 0.2],
    }
    chunk = one(tmp_path, example)
    assert {name: chunk[name] for name in ("id", "doc_id", "neighbors", "relations", "source", "metadata")} == {
        name: example[name] for name in ("id", "doc_id", "neighbors", "relations", "source", "metadata")
    }
    assert "embedding" not in json.dumps(chunk)
    fields = project_family([chunk])[0].fields()
    expected = {
        "path": "policies/data/retention.pdf",
        "source_folder": "policies/data",
        "source_type": "policy",
        "filename": "retention.pdf",
        "title": "Retention",
        "tags": ("data",),
        "language": "en",
        "year": 2023,
        "page_start": 4,
    }
    assert {name: fields.get(name) for name in expected} == expected


def test_golden_id_of_a_structural_chunk(tmp_path: Path) -> None:
    chunk = one(tmp_path, structural_chunk(path="a/b.md", text="Hello."))
    document = hashlib.sha256(b'["a/b.md",null]').hexdigest()
    text = "sha256:" + hashlib.sha256(b"Hello.").hexdigest()
    assert chunk["document_id"] == document
    assert chunk["chunk_id"] == hashlib.sha256(f'["{document}",0,"{text}"]'.encode()).hexdigest()
    assert chunk["parent_id"] == hashlib.sha256(b"a/b.md").hexdigest()


def test_numbers_that_shift_enter_no_identity_and_no_hash(tmp_path: Path) -> None:
    before = one(tmp_path, structural_chunk())
    shifted = one(tmp_path, structural_chunk(id="chunk_0999", doc_id="doc_0100", neighbors=["chunk_0998"]))
    assert before["chunk_id"] == shifted["chunk_id"]
    assert project_family([before]) == project_family([shifted])


def test_a_folder_with_one_file_a_chunk(tmp_path: Path) -> None:
    folder = tmp_path / "chunks"
    folder.mkdir()
    for index in (2, 0, 1):
        text = json.dumps(structural_chunk(index), indent=2, ensure_ascii=False)
        (folder / f"chunk_{480 + index:04d}.json").write_text(text, encoding="utf-8")
    (folder / "chunk_9.json").write_text("{}", encoding="utf-8")
    (folder / "notes.txt").write_text("no chunk", encoding="utf-8")
    (folder / "gone.json").symlink_to(folder / "absent")
    produced, left = read_all(READER, folder, uri="space/chunks")
    assert [chunk["chunk_index"] for chunk in produced[0].records] == [0, 1, 2]
    assert [(lo.source_uri, lo.line, lo.code) for lo in left] == [
        ("space/chunks/chunk_9.json", None, errors.RECORD_FORM_UNKNOWN),
        ("space/chunks/gone.json", None, errors.SOURCE_UNREADABLE),
    ]


def test_a_recorder_chunk_in_an_index(tmp_path: Path) -> None:
    fields = seen(tmp_path, recorder_chunk(5, metadata={"title": "Deploy", "tags": ["ops"], "language": "en"}))
    expected = {
        "chunk_id": "3-5",
        "text": "[OUT] ok 5",
        "start_offset": "2/5/500",
        "end_offset": "2/9/599",
        "modified_at_epoch": 1_700_000_005,
        "source_uri": "recorder/s-1/3",
        "title": "Deploy",
        "tags": ("ops",),
        "language": "en",
    }
    assert {name: fields.get(name) for name in expected} == expected


def test_recorder_chunks_are_numbered_by_the_log(tmp_path: Path) -> None:
    late = recorder_chunk(0, start_offset={"segment_id": 10, "ordinal": 0, "byte_offset": 0}, chunk_id="late")
    lines = [late, recorder_chunk(9), recorder_chunk(2), recorder_chunk(1, pane=4)]
    produced, left = read_records(READER, tmp_path, lines)
    assert left == []
    assert [[chunk["chunk_id"] for chunk in family.records] for family in produced] == [["3-2", "3-9", "late"], ["4-1"]]
    assert [chunk["chunk_index"] for chunk in produced[0].records] == [0, 1, 2]
    assert {chunk["chunk_count"] for chunk in produced[0].records} == {3}


def test_canonical_chunks_pass_unchanged(tmp_path: Path) -> None:
    given = canonical_chunk(foo={"b": 1.5, "a": None}, text="", hashes={"text_hash": None})
    assert one(tmp_path, given) == given


def test_canonical_chunks_without_a_time_get_the_runs(tmp_path: Path) -> None:
    given = canonical_chunk(created_at=None, hashes={"chunk_object_hash": "sha256:" + "0" * 64})
    chunk = one(tmp_path, given)
    assert chunk["created_at"] == MAKING.created_at
    assert chunk["hashes"]["chunk_object_hash"] == chunk_object_hash(chunk)
    assert "hashes" not in one(tmp_path, canonical_chunk(created_at=None)), "what was not stated is not added"


@pytest.mark.promise(11)
def test_a_run_for_a_tenant_gives_it_to_chunks_without_one(tmp_path: Path) -> None:
    making = Making(MAKING.created_at, MAKING.producer, tenant="acme")
    given = canonical_chunk(hashes={"chunk_object_hash": "sha256:" + "0" * 64}, original="theirs")
    chunk = one(tmp_path, given, making)
    assert chunk["tenant_id"] == "acme"
    assert chunk["chunk_id"] != "c-0"
    assert chunk["original"] == {"original": "theirs", "chunk_id": "c-0"}
    assert chunk["hashes"]["chunk_object_hash"] == chunk_object_hash(chunk)
    assert one(tmp_path, canonical_chunk(tenant_id="emca"), making)["chunk_id"] == "c-0"
    assert one(tmp_path, markdown_chunk(), making)["chunk_id"] == "doc-7-0"
    for record in (markdown_chunk(tenant_id=None), recorder_chunk(), structural_chunk()):
        without, named = one(tmp_path, record), one(tmp_path, record, making)
        assert named["tenant_id"] == "acme"
        assert without["chunk_id"] != named["chunk_id"]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (markdown_chunk(ordinal="0"), findings.WRONG_TYPE),
        (markdown_chunk(ordinal=-1), findings.WRONG_TYPE),
        (markdown_chunk(chunk_id=""), findings.WRONG_TYPE),
        (markdown_chunk(tenant_id=["a"]), findings.WRONG_TYPE),
        ({name: value for name, value in markdown_chunk().items() if name != "document_id"}, findings.FIELD_MISSING),
        (structural_chunk(text=None), findings.WRONG_TYPE),
        (structural_chunk(source={"folder": "a"}), findings.FIELD_MISSING),
        (structural_chunk(metadata={"tenant_id": 3}), findings.WRONG_TYPE),
        (recorder_chunk(start_offset=12), findings.WRONG_TYPE),
        ({name: value for name, value in recorder_chunk().items() if name != "text"}, findings.FIELD_MISSING),
        (canonical_chunk(schema_version="chunks.v9"), findings.UNSUPPORTED_VERSION),
        (canonical_chunk(provenance={}), findings.FIELD_MISSING),
        (canonical_chunk(hashes={"text_hash": "sha256:" + "0" * 64}), findings.TEXT_HASH_MISMATCH),
        ({"text": "of no form"}, errors.RECORD_FORM_UNKNOWN),
    ],
)
@pytest.mark.promise(6)
def test_a_bad_record_is_refused_and_the_rest_goes_on(tmp_path: Path, record: Record, code: str) -> None:
    good = [markdown_chunk(document="good"), structural_chunk(path="good.pdf"), recorder_chunk(pane=99)]
    produced, left = read_records(READER, tmp_path, [good[0], record, *good[1:]])
    assert refusals(left) == [(2, code, True)]
    assert [family.source_uri for family in produced] == ["good", "good.pdf", "recorder/s-1/99"]
    assert make_partition(tmp_path / "bus", produced)


def test_siblings_of_a_refused_chunk_go_on_and_what_is_missing_is_said(tmp_path: Path) -> None:
    lines = [
        markdown_chunk(0),
        markdown_chunk(1, token_count="many"),
        markdown_chunk(2),
        markdown_chunk(3, chunk_text=" "),
    ]
    produced, left = read_records(READER, tmp_path, lines)
    assert refusals(left) == [
        (2, findings.WRONG_TYPE, True),
        (4, errors.SOURCE_EMPTY, False),
        (1, errors.FAMILY_INCOMPLETE, True),
    ]
    chunks = produced[0].records
    assert [(c["chunk_id"], c["chunk_index"], c["chunk_count"]) for c in chunks] == [
        ("doc-7-0", 0, 2),
        ("doc-7-2", 1, 2),
    ]
    assert chunks[1]["original"]["chunk_index"] == 2
    assert make_partition(tmp_path / "bus", produced)


def test_a_refused_sibling_changes_no_id(tmp_path: Path) -> None:
    lines = [structural_chunk(0), structural_chunk(1), structural_chunk(2)]
    whole = read_records(READER, tmp_path, lines)[0][0].records
    apart = read_records(READER, tmp_path, [lines[0], b"{", lines[2]])[0][0].records
    assert [chunk["chunk_id"] for chunk in apart] == [whole[0]["chunk_id"], whole[2]["chunk_id"]]
    assert [(chunk["chunk_index"], chunk["chunk_count"]) for chunk in apart] == [(0, 2), (1, 2)]
    assert apart[1]["original"]["chunk_index"] == 2


def test_a_canonical_family_that_states_its_size_is_whole_or_left_out(tmp_path: Path) -> None:
    lines = [canonical_chunk(0, chunk_count=3), canonical_chunk(2, chunk_count=3)]
    produced, left = read_records(READER, tmp_path, lines)
    assert produced == []
    assert refusals(left) == [(1, errors.FAMILY_INCOMPLETE, True)]


def test_one_id_in_two_families_would_spoil_the_partition_and_is_refused(tmp_path: Path) -> None:
    lines = [recorder_chunk(pane=1, chunk_id="x"), recorder_chunk(pane=2, chunk_id="x"), recorder_chunk(9, pane=2)]
    produced, left = read_records(READER, tmp_path, lines)
    assert refusals(left) == [(2, findings.DUPLICATE_IDS, True)]
    assert [family.source_uri for family in produced] == ["recorder/s-1/1", "recorder/s-1/2"]
    assert make_partition(tmp_path / "bus", produced)


def test_a_far_ordinal_costs_nothing(tmp_path: Path) -> None:
    produced, left = read_records(READER, tmp_path, [markdown_chunk(0), markdown_chunk(2**50)])
    assert len(produced[0].records) == 2
    assert "and" in left[0].reason
    assert len(left[0].reason) < 300


def test_the_same_file_gives_the_same_bytes_and_a_file_written_twice_the_same_chunks(tmp_path: Path) -> None:
    lines = [*(markdown_chunk(n) for n in range(3)), *(structural_chunk(n) for n in range(3)), recorder_chunk()]
    file = write_lines(tmp_path / "a.jsonl", lines)
    first = read_all(READER, file)
    assert read_all(READER, file) == first
    twice, left = read_all(READER, write_lines(tmp_path / "b.jsonl", [*lines, *lines]))
    assert [family.records for family in twice] == [family.records for family in first[0]]
    assert {(lo.code, lo.is_failure) for lo in left} == {(errors.RECORD_SUPERSEDED, False)}


def test_a_chunk_that_no_partition_would_take_is_refused(tmp_path: Path) -> None:
    deep = json.loads('{"a":' * 253 + "1" + "}" * 253)
    produced, left = read_records(
        READER, tmp_path, [markdown_chunk(0, hashes=deep), markdown_chunk(1), recorder_chunk()]
    )
    assert refusals(left) == [(1, findings.JSON_PARSE, True)]
    assert [len(family.records) for family in produced] == [1, 1]


def test_a_chunk_that_outgrows_a_line_is_refused_where_its_record_did_not(tmp_path: Path) -> None:
    huge = markdown_chunk(0, chunk_text="x" * (8 * 2**20 - 400))
    produced, left = read_records(READER, tmp_path, [huge, recorder_chunk()])
    assert refusals(left) == [(1, findings.LINE_TOO_LONG, True)]
    assert make_partition(tmp_path / "bus", produced)
