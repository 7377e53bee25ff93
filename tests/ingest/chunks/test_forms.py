"""Chunks of the specifications are recognised and become canonical ones, or are refused one by one."""

import hashlib
import json
from pathlib import Path

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import chunk_object_hash
from chunksink.chunkbus.chunk import Record
from chunksink.ingest import codes
from chunksink.ingest.formats.chunks import ChunksFormat
from chunksink.ingest.formats.registry import Match
from chunksink.sinks.projection import project_family
from tests.ingest.chunks.samples import (
    canonical_chunk,
    framework_chunk,
    markdown_chunk,
    recorder_chunk,
    structural_chunk,
)
from tests.ingest.ir.samples import ir_record
from tests.ingest.reading import CREATED_AT, codes_of, fields_of, is_valid_partition, read_lines

FORMAT = ChunksFormat()
DOCUMENT = {"source": {"path": "a.pdf"}}


def read_one(folder: Path, record: Record, tenant: str | None = None) -> Record:
    [[chunk]], notices = read_lines(FORMAT, folder, [record], tenant)
    assert notices == []
    return chunk


@pytest.mark.parametrize(
    ("record", "match"),
    [
        (canonical_chunk(), Match.DECLARED),
        (canonical_chunk(content={"content_text": "x"}), Match.DECLARED),
        (canonical_chunk(schema_version="chunks.v9"), Match.DECLARED),
        (markdown_chunk(), Match.LIKELY),
        (structural_chunk(), Match.LIKELY),
        (structural_chunk(tables=[]), Match.LIKELY),
        (recorder_chunk(), Match.LIKELY),
        (recorder_chunk(policy_version=None), Match.LIKELY),
        (framework_chunk(), Match.POSSIBLE),
        (framework_chunk(title="Cats"), Match.POSSIBLE),
        ({"text": "Words", "metadata": {"source": "a.md"}}, Match.POSSIBLE),
        ({"text": "Words", "metadata": {"source": "a.md"}, "title": "A post"}, Match.NO),
        ({"content": "Words", "meta": {"url": "a.md"}, "_id": 7}, Match.NO),
        (framework_chunk(page_content=None), Match.POSSIBLE),
        ({"lc": 1, "kwargs": framework_chunk(page_content=None)}, Match.POSSIBLE),
        ({"text": None, "metadata": {"source": "a.md"}, "body": "Words"}, Match.NO),
        ({"text": "Words", "metadata": {"source": "a.md"}, "title": "A chunk", "chunk_index": 1}, Match.POSSIBLE),
        (ir_record(), Match.NO),
        ({**DOCUMENT, "blocks": ["Words"], "doc_id": "d", "index": 1}, Match.NO),
        ({**DOCUMENT, "text": "Words", "metadata": {"source": "a.md"}}, Match.NO),
    ],
)
def test_match_when_records_vary_leaves_documents_and_rows_to_others(record: Record, match: Match) -> None:
    assert FORMAT.match(record) is match


def test_markdown_chunk_when_projected_has_its_fields(tmp_path: Path) -> None:
    record = markdown_chunk(
        source_version_id="cd" * 32,
        source_uri="wiki/setup.md",
        title="Setup",
        metadata={"language": "de", "tags": "a;b"},
    )
    chunk = read_one(tmp_path, record)
    fields = fields_of([chunk])
    expected = {
        "title": "Setup",
        "headings": ("Setup", "Linux"),
        "section": "/Setup/Linux/ol[1]",
        "token_count": 5,
        "language": "de",
        "tags": ("a", "b"),
        "source_uri": "wiki/setup.md",
        "source_folder": "wiki",
    }
    assert {name: fields.get(name) for name in expected} == expected
    assert chunk["provenance"]["source_checksum"] == "sha256:" + "cd" * 32


def test_markdown_chunk_when_it_names_no_source_belongs_to_its_document(tmp_path: Path) -> None:
    chunk = read_one(tmp_path, markdown_chunk(document="doc/../7", tenant_id=None))
    assert chunk["parent_id"] == hashlib.sha256(b"doc/../7").hexdigest()
    assert chunk["provenance"]["source_ref"] == "doc/../7"


def test_structural_chunk_when_read_is_that_of_the_specification(tmp_path: Path) -> None:
    example = structural_chunk(
        metadata={"title": "Retention", "topics": ["data"], "language": "en", "year": 2023, "page_number": 4},
        relations=[{"type": "continues", "target": "chunk_0482"}],
        embedding=[0.1, 0.2],
    )
    chunk = read_one(tmp_path, example)
    kept = ("id", "doc_id", "neighbors", "relations", "source", "metadata")
    assert {name: chunk[name] for name in kept} == {name: example[name] for name in kept}
    assert "embedding" not in json.dumps(chunk)
    fields = fields_of([chunk])
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


def test_structural_chunk_when_read_has_golden_ids(tmp_path: Path) -> None:
    chunk = read_one(tmp_path, structural_chunk(path="a/b.md", text="Hello."))
    document = hashlib.sha256(b'["a/b.md",null]').hexdigest()
    text = "sha256:" + hashlib.sha256(b"Hello.").hexdigest()
    assert chunk["document_id"] == document
    assert chunk["chunk_id"] == hashlib.sha256(f'["{document}",0,"{text}"]'.encode()).hexdigest()
    assert chunk["parent_id"] == hashlib.sha256(b"a/b.md").hexdigest()


def test_structural_chunk_when_its_numbers_shift_keeps_id_and_document(tmp_path: Path) -> None:
    before = read_one(tmp_path, structural_chunk())
    shifted = read_one(tmp_path, structural_chunk(id="chunk_0999", doc_id="doc_0100", neighbors=["chunk_0998"]))
    assert before["chunk_id"] == shifted["chunk_id"]
    assert project_family([before]) == project_family([shifted])


def test_recorder_chunk_when_projected_has_its_fields(tmp_path: Path) -> None:
    about = {"title": "Deploy", "tags": ["ops"], "language": "en"}
    fields = fields_of([read_one(tmp_path, recorder_chunk(5, metadata=about))])
    expected = {
        "start_offset": "2/5/500",
        "end_offset": "2/9/599",
        "modified_at_epoch": 1_700_000_005,
        "source_uri": "recorder/s-1/3",
        "title": "Deploy",
        "tags": ("ops",),
        "language": "en",
    }
    assert {name: fields.get(name) for name in expected} == expected


def test_recorder_chunks_when_out_of_order_are_numbered_by_the_log(tmp_path: Path) -> None:
    late = recorder_chunk(0, start_offset={"segment_id": 10, "ordinal": 0, "byte_offset": 0}, chunk_id="late")
    lines = [late, recorder_chunk(9), recorder_chunk(2), recorder_chunk(1, pane=4)]
    families, notices = read_lines(FORMAT, tmp_path, lines)
    assert notices == []
    assert [[chunk["chunk_id"] for chunk in chunks] for chunks in families] == [["3-2", "3-9", "late"], ["4-1"]]
    assert [(chunk["chunk_index"], chunk["chunk_count"]) for chunk in families[0]] == [(0, 3), (1, 3), (2, 3)]


def test_canonical_chunk_when_it_has_no_time_gets_the_runs(tmp_path: Path) -> None:
    given = canonical_chunk(created_at=None, hashes={"chunk_object_hash": "sha256:" + "0" * 64})
    chunk = read_one(tmp_path, given)
    assert chunk["created_at"] == CREATED_AT
    assert chunk["hashes"]["chunk_object_hash"] == chunk_object_hash(chunk)
    assert "hashes" not in read_one(tmp_path, canonical_chunk(created_at=None))


@pytest.mark.promise(11)
def test_chunks_when_the_run_has_a_tenant_get_it_and_ids_of_their_own(tmp_path: Path) -> None:
    given = canonical_chunk(hashes={"chunk_object_hash": "sha256:" + "0" * 64}, original="theirs")
    chunk = read_one(tmp_path, given, "acme")
    assert chunk["tenant_id"] == "acme"
    assert chunk["chunk_id"] != "c-0"
    assert chunk["original"] == {"original": "theirs", "chunk_id": "c-0"}
    assert chunk["hashes"]["chunk_object_hash"] == chunk_object_hash(chunk)
    assert read_one(tmp_path, canonical_chunk(tenant_id="acme"), "acme")["chunk_id"] == "c-0"
    assert read_one(tmp_path, markdown_chunk(), "acme")["chunk_id"] == "doc-7-0"
    for record in (markdown_chunk(tenant_id=None), recorder_chunk(), structural_chunk()):
        without, named = read_one(tmp_path, record), read_one(tmp_path, record, "acme")
        assert named["tenant_id"] == "acme"
        assert without["chunk_id"] != named["chunk_id"]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (markdown_chunk(ordinal="0"), findings.WRONG_TYPE),
        (markdown_chunk(tenant_id=["a"]), findings.WRONG_TYPE),
        ({name: value for name, value in markdown_chunk().items() if name != "document_id"}, findings.FIELD_MISSING),
        (structural_chunk(source={"folder": "a"}), findings.FIELD_MISSING),
        (structural_chunk(metadata={"tenant_id": 3}), findings.WRONG_TYPE),
        (recorder_chunk(start_offset=12), findings.WRONG_TYPE),
        ({name: value for name, value in recorder_chunk().items() if name != "text"}, findings.FIELD_MISSING),
        (canonical_chunk(schema_version="chunks.v9"), findings.UNSUPPORTED_VERSION),
        (canonical_chunk(provenance={}), findings.FIELD_MISSING),
        (canonical_chunk(hashes={"text_hash": "sha256:" + "0" * 64}), findings.TEXT_HASH_MISMATCH),
        (markdown_chunk(chunk_text="x" * (8 * 2**20 - 400)), findings.LINE_TOO_LONG),
        (markdown_chunk(hashes=json.loads('{"a":' * 253 + "1" + "}" * 253)), findings.JSON_PARSE),
        ({"text": "of no form"}, codes.RECORD_FORM_UNKNOWN),
        (ir_record(), codes.RECORD_FORM_UNKNOWN),
    ],
)
@pytest.mark.promise(6)
def test_read_when_a_record_is_bad_refuses_it_alone(tmp_path: Path, record: Record, code: str) -> None:
    good = [markdown_chunk(document="good"), structural_chunk(path="good.pdf"), recorder_chunk(pane=99)]
    families, notices = read_lines(FORMAT, tmp_path, [good[0], record, *good[1:]])
    assert codes_of(notices) == [(2, code, True)]
    assert len(families) == 3
    assert is_valid_partition(tmp_path / "bus", families)


def test_read_when_siblings_are_refused_or_empty_reports_the_gap(tmp_path: Path) -> None:
    lines = [
        markdown_chunk(0),
        markdown_chunk(1, chunk_id=""),
        markdown_chunk(2),
        markdown_chunk(3, chunk_text=" "),
    ]
    [chunks], notices = read_lines(FORMAT, tmp_path, lines)
    assert codes_of(notices) == [
        (2, findings.WRONG_TYPE, True),
        (4, codes.SOURCE_EMPTY, False),
        (1, codes.FAMILY_INCOMPLETE, True),
    ]
    assert [(chunk["chunk_id"], chunk["chunk_index"]) for chunk in chunks] == [("doc-7-0", 0), ("doc-7-2", 1)]
    assert chunks[1]["original"]["chunk_index"] == 2
