"""IR records become chunks under their own ids; an error of one record stays with it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.chunkbus import findings
from chunksink.ingest import codes
from chunksink.ingest.formats.ir import IrFormat
from chunksink.ingest.formats.ir.reindex import Current, newest, outdated
from chunksink.ingest.formats.ir.schema import IrRecord, ir_schema
from chunksink.ingest.formats.registry import Match
from chunksink.ingest.json_records import NumberedRecord, read_records
from chunksink.ingest.model import Family
from chunksink.sinks.projection import project_family
from tests.conftest import ROOT
from tests.ingest.ir.samples import ir_record, sha
from tests.ingest.reading import (
    at,
    codes_of,
    fields_of,
    is_at,
    is_valid_partition,
    json_values,
    leaves,
    read_file,
    read_items,
    read_lines,
    write_lines,
)

FORMAT = IrFormat()


def parts(path: str, texts: list[str], **about: Any) -> list[dict[str, Any]]:
    return [ir_record(path, text, index=n, count=len(texts), **about) for n, text in enumerate(texts)]


def texts_of(families: list[list[dict[str, Any]]]) -> dict[str, list[str]]:
    return {chunks[0]["provenance"]["source_uri"]: [chunk["text"] for chunk in chunks] for chunks in families}


def test_ids_when_a_record_is_read_are_golden(tmp_path: Path) -> None:
    [[chunk]], notices = read_lines(FORMAT, tmp_path, [ir_record()])
    assert notices == []
    assert chunk["chunk_id"] == "647ba87c3fbcaf9fa45c65da9696d5461b470671b49253fdae49293957118f53"
    assert chunk["parent_id"] == sha("/srv/docs/report.pdf")
    assert chunk["provenance"]["source_checksum"] == "sha256:" + sha(b"pdf")
    assert chunk["provenance"]["source_uri"] == "/srv/docs/report.pdf"


def test_document_when_projected_has_the_fields_of_the_record(tmp_path: Path) -> None:
    place = {"slide_number": 7, "sheet_name": "Q3", "timestamp_start": 12.5, "timestamp_end": 20.0, "speaker": "Ann"}
    record = ir_record()
    record["locator"] |= place
    [chunks], _ = read_lines(FORMAT, tmp_path, [record])
    fields = fields_of(chunks)
    expected = place | {
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
    }
    assert {name: fields[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("/srv/Docs/A.pdf", "/srv/Docs/A.pdf"),
        ("/srv//docs/./x/../a.pdf", "/srv/docs/a.pdf"),
        ("C:\\Docs\\.\\A.pdf", "c:\\docs\\a.pdf"),
        ("C:/Docs//A.pdf", "c:\\docs\\a.pdf"),
        ("C:/Docs//A.pdf", "c:/docs/a.pdf"),
        ("\\\\Server\\Share\\A.pdf", "\\\\server\\share\\a.pdf"),
        ("docs/../a.pdf", "anything"),
    ],
)
def test_read_when_a_path_has_other_spellings_takes_its_canonical_form(
    tmp_path: Path, path: str, canonical: str
) -> None:
    [[chunk]], _ = read_lines(FORMAT, tmp_path, [ir_record(path, canonical=canonical)])
    assert (chunk["parent_id"], chunk["provenance"]["source_uri"]) == (sha(canonical), path)


@pytest.mark.parametrize(
    ("path", "canonical", "folder"),
    [("/a/b/c.pdf", None, "/a/b"), ("C:\\docs\\a.pdf", "c:/docs/a.pdf", "C:/docs"), ("a.pdf", None, None)],
)
def test_source_folder_when_not_stated_is_that_of_the_path(
    tmp_path: Path, path: str, canonical: str | None, folder: str | None
) -> None:
    record = ir_record(path, canonical=canonical)
    del record["source"]["source_folder"]
    [[chunk]], _ = read_lines(FORMAT, tmp_path, [record])
    assert chunk["source"]["source_folder"] == folder


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"id": sha("other")}, codes.IDENTITY_MISMATCH),
        ({"parent_id": sha("other")}, codes.IDENTITY_MISMATCH),
        ({"content_hash": "ABC"}, findings.WRONG_TYPE),
        ({"content_hash": sha(b"other")}, codes.IDENTITY_MISMATCH),
        ({"schema_version": "2.0"}, findings.UNSUPPORTED_VERSION),
        ({"chunk_index": "0"}, findings.WRONG_TYPE),
        ({"source": {}}, findings.FIELD_MISSING),
        ({"tenant_id": 7}, findings.WRONG_TYPE),
        ({"segments": [{"type": "chapter"}]}, findings.WRONG_TYPE),
    ],
)
def test_read_when_a_record_contradicts_itself_refuses_it_alone(
    tmp_path: Path, changes: dict[str, Any], code: str
) -> None:
    families, notices = read_lines(FORMAT, tmp_path, [ir_record("/good.pdf"), {**ir_record(), **changes}])
    assert codes_of(notices) == [(2, code, True)]
    assert list(texts_of(families)) == ["/good.pdf"]


def test_read_when_extraction_failed_or_was_skipped_reports_it(tmp_path: Path) -> None:
    records = [
        ir_record("/a.pdf", "", status="failed", errors=[{"code": "E1", "message": "broken xref"}, "torn page"]),
        ir_record("/b.pdf", "", status="skipped", warnings=["too large"]),
        ir_record("/c.pdf", " \n"),
        ir_record("/d.pdf", "kept", status="partial", warnings=["page 3 is blank"]),
    ]
    [[chunk]], notices = read_lines(FORMAT, tmp_path, records)
    assert codes_of(notices) == [
        (1, codes.EXTRACTION_FAILED, True),
        (2, codes.EXTRACTION_SKIPPED, False),
        (3, codes.SOURCE_EMPTY, False),
    ]
    assert "broken xref" in notices[0].reason
    assert "too large" in notices[1].reason
    assert (chunk["text"], chunk["warnings"]) == ("kept", ["page 3 is blank"])


def test_read_when_a_part_failed_returns_the_others_as_a_partial_family(tmp_path: Path) -> None:
    records = parts("/a.pdf", ["one", "two", "three"])
    records[1]["status"] = "failed"
    _, family = read_items(FORMAT, write_lines(tmp_path / "r.jsonl", records))
    assert isinstance(family, Family)
    assert family.is_partial
    found = [(chunk["text"], chunk["chunk_index"], chunk["chunk_count"]) for chunk in family.chunks]
    assert found == [("one", 0, 2), ("three", 1, 2)]
    assert family.chunks[1]["original"] == {"schema_version": "1.0", "chunk_index": 2, "chunk_count": 3}
    assert family.chunks[1]["chunk_id"] == records[2]["id"]
    assert is_valid_partition(tmp_path / "bus", [family.chunks])


@pytest.mark.promise(11)
def test_read_when_tenants_differ_gives_them_different_ids(tmp_path: Path) -> None:
    chunks = [read_lines(FORMAT, tmp_path, [ir_record()], tenant)[0][0][0] for tenant in (None, "acme", "emca")]
    for name in ("chunk_id", "document_id"):
        assert len({chunk[name] for chunk in chunks}) == 3
    assert len({project_family([chunk])[0].parent_id for chunk in chunks}) == 3
    assert (chunks[1]["tenant_id"], chunks[1]["original"]["id"]) == ("acme", chunks[0]["chunk_id"])
    [[named]], _ = read_lines(FORMAT, tmp_path, [ir_record(tenant_id="acme")], "acme")
    assert named["chunk_id"] == chunks[1]["chunk_id"]


def test_match_when_records_vary_depends_on_content_text() -> None:
    assert FORMAT.match(ir_record()) is FORMAT.match({"content": {"content_text": ""}}) is Match.LIKELY
    assert FORMAT.match({"content": "text"}) is Match.NO


names = st.text(max_size=6) | st.sampled_from(["original", "span", "hashes", "tokens", "a.b", "", "vector", "parser"])
values = json_values(names)
unknown = st.dictionaries(names, values, max_size=4)
PLACES: dict[tuple[str | int, ...], tuple[str | int, ...]] = {
    ("id",): ("chunk_id",),
    ("schema_version",): ("original", "schema_version"),
    ("content", "content_text"): ("text",),
}


@given(unknown, st.sampled_from(("source", "provenance", "content", "locator", "metadata")), unknown)
def test_read_when_fields_are_unknown_loses_none(
    tmp_path_factory: pytest.TempPathFactory, top: Any, group: str, inner: Any
) -> None:
    """Each is at the place documented in docs/formats/ir.md."""
    record = {**top, **ir_record()}
    record[group] = {**inner, **record[group]}
    [[chunk]], notices = read_lines(FORMAT, tmp_path_factory.getbasetemp(), [orjson.dumps(record)])
    assert notices == []
    for path, value in leaves(record):
        if path == ("content_hash",):
            assert chunk["provenance"]["source_checksum"] == f"sha256:{value}"
        elif path in PLACES:
            assert at(chunk, PLACES[path]) == value
        else:
            assert is_at(chunk, path, value) or is_at(chunk, ("original", *path), value), path


# -- the published schema, and records of newer extractors


EXAMPLES = ROOT / "chunksink" / "schema" / "ir-examples.jsonl"
SCHEMA = ROOT / "chunksink" / "schema" / "ir-schema.json"
VALIDATOR = jsonschema.Draft202012Validator(ir_schema())


def records_of(path: Path) -> list[NumberedRecord]:
    return [entry for entry in read_records(path, lambda _: True) if isinstance(entry, NumberedRecord)]


def test_schema_when_published_is_the_one_that_records_are_checked_against() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == ir_schema()


def test_schema_when_examples_are_validated_accepts_them() -> None:
    for record in [*(entry.record for entry in records_of(EXAMPLES)), ir_record()]:
        VALIDATOR.validate(record)
        again = msgspec.to_builtins(msgspec.convert(record, IrRecord))
        VALIDATOR.validate(again)
        assert all(at(record, path) == value for path, value in leaves(again) if value is not None)
    families, notices = read_file(IrFormat(), EXAMPLES)
    assert len(families) >= 4
    assert {notice.code for notice in notices if notice.is_failure} <= {codes.EXTRACTION_FAILED}


@given(st.dictionaries(st.sampled_from(sorted(ir_record())), st.none() | st.integers() | st.text(max_size=3)))
def test_schema_when_records_change_agrees_with_the_reader(changes: dict[str, Any]) -> None:
    record = {**ir_record(), **changes}
    try:
        msgspec.convert(record, IrRecord)
        is_accepted = record["schema_version"] == "1.0"
    except msgspec.ValidationError:
        is_accepted = False
    assert VALIDATOR.is_valid(record) == is_accepted


def test_outdated_when_schema_extractor_or_model_is_older_returns_the_record() -> None:
    made = ir_record()["provenance"]
    records = [
        ir_record("/current.pdf"),
        ir_record("/old-schema.pdf", schema_version="0.9"),
        ir_record("/old-extractor.pdf", provenance={**made, "extractor_version": "1.3.9"}),
        ir_record("/old-model.pdf", provenance={**made, "model": {"ocr_engine": "tess", "ocr_version": "4.1"}}),
        ir_record("/no-model.pdf", provenance={**made, "model": None}),
        ir_record("/other-extractor.pdf", provenance={"extractor_name": "mail", "extractor_version": "0.2"}),
    ]
    current = Current("1.0", {"pdf-text": "1.4.0"}, {"ocr_version": "5.3"})
    found = {one.path: [what for what, _, _ in one.differences] for one in outdated(records, current)}
    assert found == {
        "/old-schema.pdf": ["schema_version"],
        "/old-extractor.pdf": ["extractor pdf-text"],
        "/old-model.pdf": ["model ocr_version"],
    }


def made_by(path: str, version: str, processed_at: str, model: str) -> dict[str, Any]:
    about = {"extractor_name": "x", "extractor_version": version, "processed_at": processed_at}
    return ir_record(path, provenance={**about, "model": {"asr_model": model}})


def test_newest_when_versions_differ_returns_the_highest_and_the_latest_model() -> None:
    records = [
        made_by("/a", "1.9.0", "2024-01-01T00:00:00Z", "small"),
        made_by("/b", "1.10.0", "2024-03-01T00:00:00Z", "large"),
        made_by("/c", "1.10.0rc1", "2024-02-01T00:00:00Z", "medium"),
    ]
    current = newest(records)
    assert current == Current("1.0", {"x": "1.10.0"}, {"asr_model": "large"})
    assert newest(reversed(records)) == current
    assert [one.path for one in outdated(records, current)] == ["/a", "/c"]


def test_newest_when_models_have_no_time_does_not_depend_on_the_order() -> None:
    records = [made_by("/a", "1", "", model) for model in ("v10", "v9", "v2")]
    assert newest(records).models == newest(reversed(records)).models == {"asr_model": "v10"}


def test_outdated_when_records_are_odd_reads_them() -> None:
    odd = [{"schema_version": 3, "provenance": "odd"}, {"provenance": "odd"}]
    found = list(outdated(odd, newest([*odd, ir_record()])))
    assert [one.differences[0][0] for one in found] == ["schema_version"], "a newer schema is not outdated"
