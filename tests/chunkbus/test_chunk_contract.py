"""Required, optional and unknown fields of a chunk, according to the code and to the published JSON Schema."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.errors import InvalidChunk, NotCanonical
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.record_checks import Rules, examine_line
from tests.chunkbus.samples import (
    NOON,
    chunk,
    codes,
    line_of,
    lines_of,
    manifest,
    provenance,
    put,
    schema_accepts,
    validate,
    without,
)

FLAT = {
    "source_ref": "doi:10.1000/182",
    "source_checksum": "b" * 64,
    "parser_name": "grobid",
    "parser_version": "0.8",
    "canonicalizer_name": "plain",
    "canonicalizer_version": "2",
    "inputs": [{"uri": "a.pdf", "checksum": "b" * 64}],
}


def problems(record: Any, **rules: bool) -> list[tuple[str, str]]:
    return [(problem.code, problem.detail) for problem in examine_line(line_of(record), Rules(**rules))[1]]


REQUIRED = [
    "schema_version",
    "chunk_id",
    "document_id",
    "text",
    "provenance",
    "provenance.source_uri",
    "provenance.parser",
    "provenance.parser.parser_name",
    "provenance.parser.parser_version",
    "provenance.canonicalizer",
    "provenance.canonicalizer.canonicalizer_name",
    "provenance.canonicalizer.canonicalizer_version",
    "provenance.inputs",
]


EMPTY = {
    "chunk_id": chunk(chunk_id=""),
    "document_id": chunk(document_id=""),
    "source_uri": chunk(provenance=provenance(source_uri="")),
}


@pytest.mark.parametrize(("path", "record"), [*((path, without(chunk(), path)) for path in REQUIRED), *EMPTY.items()])
def test_required_field_when_missing_is_an_error(path: str, record: Record) -> None:
    ((code, detail),) = problems(record)
    assert code == findings.FIELD_MISSING
    assert path.rsplit(".", 1)[-1] in detail
    assert not schema_accepts("chunk", record)


@pytest.mark.parametrize("name", ["parser_name", "parser_version", "canonicalizer_name", "canonicalizer_version"])
def test_flat_field_when_missing_is_an_error(name: str) -> None:
    assert problems(chunk(provenance=FLAT)) == []
    found = problems(chunk(provenance={**FLAT, name: ""}))
    assert [code for code, _ in found] == [findings.FIELD_MISSING]
    assert name in found[0][1]
    assert not schema_accepts("chunk", chunk(provenance={**FLAT, name: ""}))
    assert problems(chunk(provenance=without(FLAT, name))) == found


@pytest.mark.parametrize("field", ["schema_version", "chunk_id", "document_id", "text", "provenance"])
@pytest.mark.parametrize("value", [None, 7, [], {}, True], ids=repr)
def test_required_field_when_of_a_wrong_type_is_refused(field: str, value: Any) -> None:
    if field == "provenance" and value == {}:
        expected = findings.FIELD_MISSING
    elif field == "schema_version" and value is not None:
        expected = findings.UNSUPPORTED_VERSION
    else:
        expected = findings.WRONG_TYPE
    assert [code for code, _ in problems(chunk(**{field: value}))] == [expected]
    assert not schema_accepts("chunk", chunk(**{field: value}))


@pytest.mark.parametrize("value", ["chunks.v2", "chunks.v1 ", "CHUNKS.V1", "", "1"])
def test_schema_version_when_unknown_is_the_only_problem(value: str) -> None:
    found = problems({"schema_version": value})
    assert [code for code, _ in found] == [findings.UNSUPPORTED_VERSION]
    assert repr(value) in found[0][1]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("parent_id", 1),
        ("tenant_id", ["a"]),
        ("chunk_index", -1),
        ("chunk_count", "3"),
        ("chunk_count", 1.0),
        ("metadata", []),
        ("span", {"pages": {"page_start": "1"}}),
        ("hashes", {"text_hash": 1}),
        ("producer", "tests"),
        ("quality", "good"),
        ("embedding_ref", [0.1, 0.2]),  # a chunk never contains a vector
        ("created_at", 1769860800),
        ("metadata", {"tenant_id": 7}),
    ],
)
def test_known_field_when_of_a_wrong_type_is_refused(field: str, value: Any) -> None:
    assert [code for code, _ in problems(chunk(**{field: value}))] == [findings.WRONG_TYPE]
    # For a JSON Schema, 1.0 is an integer.
    assert schema_accepts("chunk", chunk(**{field: value})) is (field == "chunk_count" and value == 1.0)


@pytest.mark.parametrize("stamp", ["31.01.2026", "0001-01-01T00:00:00+23:00"], ids=["no ISO 8601", "no UTC instant"])
def test_created_at_when_not_a_time_is_refused(stamp: str) -> None:
    assert [code for code, _ in problems(chunk(created_at=stamp))] == [findings.WRONG_TYPE]


@pytest.mark.parametrize(
    "fields", [{"chunk_index": 0.0}, {"chunk_count": 1.5}, {"span": {"pages": {"page_start": 3.0}}}], ids=str
)
def test_integer_when_written_with_a_fraction_names_the_fraction(fields: dict[str, Any]) -> None:
    ((code, detail),) = problems(chunk(0, **fields))
    assert code == findings.WRONG_TYPE
    assert "fraction" in detail
    assert "fraction" not in problems(chunk(0, chunk_index="0"))[0][1]


@pytest.mark.parametrize(
    "changes",
    [
        {"text": ""},
        {"provenance": provenance(source_uri=None, source_ref="isbn:1")},
        {"provenance": provenance(parser=None, parser_name="p", parser_version="1")},
        {"provenance": {**FLAT, "parser": None, "canonicalizer": None}},
        {"provenance": provenance(source_checksum=None)},
        {"provenance": provenance(anything={"else": 1})},
        {"hashes": None},
        {"hashes": {}},
        {"metadata": None, "span": None, "source": None, "tokens": None, "created_at": None},
        {"span": {"pages": {"page_start": 1, "page_end": 2}, "section": ["A", "B"], "tei": {"xpath": "/"}}},
        {"span": {"section": "A > B", "char_range": {"char_start": 0, "char_end": 9}, "more": True}},
        {"span": {"char_range": {"char_start": 5, "char_end": 5}, "pages": {"page_start": 0, "page_end": 0}}},
        {"span": {"char_range": {"char_start": 5}, "pages": {"page_end": 2}}},
        {"span": {"char_range": {}, "pages": None}},
        {"chunk_index": 2**53 - 1},
        {"metadata": {"title": "T", "authors": ["A"], "year": 1999, "nested": {"deep": [1, 2.5, None]}}},
        {"tokens": {"count": 12}, "quality": {"is_empty": False}, "embedding_ref": "cache:1"},
        {"created_at": "2026-01-31"},
        {"created_at": "2026-01-31T12:00:00.123456+02:00"},
        {"x_unknown": {"kept": [1, {"a": "b"}]}, "zz": None},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_optional_and_unknown_fields_are_accepted(changes: dict[str, Any]) -> None:
    record = chunk(**changes)
    assert problems(record) == []
    assert examine_line(json.dumps(record, indent=None).encode())[1] == ()
    assert schema_accepts("chunk", record)


@pytest.mark.parametrize("form", ["sha256:{}", "{}", "sha256:{0:.0}{1}", "{0:.0}{1}"])
def test_hashes_may_be_bare_or_upper_case(form: str) -> None:
    record = chunk()
    digest = record["hashes"]["text_hash"].removeprefix("sha256:")
    assert problems({**record, "hashes": {"text_hash": form.format(digest, digest.upper())}}) == []
    wrong = "0" * 64
    found = problems({**record, "hashes": {"text_hash": form.format(wrong, wrong)}})
    assert [code for code, _ in found] == [findings.TEXT_HASH_MISMATCH]


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"span": {"char_range": {"char_start": 9, "char_end": 5}}}, "span.char_range is from 9 to 5"),
        ({"span": {"char_range": {"char_start": -1, "char_end": 5}}}, "span.char_range is from -1 to 5"),
        ({"span": {"char_range": {"char_end": -1}}}, "span.char_range is from None to -1"),
        ({"span": {"char_range": {"char_start": 10**30}}}, f"span.char_range is from {10**30} to None"),
        ({"span": {"pages": {"page_start": 3, "page_end": 2}}}, "span.pages is from 3 to 2"),
        ({"chunk_index": 2**53}, f"chunk_index is above {2**53 - 1}"),
        ({"chunk_index": 10**30}, f"chunk_index is above {2**53 - 1}"),
    ],
    ids=str,
)
def test_place_when_impossible_is_a_warning(changes: dict[str, Any], detail: str) -> None:
    (problem,) = examine_line(line_of(chunk(**changes)))[1]
    assert (problem.code, problem.severity.value, problem.detail) == (findings.PLACE_IMPOSSIBLE, "warning", detail)


def test_unusual_values_are_accepted(tmp_path: Path) -> None:
    """The contract allows a repeated `chunk_index`, no line break at the end, and upper-case hashes."""
    records = [chunk(0, chunk_index=0), chunk(1, chunk_index=0)]
    records[1]["hashes"] = {"text_hash": records[1]["hashes"]["text_hash"].removeprefix("sha256:").upper()}
    data = lines_of(records)
    assert validate(put(FolderRoot(tmp_path), "whole", data)) == []
    checksum = {"chunks_file": "sha256:" + hashlib.sha256(data[:-1]).hexdigest()}
    assert validate(put(FolderRoot(tmp_path), "open", data[:-1], manifest("open", data, checksums=checksum))) == []


def test_source_checksum_when_required_and_missing_is_an_error() -> None:
    for absent in (None, ""):
        record = chunk(provenance=provenance(source_checksum=absent))
        assert problems(record) == []
        assert problems(record, require_source_checksum=True) == [
            (findings.SOURCE_CHECKSUM_MISSING, "lacks provenance.source_checksum")
        ]


@pytest.mark.parametrize(
    ("checksum", "is_known"),
    [
        *[("sha256:" + "Ab" * 32, True), ("ab" * 32, True), ("md5:" + "a" * 32, False), ("a" * 63, False)],
        *[("2024", False), ("sha256:" + "g" * 64, False), ("a" * 64 + "\n", False)],
    ],
)
def test_source_checksum_when_of_another_kind_is_a_warning(checksum: str, is_known: bool) -> None:
    for required in (False, True):
        found = examine_line(line_of(chunk(provenance=provenance(source_checksum=checksum))), Rules(required))[1]
        assert [(problem.code, problem.severity) for problem in found] == (
            [] if is_known else [(findings.WRONG_TYPE, findings.Severity.WARNING)]
        )
        assert all(repr(checksum) in problem.detail for problem in found)


@pytest.mark.parametrize(
    "changes",
    [{"text": "a\0b"}, {"text": "c", "created_at": NOON + "x"}, {"text": "a", "hashes": {"text_hash": "0" * 64}}],
    ids=["nul", "time", "hash"],
)
def test_repeated_id_when_one_chunk_has_a_problem_is_found(changes: dict[str, Any], tmp_path: Path) -> None:
    root = put(FolderRoot(tmp_path), "k", lines_of([chunk(0), {**chunk(0), **changes}]))
    assert findings.DUPLICATE_IDS in codes(validate(root))


def test_new_chunk_is_valid() -> None:
    record = new_chunk(
        document_id="d", text=" \ufeffText\r\n", provenance=provenance(), span_key=0, created_at=NOON,
        fields={"metadata": {"title": "T"}, "extra": 1},
    )  # fmt: skip
    assert problems(record, require_source_checksum=True) == []
    assert record["text"] == "Text"
    assert record["extra"] == 1
    again = new_chunk(document_id="d", text="Text", provenance=provenance(), span_key=0, created_at="2030-01-01")
    assert again["chunk_id"] == record["chunk_id"]


def test_new_chunk_when_given_computed_fields_is_refused() -> None:
    with pytest.raises(InvalidChunk, match="text"):
        new_chunk(document_id="d", text="t", provenance={}, span_key=0, created_at=NOON, fields={"text": "other"})
    with pytest.raises(NotCanonical):
        new_chunk(document_id="d", text="t", provenance={}, span_key=0, created_at=NOON, fields={"note": "\ud800"})
