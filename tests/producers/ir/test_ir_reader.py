"""IR records become chunks under their own ids; what is wrong with one stays with it."""

import random
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import findings
from chunksink.producers import errors
from chunksink.producers.ir import IrReader
from chunksink.producers.produced import Emptied, Making, Produced
from chunksink.sinks.projection import project_family
from tests.producers.ir.samples import ir_record, sha
from tests.producers.reading import MAKING, make_partition, read_all, read_records, refusals, write_lines

READER = IrReader()


def chunked(path: str, texts: list[str], **about: Any) -> list[dict[str, Any]]:
    return [ir_record(path, text, index=n, count=len(texts), **about) for n, text in enumerate(texts)]


def test_golden_ids(tmp_path: Path) -> None:
    produced, left = read_records(READER, tmp_path, [ir_record()])
    assert left == []
    (chunk,) = produced[0].records
    assert chunk["chunk_id"] == "647ba87c3fbcaf9fa45c65da9696d5461b470671b49253fdae49293957118f53"
    assert chunk["parent_id"] == sha("/srv/docs/report.pdf")
    assert chunk["provenance"]["source_checksum"] == "sha256:" + sha(b"pdf")
    assert produced[0].source_uri == "/srv/docs/report.pdf"


def test_what_an_index_takes_from_a_whole_document(tmp_path: Path) -> None:
    produced, _ = read_records(READER, tmp_path, [ir_record()])
    (document,) = project_family(produced[0].records)
    seen = document.fields()
    expected = {
        "title": "Report",
        "language": "en",
        "tags": ("finance", "2024"),
        "authors": ("J. Doe",),
        "year": 2024,
        "content_truncated": False,
        "path": "/srv/docs/report.pdf",
        "filename": "report.pdf",
        "extension": "pdf",
        "source_folder": "/srv/docs",
        "mime_type": "application/pdf",
        "file_type": "pdf",
        "size_bytes": 3,
        "modified_at_epoch": 1714636800,
        "page_start": 2,
        "page_end": 3,
        "chunk_index": 0,
        "chunk_count": 1,
        "parent_id": sha("/srv/docs/report.pdf"),
    }
    assert {name: seen[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("locator", "expected"),
    [
        ({"slide_number": 7}, {"slide_number": 7}),
        ({"sheet_name": "Q3"}, {"sheet_name": "Q3"}),
        (
            {"timestamp_start": 12.5, "timestamp_end": 20, "speaker": "Ann"},
            {"timestamp_start": 12.5, "timestamp_end": 20.0, "speaker": "Ann"},
        ),
    ],
)
def test_locators_lead_to_the_place(tmp_path: Path, locator: dict[str, Any], expected: dict[str, Any]) -> None:
    produced, _ = read_records(READER, tmp_path, [ir_record(locator=locator)])
    seen = project_family(produced[0].records)[0].fields()
    assert {name: seen.get(name) for name in expected} == expected


def test_a_chunked_document_comes_once_though_its_records_stand_apart(tmp_path: Path) -> None:
    records = chunked("/a.pdf", ["one", "two", "three"]) + chunked("/b.pdf", ["four", "five"], content=b"b")
    random.Random(3).shuffle(records)
    produced, left = read_records(READER, tmp_path, records)
    assert left == []
    texts = {family.source_uri: [chunk["text"] for chunk in family.records] for family in produced}
    assert texts == {"/a.pdf": ["one", "two", "three"], "/b.pdf": ["four", "five"]}
    assert [chunk["chunk_index"] for chunk in produced[0].records] == list(range(len(produced[0].records)))
    assert make_partition(tmp_path / "bus", produced)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"id": sha("other")}, errors.IDENTITY_MISMATCH),
        ({"parent_id": sha("other")}, errors.IDENTITY_MISMATCH),
        ({"chunk_index": 1}, errors.IDENTITY_MISMATCH),
        ({"content_hash": "ABC"}, findings.WRONG_TYPE),
        ({"content_hash": sha(b"other")}, errors.IDENTITY_MISMATCH),
        ({"schema_version": "2.0"}, findings.UNSUPPORTED_VERSION),
        ({"chunk_index": "0"}, findings.WRONG_TYPE),
        ({"status": "fine"}, findings.WRONG_TYPE),
        ({"source": {}}, findings.FIELD_MISSING),
        ({"tenant_id": 7}, findings.WRONG_TYPE),
        ({"segments": [{"type": "chapter"}]}, findings.WRONG_TYPE),
    ],
)
def test_a_record_that_is_wrong_about_itself_is_refused(tmp_path: Path, changes: dict[str, Any], code: str) -> None:
    produced, left = read_records(READER, tmp_path, [ir_record("/good.pdf"), {**ir_record(), **changes}])
    assert refusals(left) == [(2, code, True)]
    assert [family.source_uri for family in produced] == ["/good.pdf"]


def test_a_refusal_names_both_ids(tmp_path: Path) -> None:
    _, left = read_records(READER, tmp_path, [ir_record(id=sha("x"))])
    assert sha("x") in left[0].reason
    assert ir_record()["id"] in left[0].reason


def test_bad_lines_stay_alone(tmp_path: Path) -> None:
    lines = [
        b'\xef\xbb\xbf{"not": ',
        b'{"text": "\xff"}',
        b"[1, 2]",
        b'{"id": 1, "id": 2}',
        b'{"deep": ' + b"[" * 500 + b"]" * 500 + b"}",
        b"",
        ir_record(),
        b'{"text": "' + b"x" * 50_000_000 + b'"}',
        ir_record("/last.pdf"),
    ]
    produced, left = read_records(READER, tmp_path, lines)
    assert refusals(left) == [
        (1, findings.JSON_PARSE, True),
        (2, findings.ENCODING, True),
        (3, findings.JSON_PARSE, True),
        (4, findings.JSON_PARSE, True),
        (5, findings.JSON_PARSE, True),
        (8, findings.LINE_TOO_LONG, True),
    ]
    assert [family.source_uri for family in produced] == ["/srv/docs/report.pdf", "/last.pdf"]


def test_failed_skipped_and_empty_records_are_counted_not_indexed(tmp_path: Path) -> None:
    produced, left = read_records(
        READER,
        tmp_path,
        [
            ir_record("/a.pdf", "", status="failed", errors=[{"code": "E1", "message": "broken xref"}]),
            ir_record("/b.pdf", "", status="skipped", warnings=["too large"]),
            ir_record("/c.pdf", " \n"),
            ir_record("/d.pdf", "kept", status="partial", warnings=["page 3 is blank"]),
        ],
    )
    assert refusals(left) == [
        (1, errors.EXTRACTION_FAILED, True),
        (2, errors.EXTRACTION_SKIPPED, False),
        (3, errors.SOURCE_EMPTY, False),
    ]
    assert "broken xref" in left[0].reason
    assert "too large" in left[1].reason
    assert [family.source_uri for family in produced] == ["/d.pdf"]
    assert produced[0].records[0]["warnings"] == ["page 3 is blank"]


def test_a_document_is_empty_where_nothing_of_it_failed(tmp_path: Path) -> None:
    lines = [
        *chunked("/a.pdf", ["", " "]),
        *chunked("/b.pdf", ["", ""]),
        *chunked("/c.pdf", ["", "text"]),
        ir_record("/d.pdf", "old", content=b"old"),
        ir_record("/d.pdf", "", content=b"new", status="skipped"),
    ]
    lines[3]["status"] = "failed"
    found = list(READER.read(write_lines(tmp_path / "r.jsonl", lines), "r.jsonl", MAKING))
    assert [one.family for one in found if isinstance(one, Emptied)] == [sha("/a.pdf"), sha("/d.pdf")]
    assert [one.source_uri for one in found if isinstance(one, Produced)] == ["/c.pdf"]


def test_a_document_goes_on_without_its_failed_part_and_is_numbered_anew(tmp_path: Path) -> None:
    records = chunked("/a.pdf", ["one", "two", "three"])
    records[1]["status"] = "failed"
    produced, left = read_records(READER, tmp_path, records)
    assert refusals(left) == [(2, errors.EXTRACTION_FAILED, True)]
    chunks = produced[0].records
    assert [(c["text"], c["chunk_index"], c["chunk_count"]) for c in chunks] == [("one", 0, 2), ("three", 1, 2)]
    assert chunks[1]["original"] == {"schema_version": "1.0", "chunk_index": 2, "chunk_count": 3}
    assert chunks[1]["chunk_id"] == records[2]["id"]
    assert make_partition(tmp_path / "bus", produced)


def test_a_document_that_lacks_a_record_keeps_its_last_good_chunks(tmp_path: Path) -> None:
    records = chunked("/a.pdf", ["one", "two", "three"])
    produced, left = read_records(READER, tmp_path, [records[0], records[2], ir_record("/b.pdf")])
    assert [family.source_uri for family in produced] == ["/b.pdf"]
    assert refusals(left) == [(1, errors.FAMILY_INCOMPLETE, True)]
    assert "chunk 1" in left[0].reason


def test_the_last_version_of_a_file_counts(tmp_path: Path) -> None:
    old = chunked("/a.pdf", ["old one", "old two"], content=b"old")
    new = chunked("/a.pdf", ["new one"], content=b"new")
    produced, left = read_records(READER, tmp_path, [*old, *new])
    assert [chunk["text"] for chunk in produced[0].records] == ["new one"]
    assert refusals(left) == [(1, errors.RECORD_SUPERSEDED, False), (2, errors.RECORD_SUPERSEDED, False)]


def test_a_later_record_under_the_same_id_replaces_the_earlier(tmp_path: Path) -> None:
    failed_later = ir_record("/a.pdf", "", status="failed")
    lines = [ir_record("/a.pdf", "first"), ir_record("/a.pdf", "second"), failed_later]
    produced, left = read_records(READER, tmp_path, lines)
    assert [chunk["text"] for chunk in produced[0].records] == ["second"]
    assert refusals(left) == [(3, errors.EXTRACTION_FAILED, True), (1, errors.RECORD_SUPERSEDED, False)]


@pytest.mark.promise(11)
def test_tenants_do_not_share_ids(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "r.jsonl", [ir_record()])
    chunks = [
        read_all(READER, file, Making(MAKING.created_at, MAKING.producer, tenant))[0][0].records[0]
        for tenant in (None, "acme", "emca")
    ]
    assert len({chunk["chunk_id"] for chunk in chunks}) == 3
    assert len({chunk["document_id"] for chunk in chunks}) == 3
    assert len({project_family([chunk])[0].parent_id for chunk in chunks}) == 3
    assert chunks[1]["tenant_id"] == "acme"
    assert chunks[1]["original"]["id"] == chunks[0]["chunk_id"]
    named = read_records(READER, tmp_path, [ir_record(tenant_id="acme")])[0][0].records[0]
    assert named["chunk_id"] == chunks[1]["chunk_id"]


def test_a_folder_with_one_file_a_record(tmp_path: Path) -> None:
    folder = tmp_path / "ir"
    folder.mkdir()
    for number, record in enumerate(chunked("/a.pdf", ["one", "two"])):
        write_lines(folder / f"{number}.json", [record])
    (folder / "9.json").write_bytes(b"{")
    produced, left = read_all(READER, folder, uri="ir")
    assert [chunk["text"] for chunk in produced[0].records] == ["one", "two"]
    assert [(one.source_uri, one.line) for one in left] == [("ir/9.json", None)]


def test_a_file_that_is_not_there_is_left_out_and_says_so(tmp_path: Path) -> None:
    produced, left = read_all(READER, tmp_path / "absent.jsonl")
    assert produced == []
    assert left[0].code == errors.SOURCE_UNREADABLE


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([{"code": "OCR_FAILED", "message": "no text layer", "at": 3}], "OCR_FAILED: no text layer"),
        ([{"message": "no text layer"}, "torn page"], "no text layer; torn page"),
        ([{"stage": "ocr", "exit": 2}], "stage ocr, exit 2"),
        ([], "its extraction failed"),
    ],
)
def test_what_an_extractor_says_is_told_in_words(tmp_path: Path, said: list[Any], words: str) -> None:
    _, left = read_records(READER, tmp_path, [ir_record("/a.pdf", status="failed", errors=said)])
    assert left[0].reason == f"/a.pdf: {words}"
