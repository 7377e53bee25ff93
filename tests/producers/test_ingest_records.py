"""Files that hold many families: what replaces what, what is kept, what is told."""

import json

import pytest

from chunksink.producers.errors import IngestRefused
from chunksink.producers.report import Outcome, Progress
from tests.producers.bench import LATER, NOW, Bench
from tests.producers.lines import kinds, line


def told(bench: Bench) -> dict[str, str]:
    return {record["provenance"]["source_uri"]: record["text"] for record in bench.records()}


def times(bench: Bench) -> dict[str, str]:
    return {record["provenance"]["source_uri"]: record["created_at"] for record in bench.records()}


def test_a_file_of_records_gives_many_families_in_the_order_of_their_names(bench: Bench) -> None:
    bench.write("x.jsonl", line("b", "B") + line("a", "A"))
    bench.write("c.md", "# C")
    report = bench.ingest(kind="auto", kinds=kinds())
    bench.assert_valid()
    assert list(told(bench)) == ["a", "b", "c.md"]
    assert (report.sources, report.processed, report.documents) == (2, 2, 3)
    assert [attempt["source_uri"] for attempt in bench.attempts(run_id="run")] == ["x.jsonl", "c.md"]


def test_each_family_replaces_its_predecessor_and_the_others_stay_as_they_were(bench: Bench) -> None:
    bench.write("x.jsonl", line("a", "A") + line("b", "B"))
    bench.ingest(kind="lines", kinds=kinds())
    bench.write("x.jsonl", line("a", "A2") + line("b", "B") + line("c", "C"))
    report = bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    bench.assert_valid()
    assert told(bench) == {"a": "A2", "b": "B", "c": "C"}
    assert times(bench) == {"a": LATER, "b": NOW, "c": LATER}, "what came out the same was not made anew"
    assert (report.processed, report.documents) == (1, 3)


def test_a_second_run_reads_no_record(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("x.jsonl", line("a", "A") + line("b", ""))
    bench.ingest(kind="lines", kinds=kinds())
    before = bench.bytes_on_bus()
    monkeypatch.setattr("tests.producers.lines.LineReader.read", lambda *_: pytest.fail("read again"))
    report = bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert (report.written, report.unchanged) == (False, 1)
    assert report.left_out == {"EVENT_WITHOUT_TEXT": 1}, "what was left out is told from the ledger"
    assert bench.bytes_on_bus() == before
    assert len(bench.attempts()) == 1


def test_a_lost_memory_costs_a_reading_and_nothing_else(bench: Bench) -> None:
    bench.write("x.jsonl", line("a", "A") + line("b", "B"))
    bench.ingest(kind="lines", kinds=kinds())
    before = bench.bytes_on_bus()
    bench.forget()
    report = bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert (report.written, report.unchanged) == (False, 1)
    assert bench.bytes_on_bus() == before
    assert len(bench.attempts()) == 1


def test_a_record_that_vanished_from_its_file_keeps_its_chunks(bench: Bench) -> None:
    bench.write("x.jsonl", line("a", "A") + line("b", "B"))
    bench.ingest(kind="lines", kinds=kinds())
    bench.write("x.jsonl", line("b", "B"))
    report = bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert told(bench) == {"a": "A", "b": "B"}
    assert report.carried_over == 1


def test_a_family_that_is_missing_in_the_partition_is_read_again(bench: Bench) -> None:
    bench.write("x.jsonl", line("a", "A"))
    bench.ingest(kind="lines", kinds=kinds())
    bench.root.chunks_file("markdown").unlink()
    bench.root.manifest_file("markdown").unlink()
    assert bench.ingest(kind="lines", kinds=kinds(), now=LATER).processed == 1
    assert told(bench) == {"a": "A"}


def test_what_is_left_out_stands_in_report_ledger_and_manifest(bench: Bench) -> None:
    bench.write("x.jsonl", line("a", "A") + "{broken\n" + line("b", "") + "{again\n")
    report = bench.ingest(kind="lines", kinds=kinds())
    assert told(bench) == {"a": "A"}
    assert bench.manifest().errors == {"EVENT_MALFORMED": 2, "EVENT_WITHOUT_TEXT": 1}
    assert bench.manifest().counts.failures == 2
    assert [(failure.source_uri, failure.line, failure.code) for failure in report.failures] == [
        ("x.jsonl", 2, "EVENT_MALFORMED"),
        ("x.jsonl", 4, "EVENT_MALFORMED"),
    ]
    (attempt,) = bench.attempts()
    assert (attempt["status"], attempt["error_type"]) == ("failed", "EVENT_MALFORMED")
    assert json.loads(attempt["left_out"]) == {"EVENT_MALFORMED": 2, "EVENT_WITHOUT_TEXT": 1}
    again = bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert (again.written, again.failed) == (False, 2), "a failure is tried and told again, and changes nothing"


def test_the_ledger_names_a_failure_by_what_failed(bench: Bench) -> None:
    bench.write("x.jsonl", line("a", "") + "broken\n" + line("b", "B"))
    report = bench.ingest(kind="lines", kinds=kinds())
    (attempt,) = bench.attempts(status="failed")
    assert list(report.left_out) == ["EVENT_MALFORMED", "EVENT_WITHOUT_TEXT"]
    assert attempt["error_type"] == "EVENT_MALFORMED"


def test_of_two_files_the_later_one_counts_whichever_was_read_last(bench: Bench) -> None:
    bench.write("1.jsonl", line("a", "from 1") + line("b", "B"))
    bench.write("2.jsonl", line("a", "from 2"))
    report = bench.ingest(kind="lines", kinds=kinds())
    assert told(bench) == {"a": "from 2", "b": "B"}
    assert report.left_out == {"SOURCE_IN_ANOTHER_FILE": 1}
    bench.write("1.jsonl", line("a", "from 1 again") + line("b", "B"))
    bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert told(bench) == {"a": "from 2", "b": "B"}
    assert not bench.ingest(kind="lines", kinds=kinds(), now=LATER).written
    (bench.docs / "2.jsonl").unlink()
    bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert told(bench)["a"] == "from 1 again", "what the later file hid comes back"


def test_the_earlier_one_read_alone_between_changes_nothing_for_good(bench: Bench) -> None:
    """What counts follows from the files of a run, not from those of the runs before."""
    bench.write("1.jsonl", line("a", "from 1"))
    bench.write("2.jsonl", line("a", "from 2"))
    bench.ingest(kind="lines", kinds=kinds())
    bench.write("1.jsonl", line("a", "from 1 again"))
    bench.ingest([bench.docs / "1.jsonl"], kind="lines", kinds=kinds(), now=LATER)
    assert told(bench) == {"a": "from 1 again"}
    bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert told(bench) == {"a": "from 2"}
    assert not bench.ingest(kind="lines", kinds=kinds(), now=LATER).written


def test_another_version_of_the_reader_reads_again(bench: Bench) -> None:
    bench.write("x.jsonl", line("a", "A"))
    bench.ingest(kind="lines", kinds=kinds())
    report = bench.ingest(kind="lines", kinds=kinds("2"), now=LATER)
    assert report.processed == 1
    assert times(bench) == {"a": LATER}


def test_the_tenant_counts_as_an_option_of_the_reading(bench: Bench) -> None:
    bench.write("x.jsonl", line("a", "A"))
    bench.ingest(kind="lines", kinds=kinds(), tenant="one")
    report = bench.ingest(kind="lines", kinds=kinds(), tenant="two", now=LATER)
    assert report.processed == 1
    assert [record["tenant_id"] for record in bench.records()] == ["one", "two"]
    assert not bench.ingest(kind="lines", kinds=kinds(), tenant="two", now=LATER).written


def test_progress_tells_how_it_went_with_a_file_of_records(bench: Bench) -> None:
    bench.write("1.jsonl", line("a", "A"))
    bench.write("2.jsonl", "{broken\n")
    bench.write("3.jsonl", line("c", ""))
    bench.write("4.jsonl", line("d", "D") + "{broken\n")
    seen: list[Progress] = []
    bench.ingest(kind="lines", kinds=kinds(), on_progress=seen.append)
    assert [step.outcome for step in seen] == [Outcome.PROCESSED, Outcome.FAILED, Outcome.EMPTY, Outcome.PROCESSED]


def test_an_unknown_kind_is_refused(bench: Bench) -> None:
    with pytest.raises(IngestRefused, match="'nonsense' is no kind of source; it is one of"):
        bench.ingest(kind="nonsense")


def test_a_family_that_the_later_file_gives_up_is_the_earlier_files_in_the_same_run(bench: Bench) -> None:
    bench.write("1.jsonl", line("k", "from 1"))
    bench.write("2.jsonl", line("k", "from 2"))
    bench.ingest(kind="lines", kinds=kinds())
    assert told(bench) == {"k": "from 2"}
    bench.write("2.jsonl", line("other", "from 2"))
    bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert told(bench) == {"k": "from 1", "other": "from 2"}
    assert not bench.ingest(kind="lines", kinds=kinds(), now=LATER).written


def test_a_family_of_a_later_file_that_fails_stays_that_files(bench: Bench) -> None:
    bench.write("1.jsonl", line("k", "from 1"))
    bench.write("2.jsonl", line("k", "from 2"))
    bench.ingest(kind="lines", kinds=kinds())
    bench.write("1.jsonl", line("k", "from 1 again"))
    bench.write("2.jsonl", "{broken\n")
    report = bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert (report.failed, told(bench)) == (1, {"k": "from 2"})
