"""Text that its source, read whole, does not say any more goes; nothing goes for want of a whole reading."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.ledger import Status
from chunksink.producers.produced import LeftOut, Making, Produced
from chunksink.producers.recorder import RecorderReader
from tests.producers.bench import LATER, NOW, Bench
from tests.producers.bridges.samples import markdown_chunk
from tests.producers.ir.samples import ir_record
from tests.producers.parsed.samples import parsed
from tests.producers.recorder.support import V2, said

PARTS = [f"log.jsonl#pane=3&part={number}" for number in range(3)]


def log(number: int) -> str:
    """Every event is a chunk of its own, so that 64 of them are a part."""
    return "".join(json.dumps(said(f"line {n}", 3_600_000 * n)) + "\n" for n in range(number))


def cast(number: int) -> str:
    return V2 + "\n" + "".join(json.dumps([3600.0 * n, "o", f"line {n}\n"]) + "\n" for n in range(number))


def jsonl(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def names(bench: Bench, key: str = "markdown") -> list[str]:
    found = (record["provenance"] for record in bench.records(key))
    return list(dict.fromkeys(provenance.get("source_uri") or provenance["source_ref"] for provenance in found))


@pytest.mark.parametrize(("name", "make"), [("log.jsonl", log), ("demo.cast", cast)])
def test_parts_of_a_recording_that_became_shorter_go(bench: Bench, name: str, make: Callable[[int], str]) -> None:
    bench.write(name, make(150))
    assert bench.ingest(kind="recorder").documents == 3
    bench.write(name, make(3))
    report = bench.ingest(kind="recorder", now=LATER)
    bench.assert_valid()
    assert (report.documents, report.chunks, report.pruned, report.carried_over) == (1, 3, 2, 0)
    again = bench.ingest(kind="recorder", now=LATER)
    assert (again.written, again.unchanged, again.pruned) == (False, 1, 0)


def test_a_log_that_lost_its_end_and_nothing_else_is_told_as_changed(bench: Bench) -> None:
    bench.write("log.jsonl", log(128))
    bench.ingest(kind="recorder")
    bench.write("log.jsonl", log(64))
    report = bench.ingest(kind="recorder", now=LATER)
    assert (report.processed, report.unchanged, names(bench)) == (1, 0, PARTS[:1])


def test_an_emptied_log_gives_up_its_chunks(bench: Bench) -> None:
    bench.write("log.jsonl", log(70))
    bench.write("other.jsonl", log(1))
    bench.ingest(kind="recorder")
    bench.write("log.jsonl", "")
    report = bench.ingest(kind="recorder", now=LATER)
    assert (names(bench), report.empty, report.pruned) == (["other.jsonl#pane=3&part=0"], 1, 2)
    assert not bench.ingest(kind="recorder", now=LATER).written


def test_a_log_goes_part_by_part_for_each_tenant(bench: Bench) -> None:
    bench.write("log.jsonl", log(70))
    for tenant in ("one", "two"):
        bench.ingest(kind="recorder", tenant=tenant)
    bench.write("log.jsonl", log(3))
    bench.ingest(kind="recorder", tenant="one", now=LATER)
    told = [(record["tenant_id"], record["provenance"]["source_uri"]) for record in bench.records()]
    assert list(dict.fromkeys(told)) == [("one", PARTS[0]), ("two", PARTS[0]), ("two", PARTS[1])]


@pytest.mark.promise(6)
@pytest.mark.parametrize(
    "broken",
    [log(3) + "{broken\n", log(3)[:-9], b"\xff\xfe" + log(3).encode("utf-16-le"), None],
    ids=["a line", "the last line", "another encoding", "not a file"],
)
def test_a_log_that_was_not_read_whole_withdraws_nothing(bench: Bench, broken: str | bytes | None) -> None:
    path = bench.write("log.jsonl", log(150))
    bench.ingest(kind="recorder")
    if broken is None:
        path.unlink()
        os.mkfifo(path)
    else:
        bench.write("log.jsonl", broken)
    for prune in (False, True):
        report = bench.ingest(kind="recorder", prune=prune, now=LATER)
        assert (report.failed > 0, report.pruned, names(bench)) == (True, 0, PARTS)


@pytest.mark.promise(6)
def test_a_log_that_grew_while_it_was_read_withdraws_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.write("log.jsonl", log(150))
    bench.ingest(kind="recorder")
    bench.write("log.jsonl", log(3))
    real = RecorderReader.read

    def read(self: RecorderReader, path: Path, uri: str, making: Making) -> Iterable[Produced | LeftOut]:
        yield from real(self, path, uri, making)
        with path.open("a") as file:
            file.write(log(1))

    with monkeypatch.context() as patched:
        patched.setattr(RecorderReader, "read", read)
        report = bench.ingest(kind="recorder", prune=True, now=LATER)
    assert (report.failed, report.pruned, names(bench)) == (0, 0, PARTS)
    path.write_text(log(3))
    assert bench.ingest(kind="recorder", now=LATER).pruned == 2


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("ir", ir_record("/a.pdf"), ir_record("/a.pdf", "")),
        ("ir", ir_record("/a.pdf"), ir_record("/a.pdf", "", content=b"new", status="skipped")),
        ("parsed", parsed("a.pdf"), {**parsed("a.pdf"), "blocks": []}),
        ("chunks", markdown_chunk(), markdown_chunk(chunk_text=" ")),
    ],
    ids=["ir empty", "ir skipped", "parsed", "chunks"],
)
@pytest.mark.parametrize("is_appended", [False, True], ids=["replaced", "appended"])
def test_a_record_that_says_nothing_now_takes_its_old_text_along(
    bench: Bench, kind: str, before: dict[str, Any], after: dict[str, Any], is_appended: bool
) -> None:
    others = {"ir": ir_record("/b.pdf"), "parsed": parsed("b.pdf"), "chunks": markdown_chunk(document="b")}
    other = others[kind]
    bench.write("r.jsonl", jsonl(other))
    bench.ingest(kind=kind)
    kept = names(bench)
    bench.write("r.jsonl", jsonl(before, other))
    bench.ingest(kind=kind, now=LATER)
    assert len(names(bench)) == 2
    bench.write("r.jsonl", jsonl(*([before] if is_appended else []), after, other))
    report = bench.ingest(kind=kind, now=LATER)
    assert (names(bench), report.pruned, report.failed, report.carried_over) == (kept, 1, 0, 0)
    again = bench.ingest(kind=kind, prune=True, now=LATER)
    assert (again.written, bench.manifest().tombstones) == (False, [])


@pytest.mark.promise(6)
@pytest.mark.parametrize(
    "more", ["{broken\n", jsonl(ir_record("/b.pdf", "", status="failed"))], ids=["broken", "failed"]
)
def test_beside_a_failure_no_record_withdraws_anything(bench: Bench, more: str) -> None:
    bench.write("r.jsonl", jsonl(ir_record("/a.pdf")))
    bench.ingest(kind="ir")
    bench.write("r.jsonl", jsonl(ir_record("/a.pdf", "")) + more)
    report = bench.ingest(kind="ir", now=LATER)
    assert (names(bench), report.failed, report.pruned) == (["/a.pdf"], 1, 0)


def test_a_family_goes_on_the_word_of_the_file_that_it_came_from_alone(bench: Bench) -> None:
    bench.write("1.jsonl", jsonl(ir_record("/a.pdf", "from 1")))
    bench.write("2.jsonl", jsonl(ir_record("/a.pdf", "")))
    assert bench.ingest(kind="ir").failed == 0
    assert [record["text"] for record in bench.records()] == ["from 1"]
    bench.write("2.jsonl", jsonl(ir_record("/a.pdf", "from 2")))
    bench.ingest(kind="ir", now=LATER)
    assert [record["text"] for record in bench.records()] == ["from 2"]


@pytest.mark.parametrize("now_says", [ir_record("/a.pdf", ""), ir_record("/other.pdf")], ids=["nothing", "others"])
def test_what_a_later_file_hid_comes_back_when_it_says_it_no_more(bench: Bench, now_says: dict[str, Any]) -> None:
    """And at no moment is it absent."""
    bench.write("1.jsonl", jsonl(ir_record("/a.pdf", "from 1")))
    bench.write("2.jsonl", jsonl(ir_record("/a.pdf", "from 2")))
    bench.ingest(kind="ir")
    bench.write("2.jsonl", jsonl(now_says))
    bench.ingest(kind="ir", now=LATER)
    assert len(bench.texts("/a.pdf")) == 1
    bench.ingest(kind="ir", now=LATER)
    assert bench.texts("/a.pdf") == ["from 1"]
    assert not bench.ingest(kind="ir", now=LATER).written


def test_what_an_earlier_release_left_goes_without_a_reading(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after the version that kept old parts: the log is unchanged since, and the parts stand."""
    bench.write("log.jsonl", log(150))
    bench.ingest(kind="recorder")
    bench.write("log.jsonl", log(3))
    with monkeypatch.context() as patched:
        patched.setattr("chunksink.producers.gone.Gone.goes", lambda *_: [])
        bench.ingest(kind="recorder", now=LATER)
    assert names(bench) == PARTS
    report = bench.ingest(kind="recorder", now=LATER)
    assert (report.unchanged, report.pruned, names(bench)) == (1, 2, PARTS[:1])


@pytest.mark.promise(2)
def test_what_is_remembered_of_another_reading_withdraws_nothing(bench: Bench) -> None:
    """As after a kill between the ledger's row and the memory's, or with a memory that somebody restored."""
    bench.write("log.jsonl", log(3))
    bench.ingest(kind="recorder")
    db = bench.memory.db
    old = {table: db.execute(f"select * from {table}").fetchall() for table in ("gave", "given")}
    bench.write("log.jsonl", log(150))
    bench.ingest(kind="recorder", now=LATER)
    for table, rows in old.items():
        db.execute(f"delete from {table}")
        for row in rows:
            db.execute(f"insert into {table} values ({', '.join('?' for _ in row)})", row)
    db.conn.commit()
    assert bench.ledger.last_attempt("log.jsonl", "markdown")["status"] == Status.PROCESSED
    for prune in (False, True):
        report = bench.ingest(kind="recorder", prune=prune, now=NOW)
        assert (report.pruned, names(bench)) == (0, PARTS)


@pytest.mark.parametrize(("name", "text"), [("a.md", "# A"), ("a.txt", "A"), ("a.html", "<p>A</p>")])
def test_an_emptied_document_goes_also_when_the_memory_is_lost(bench: Bench, name: str, text: str) -> None:
    bench.write(name, text)
    bench.ingest(kind="auto")
    bench.forget()
    bench.write(name, "")
    report = bench.ingest(kind="auto", now=LATER)
    assert (names(bench), report.empty, report.pruned) == ([], 1, 1)
    assert not bench.ingest(kind="auto", now=LATER).written
