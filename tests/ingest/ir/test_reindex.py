"""IR records are checked against their published schema, and compared with newer extractors."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from chunksink.ingest.codes import EXTRACTION_FAILED
from chunksink.ingest.formats.ir import IrFormat
from chunksink.ingest.formats.ir.reindex import Current, newest, outdated
from chunksink.ingest.formats.ir.schema import IrRecord, ir_schema
from chunksink.ingest.json_records import Numbered, read_records
from tests.conftest import ROOT
from tests.ingest.ir.samples import ir_record
from tests.ingest.reading import at, leaves, read_file

EXAMPLES = ROOT / "docs" / "schema" / "ir-examples.jsonl"
SCHEMA = ROOT / "docs" / "schema" / "ir-schema.json"
VALIDATOR = jsonschema.Draft202012Validator(ir_schema())


def records_of(path: Path) -> list[Numbered]:
    return [entry for entry in read_records(path, lambda _: True) if isinstance(entry, Numbered)]


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
    assert {notice.code for notice in notices if notice.is_failure} <= {EXTRACTION_FAILED}


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
