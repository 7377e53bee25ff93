"""What lies in a folder and cannot be told, or not any more: nothing is passed over without a word."""

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.producers.bench import LATER, Bench
from tests.producers.bridges.samples import structural_chunk
from tests.producers.ir.samples import ir_record
from tests.producers.parsed.samples import parsed
from tests.producers.recorder.support import said


def lines(*records: Any) -> bytes:
    return b"".join(orjson.dumps(record) + b"\n" for record in records)


def names(bench: Bench) -> list[str]:
    return sorted({record["provenance"]["source_uri"] for record in bench.records()})


@pytest.mark.promise(6)
def test_a_file_that_was_read_before_and_cannot_be_told_any_more_fails(bench: Bench) -> None:
    records = bench.write("r.jsonl", lines(ir_record("/one.pdf"), ir_record("/two.pdf")))
    log = bench.write("log.jsonl", lines(said("hello there", 0)))
    bench.write("m.md", "# M")
    assert bench.ingest(kind="auto").failures == ()
    before = names(bench)
    records.write_bytes(records.read_bytes()[:300])
    log.write_bytes(log.read_bytes().decode().encode("utf-16"))
    for prune in (False, True):
        report = bench.ingest(kind="auto", prune=prune, now=LATER)
        assert {(failure.source_uri, failure.code) for failure in report.failures} == {
            ("r.jsonl", "SCHEMA_INVALID:json_parse"),
            ("log.jsonl", "EVENT_NOT_UTF8"),
            ("log.jsonl", "EVENT_MALFORMED"),
        }
        assert names(bench) == before, "what was good stays"
    assert bench.manifest().counts.failures == report.failed
    assert {row["source_uri"] for row in bench.attempts(status="failed")} == {"r.jsonl", "log.jsonl"}


def test_a_file_that_was_read_before_and_cannot_be_opened_any_more_fails_again_and_again(bench: Bench) -> None:
    log = bench.write("log.jsonl", lines(said("hello there", 0)))
    bench.ingest(kind="auto")
    log.unlink()
    log.symlink_to(bench.docs / "gone")
    for _ in range(2):
        report = bench.ingest(kind="auto", now=LATER)
        assert [(failure.source_uri, failure.code) for failure in report.failures] == [
            ("log.jsonl", "SOURCE_UNREADABLE")
        ]
    log.unlink()
    log.write_bytes(b"\xff\xff\xff\n")
    assert bench.ingest(kind="auto", now=LATER).failed == 1, "it is still known for a log"


def test_a_log_that_was_emptied_is_read_as_a_log(bench: Bench) -> None:
    bench.write("log.jsonl", lines(said("hello there", 0)))
    bench.ingest(kind="auto")
    bench.write("log.jsonl", "")
    report = bench.ingest(kind="auto", now=LATER)
    assert (report.empty, report.failures) == (1, ())


def test_what_cannot_be_opened_fails_though_it_was_never_read(bench: Bench) -> None:
    bench.write("a.md", "# A")
    (bench.docs / "dangling.jsonl").symlink_to(bench.docs / "gone")
    os.mkfifo(bench.docs / "pipe.json")
    report = bench.ingest(kind="auto")
    assert {(failure.source_uri, failure.code) for failure in report.failures} == {
        ("dangling.jsonl", "SOURCE_UNREADABLE"),
        ("pipe.json", "SOURCE_UNREADABLE"),
    }
    assert bench.manifest().errors == {"SOURCE_UNREADABLE": 2}


def test_what_is_no_record_is_counted_and_no_failure(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.write("package.json", '{"name": "x"}')
    bench.write("config/tsconfig.json", "// said\n{}")
    bench.write("empty.jsonl", "\n")
    report = bench.ingest(kind="auto")
    assert (report.failures, report.sources, report.empty) == ((), 1, 0)
    assert report.left_out == {"RECORD_FORM_UNKNOWN": 2, "SOURCE_EMPTY": 1}
    assert bench.manifest().errors == report.left_out
    rows = {row["source_uri"]: (row["status"], row["error_type"]) for row in bench.attempts()}
    assert rows["package.json"] == ("processed", "RECORD_FORM_UNKNOWN")
    assert rows["empty.jsonl"] == ("processed", "SOURCE_EMPTY")
    again = bench.ingest(kind="auto", now=LATER)
    assert (again.written, again.left_out) == (False, report.left_out)
    assert len(bench.attempts()) == 4, "it is told again and recorded once"
    bench.write("empty.jsonl", "{}")
    bench.ingest([bench.docs / "package.json"], kind="auto", now=LATER)
    bench.ingest(kind="auto", now=LATER)
    codes = [(row["status"], row["error_type"]) for row in bench.attempts(source="empty")]
    assert codes == [("processed", "RECORD_FORM_UNKNOWN"), ("processed", "SOURCE_EMPTY")], "what changed is recorded"
    assert [row["status"] for row in bench.attempts(source="package")] == ["processed", "failed", "processed"]


def test_json_with_fields_of_an_event_does_not_make_the_whole_folder_fail(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.write("i18n/ar.json", '{"direction": "rtl", "name": "Arabic"}')
    bench.write("clicks.jsonl", '{"event_type": "click", "at": 1}\n{"event_type": "view", "at": 2}\n')
    bench.write("chat.jsonl", '{"direction": "in", "text": "Hello"}\n')
    report = bench.ingest(kind="auto")
    assert (report.processed, report.failed, report.left_out) == (1, 0, {"RECORD_FORM_UNKNOWN": 3})


def test_an_empty_file_that_is_named_is_no_failure(bench: Bench) -> None:
    report = bench.ingest([bench.write("empty.jsonl", "")], kind="auto")
    assert (report.failures, report.left_out) == ((), {"SOURCE_EMPTY": 1})


@pytest.mark.promise(6)
def test_a_folder_that_holds_nothing_but_what_is_no_record_is_not_pruned(bench: Bench) -> None:
    from chunksink.producers.errors import IngestRefused

    bench.write("a.md", "# A")
    bench.write("package.json", '{"name": "x"}')
    bench.ingest(kind="auto")
    (bench.docs / "a.md").unlink()
    with pytest.raises(IngestRefused, match="holds no source"):
        bench.ingest(kind="auto", prune=True, now=LATER)


def test_all_that_a_parsed_document_may_be_is_read_as_one(bench: Bench) -> None:
    source = {"folder": "d", "type": "policy"}
    bench.write("t.jsonl", lines({"source": {**source, "path": "d/text.pdf"}, "text": "Words."}))
    bench.write("r.jsonl", lines({"source": {**source, "path": "d/table.pdf"}, "tables": [{"rows": [["a", "b"]]}]}))
    report = bench.ingest(kind="auto")
    assert (report.left_out, names(bench)) == ({}, ["d/table.pdf", "d/text.pdf"])


@pytest.mark.parametrize("is_folder", [True, False])
def test_chunks_of_others_are_all_kept(bench: Bench, is_folder: bool) -> None:
    chunks = [structural_chunk(number) for number in range(5)]
    if is_folder:
        for chunk in chunks:
            bench.write(f"chunks/{chunk['id']}.json", orjson.dumps(chunk))
    else:
        bench.write("chunks.jsonl", lines(*chunks))
    report = bench.ingest(kind="auto")
    assert (report.chunks, report.left_out) == (5, {})


def test_named_and_unknown_is_a_failure_also_where_its_folder_is_named_too(bench: Bench) -> None:
    package: Path = bench.write("package.json", '{"name": "x"}')
    bench.write("d.json", orjson.dumps(parsed()))
    bench.write("l.json", lines(parsed(), parsed("b.md")))
    report = bench.ingest([bench.docs, package], kind="auto")
    assert [(failure.source_uri, failure.code) for failure in report.failures] == [
        ("package.json", "RECORD_FORM_UNKNOWN")
    ]
