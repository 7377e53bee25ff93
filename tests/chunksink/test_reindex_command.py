"""`chunksink reindex` lists what an older extractor, model or schema has made."""

import json
from pathlib import Path
from typing import Any

import pytest

from chunksink.cli import run
from chunksink.exits import Exit
from tests.ingest.ir.samples import ir_record


def made_by(path: str, version: str, model: str = "tess", **more: Any) -> dict[str, Any]:
    record = ir_record(path, **more)
    record["provenance"] = {"extractor_name": "pdf-text", "extractor_version": version, "model": {"ocr_engine": model}}
    return record


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Two chunks of an old extraction, one of the newest, and what is no IR record."""
    old = [made_by("/srv/old.pdf", "1.9", index=index, count=2) for index in (0, 1)]
    lines = [*old, made_by("/srv/new.pdf", "1.10")]
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "parsed.json").write_text(json.dumps({"doc_id": "d", "text": "no provenance"}))
    return tmp_path


def test_the_newest_of_the_records_is_current(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reindex", str(records)]) == Exit.OK
    told = capsys.readouterr()
    assert told.out == "/srv/old.pdf: 2 records: extractor pdf-text 1.9, now 1.10\n"
    assert told.err == "1 source to extract again; current is schema 1.0, ocr_engine tess, pdf-text 1.10\n"


def test_what_is_said_to_be_current_counts(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reindex", str(records), "--model", "ocr_engine=better", "--json"]) == Exit.OK
    report = json.loads(capsys.readouterr().out)
    assert {entry["path"]: entry["records"] for entry in report["outdated"]} == {"/srv/old.pdf": 2, "/srv/new.pdf": 1}
    newer = {"what": "model ocr_engine", "has": "tess", "current": "better"}
    assert report["outdated"][1]["differences"] == [newer]
    assert run(["reindex", str(records), "--extractor", "pdf-text=1.9", "--paths"]) == Exit.OK
    assert capsys.readouterr().out == "/srv/new.pdf\n"
    assert run(["reindex", str(records), "--schema", "2.0", "--paths"]) == Exit.OK
    assert capsys.readouterr().out == "/srv/old.pdf\n/srv/new.pdf\n"


def test_new_records_replace_the_chunks_of_the_old(
    records: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole way: listed, extracted again, ingested; then nothing is outdated."""
    monkeypatch.chdir(records)
    assert run(["ingest", "deep", "--as", "ir"]) == Exit.OK
    again = [made_by("/srv/old.pdf", "1.10", text="Read better."), made_by("/srv/new.pdf", "1.10")]
    (records / "deep" / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in again))
    assert run(["ingest", "deep", "--as", "ir"]) == Exit.OK
    chunks = (records / "chunks" / "canonical" / "documents.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["text"] for line in chunks) == ["Quarterly figures.", "Read better."]
    capsys.readouterr()
    assert run(["reindex", "deep", "--paths"]) == Exit.OK
    assert capsys.readouterr().out == ""


def test_what_is_no_record_is_told_and_the_rest_looked_at(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (records / "broken.jsonl").write_text("{broken\n")
    assert run(["reindex", str(records), "--paths"]) == Exit.INVALID_INPUT
    told = capsys.readouterr()
    assert told.out == "/srv/old.pdf\n"
    assert "broken.jsonl: SCHEMA_INVALID:json_parse" in told.err
    assert run(["reindex", str(records / "none")]) == Exit.USAGE
    assert run(["reindex", str(records), "--model", "tess"]) == Exit.USAGE
