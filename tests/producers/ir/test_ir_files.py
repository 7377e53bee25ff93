"""IR on disk: written back byte for byte, checked against its published schema, and asked what is outdated."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.producers.ir import Current, IrLine, IrReader, ir_schema, newest, outdated, read_ir, write_ir
from chunksink.producers.ir.schema import IrRecord
from chunksink.producers.produced import LeftOut
from tests.conftest import ROOT
from tests.producers.ir.samples import ir_record
from tests.producers.reading import at, leaves, read_all, read_records, write_lines

EXAMPLES = ROOT / "docs" / "schema" / "ir-examples.jsonl"
SCHEMA = ROOT / "docs" / "schema" / "ir-schema.json"


def lines_of(path: Path) -> list[IrLine]:
    return [line for line in read_ir(path) if isinstance(line, IrLine)]


def test_what_is_read_is_written_byte_for_byte(tmp_path: Path) -> None:
    odd = b'{ "b": 1.50, "a": "\\u00e9", "big": 12345678901234567890123, "a b": [1e3, -0.0] }'
    file = write_lines(tmp_path / "in.jsonl", [ir_record(), odd, ir_record("/b.pdf", "zwei \U0001f469")])
    assert write_ir(tmp_path / "out.jsonl", lines_of(file)) == 3
    assert (tmp_path / "out.jsonl").read_bytes() == file.read_bytes()
    assert write_ir(file, lines_of(EXAMPLES)) > 0
    assert file.read_bytes() == EXAMPLES.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_a_line_that_is_no_record_is_told_and_not_written(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "in.jsonl", [b"{", ir_record()])
    found = list(read_ir(file))
    assert [isinstance(one, LeftOut) for one in found] == [True, False]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "ir.jsonl", [ir_record()])
    before = file.read_bytes()

    def interrupted() -> Any:
        yield IrLine.of(ir_record("/b.pdf"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_ir(file, interrupted())
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_the_published_schema_is_the_one_that_records_are_checked_against() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == ir_schema()


def test_examples_and_samples_keep_to_the_schema(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(ir_schema())
    for line in [*lines_of(EXAMPLES), IrLine.of(ir_record())]:
        validator.validate(line.record)
        again = msgspec.to_builtins(msgspec.convert(line.record, IrRecord))
        validator.validate(again)
        for path, value in leaves(again):
            if value is not None:
                assert at(line.record, path) == value
    produced, left = read_all(IrReader(), EXAMPLES)
    assert len(produced) >= 4
    assert not any(one.is_failure and one.code != "EXTRACTION_FAILED" for one in left)


@given(st.dictionaries(st.sampled_from(sorted(ir_record())), st.none() | st.integers() | st.text(max_size=3)))
def test_schema_and_reader_agree_on_what_is_a_record(changes: dict[str, Any]) -> None:
    record = {**ir_record(), **changes}
    valid = jsonschema.Draft202012Validator(ir_schema()).is_valid(record)
    try:
        msgspec.convert(record, IrRecord)
        taken = record["schema_version"] == "1.0"
    except msgspec.ValidationError:
        taken = False
    assert valid == taken


names = st.text(max_size=6) | st.sampled_from(["original", "span", "hashes", "tokens", "a.b", "", "vector", "parser"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
unknown = st.dictionaries(names, values, max_size=4)
GROUPS = ("source", "provenance", "content", "locator", "metadata")


def place_of(path: tuple[str | int, ...], chunk: dict[str, Any]) -> tuple[str | int, ...]:
    """Where docs/seams.md says that a field of an IR record stands."""
    known: dict[tuple[str | int, ...], tuple[str | int, ...]] = {
        ("id",): ("chunk_id",),
        ("schema_version",): ("original", "schema_version"),
        ("content", "content_text"): ("text",),
    }
    if path in known:
        return known[path]
    original = ("original", *path)
    try:
        at(chunk, original)
    except (KeyError, TypeError, IndexError):
        return path
    return original


@given(unknown, st.sampled_from(GROUPS), unknown)
def test_no_field_is_lost(tmp_path_factory: pytest.TempPathFactory, top: Any, group: str, inner: Any) -> None:
    record = ir_record()
    record = {**{name: value for name, value in top.items() if name not in record}, **record}
    record[group] = {**{name: value for name, value in inner.items() if name not in record[group]}, **record[group]}
    record.pop("tenant_id", None)
    produced, left = read_records(IrReader(), tmp_path_factory.mktemp("ir"), [orjson.dumps(record)])
    assert left == []
    (chunk,) = produced[0].records
    for path, value in leaves(record):
        if path == ("content_hash",):
            assert chunk["provenance"]["source_checksum"] == f"sha256:{value}"
        else:
            assert at(chunk, place_of(path, chunk)) == value, path


def test_an_older_schema_extractor_or_model_is_listed() -> None:
    made = ir_record()["provenance"]
    records = [
        ir_record("/current.pdf"),
        ir_record("/old-schema.pdf", schema_version="0.9"),
        ir_record("/old-extractor.pdf", provenance={**made, "extractor_version": "1.3.9"}),
        ir_record("/old-model.pdf", provenance={**made, "model": {"ocr_engine": "tess", "ocr_version": "4.1"}}),
        ir_record("/no-model.pdf", provenance={**made, "model": None}),
        ir_record("/other-extractor.pdf", provenance={"extractor_name": "mail", "extractor_version": "0.2"}),
    ]
    given_current = Current("1.0", {"pdf-text": "1.4.0"}, {"ocr_version": "5.3"})
    found = {one.path: [what for what, _, _ in one.differences] for one in outdated(records, given_current)}
    assert found == {
        "/old-schema.pdf": ["schema_version"],
        "/old-extractor.pdf": ["extractor pdf-text"],
        "/old-model.pdf": ["model ocr_version"],
    }


def test_the_newest_is_found_by_version_and_for_models_by_time() -> None:
    def made(version: str, at: str, model: str) -> dict[str, Any]:
        return {"extractor_name": "x", "extractor_version": version, "processed_at": at, "model": {"asr_model": model}}

    records = [
        ir_record("/a", provenance=made("1.9.0", "2024-01-01T00:00:00Z", "small")),
        ir_record("/b", provenance=made("1.10.0", "2024-03-01T00:00:00Z", "large")),
        ir_record("/c", provenance=made("1.10.0rc1", "2024-02-01T00:00:00Z", "medium")),
        {"schema_version": 3, "provenance": "odd"},
    ]
    current = newest(records[:3])
    assert current == Current("1.0", {"x": "1.10.0"}, {"asr_model": "large"})
    assert newest(reversed(records[:3])) == current
    assert [one.path for one in outdated(records[:3], current)] == ["/a", "/c"]
    assert len(list(outdated(records, current))) == 2, "what is newer than what is read here is not outdated"
    assert len(list(outdated([*records, {"provenance": "odd"}], current))) == 3
    later = [
        ir_record("/a", provenance=made("1", "2024-01-01T02:00:00+05:00", "small")),
        ir_record("/b", provenance=made("1", "2023-12-31T23:00:00Z", "large")),
    ]
    assert newest(later).models == {"asr_model": "large"}, "times are compared, not their digits"
    same = [ir_record("/a", provenance=made("1", "", one)) for one in ("v10", "v9", "v2")]
    assert newest(same).models == newest(reversed(same)).models == {"asr_model": "v10"}
