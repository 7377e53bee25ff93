"""`chunksink reindex` lists chunks of an older extractor, model or schema."""

import json
from typing import Any

import pytest

from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell, write
from tests.ingest.ir.samples import ir_record


def made_by(path: str, version: str, model: str = "tess", **more: Any) -> dict[str, Any]:
    record = ir_record(path, **more)
    record["provenance"] = {"extractor_name": "pdf-text", "extractor_version": version, "model": {"ocr_engine": model}}
    return record


@pytest.fixture
def records(shell: Shell) -> Shell:
    """Two chunks of an old extraction, one of the newest, and one that is no IR record."""
    old = [made_by("/srv/old.pdf", "1.9", index=index, count=2) for index in (0, 1)]
    lines = [*old, made_by("/srv/new.pdf", "1.10")]
    write(shell, "in/deep/a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    write(shell, "in/parsed.json", json.dumps({"doc_id": "d", "text": "no provenance"}))
    return shell


def test_reindex_takes_the_newest_versions_as_current(records: Shell) -> None:
    ended = records("reindex", "in")
    assert (ended.code, ended.out) == (Exit.OK, "/srv/old.pdf: 2 records: extractor pdf-text 1.9, now 1.10\n")
    assert ended.err == "1 source to extract again; current is schema 1.0, ocr_engine tess, pdf-text 1.10\n"


def test_reindex_options_override_the_current_versions(records: Shell) -> None:
    report = records("reindex", "in", "--model", "ocr_engine=better", "--json").json
    assert {entry["path"]: entry["records"] for entry in report["outdated"]} == {"/srv/old.pdf": 2, "/srv/new.pdf": 1}
    newer = {"what": "model ocr_engine", "has": "tess", "current": "better"}
    assert report["outdated"][1]["differences"] == [newer]
    assert records("reindex", "in", "--extractor", "pdf-text=1.9", "--paths").out == "/srv/new.pdf\n", "a newer one too"
    assert records("reindex", "in", "--schema", "2.0", "--paths").out == "/srv/old.pdf\n/srv/new.pdf\n"


def test_reindex_reports_invalid_files_and_examines_the_rest(records: Shell) -> None:
    write(records, "in/broken.jsonl", "{broken\n")
    ended = records("reindex", "in", "--paths")
    assert (ended.code, ended.out) == (Exit.INVALID_INPUT, "/srv/old.pdf\n")
    assert "broken.jsonl: SCHEMA_INVALID:json_parse" in ended.err
    assert records("reindex", "in/none").code == Exit.USAGE
    assert records("reindex", "in", "--model", "tess").code == Exit.USAGE
