"""Input that is damaged, or made to hurt: each is recorded with its code, the rest is ingested, nothing is lost."""

import os
from pathlib import Path

import pytest

from chunksink.producers.ingest import Options
from tests.producers.bench import LATER, Bench
from tests.producers.support import without_space


def test_bad_files_beside_good_ones(bench: Bench) -> None:
    bench.write("good.md", "# Good")
    bench.write("latin.md", "caf\xe9".encode("latin-1"))
    bench.write("empty.md", "")
    bench.write("blank.md", " \n\t\n")
    bench.write("open fence.md", "# F\n\n```python\nx = 1\n" + "y = 2\n" * 50)
    bench.write("quotes.md", ">" * 10_000 + " deep")
    bench.write("endless.md", "A sentence of words stands here, then another. " * 1000)
    bench.write("nul.md", "# N\n\nBefore\0after")
    bench.write(
        "wide.md", "| " + " | ".join(f"c{n}" for n in range(4000)) + " |\n" + "|-" * 4000 + "|\n" + "| x " * 4000
    )
    (bench.docs / "loop").symlink_to(bench.docs, target_is_directory=True)
    (bench.docs / "self.md").symlink_to("self.md")
    os.mkfifo(bench.docs / "pipe.md")
    bench.ahead_ns = 10**10
    report = bench.ingest()
    bench.assert_valid()
    assert {(failure.source_uri, failure.code) for failure in report.failures} == {
        ("latin.md", "CHUNKING_FAILED"),
        ("self.md", "SOURCE_UNREADABLE"),
        ("pipe.md", "SOURCE_UNREADABLE"),
    }
    codes = {
        "CHUNKING_FAILED": 1,
        "FENCE_UNCLOSED": 1,
        "FOLDER_LINKED": 1,
        "LINE_ENDLESS": 2,  # the table too
        "NESTING_TOO_DEEP": 1,
        "NUL_REMOVED": 1,
        "SOURCE_EMPTY": 2,
        "SOURCE_UNREADABLE": 2,
        "TABLE_TOO_WIDE": 1,
    }
    assert bench.manifest().errors == report.left_out == codes
    for every_file in (False, True):
        again = bench.ingest(now=LATER, every_file=every_file)
        assert (again.processed, again.written, again.left_out) == (0, False, codes)
    failed = {row["source_uri"]: row["error_type"] for row in bench.attempts(status="failed")}
    assert failed == {failure.source_uri: failure.code for failure in report.failures}
    odd = {row["source_uri"]: row["left_out"] for row in bench.attempts(status="processed")}
    assert odd == {
        "empty.md": '{"SOURCE_EMPTY":1}',
        "blank.md": '{"SOURCE_EMPTY":1}',
        "loop/": '{"FOLDER_LINKED":1}',
        "good.md": None,
        "endless.md": '{"LINE_ENDLESS":1}',
        "nul.md": '{"NUL_REMOVED":1}',
        "open fence.md": '{"FENCE_UNCLOSED":1}',
        "quotes.md": '{"NESTING_TOO_DEEP":1}',
        "wide.md": '{"LINE_ENDLESS":1,"TABLE_TOO_WIDE":1}',
    }
    assert {record["provenance"]["source_uri"] for record in bench.records()} == {
        "good.md",
        "endless.md",
        "nul.md",
        "open fence.md",
        "quotes.md",
        "wide.md",
    }
    assert "deep" in " ".join(bench.texts("quotes.md"))
    wide = without_space(" ".join(bench.texts("wide.md")))
    assert all(f"c{number}" in wide for number in range(0, 4000, 97))


@pytest.mark.promise(2)
@pytest.mark.parametrize("every_file", [False, True])
def test_what_is_odd_is_told_also_where_the_ledger_was_not_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, every_file: bool
) -> None:
    bench.ahead_ns = 10**10
    bench.write("a.md", "# A\n\n```\nx")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("chunksink.producers.account.Account.note", killed)
        with pytest.raises(KeyboardInterrupt):
            bench.ingest()
    before = bench.bytes_on_bus()
    for _ in range(2):
        report = bench.ingest(now=LATER, every_file=every_file)
        assert (report.written, report.left_out) == (False, {"FENCE_UNCLOSED": 1})
    assert before.items() <= bench.bytes_on_bus().items()
    (attempt,) = bench.attempts(status="processed")
    assert attempt["left_out"] == '{"FENCE_UNCLOSED":1}'


def test_a_file_of_one_line(bench: Bench) -> None:
    """Of five megabytes; bench/ingest_speed.py does it with fifty."""
    text = "A sentence of words stands here, then another. " * (5 * 2**20 // 48)
    bench.write("long.md", text)
    bench.write("good.md", "# Good")
    report = bench.ingest()
    bench.assert_valid()
    assert report.failures == ()
    own = [
        record["text"][record["metadata"]["overlap_chars"] :]
        for record in bench.records()
        if record["provenance"]["source_uri"] == "long.md"
    ]
    assert without_space("".join(own)) == without_space(text)


def test_a_file_that_changes_while_it_is_read_waits_for_the_next_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    path = bench.write("a.md", "# A, half")
    real = os.fstat
    calls: list[int] = []

    def grow(descriptor: int) -> os.stat_result:
        status = real(descriptor)
        if status.st_ino == path.stat().st_ino:
            calls.append(descriptor)
        if len(calls) == 2:
            path.write_text("# A, half written")
        return status

    with monkeypatch.context() as patched:
        patched.setattr("chunksink.producers.contents.os.fstat", grow)
        report = bench.ingest(now=LATER)
    assert [(failure.source_uri, failure.code) for failure in report.failures] == [("a.md", "SOURCE_CHANGED")]
    assert bench.texts("a.md") == ["# A"], "the last good version stays"
    assert bench.ingest(now=LATER).processed == 1
    assert bench.texts("a.md") == ["# A, half written"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(bench: Bench) -> None:
    bench.write("a.md", "# A").chmod(0)
    bench.write("b.md", "# B")
    report = bench.ingest()
    assert [(failure.source_uri, failure.code) for failure in report.failures] == [("a.md", "SOURCE_UNREADABLE")]
    assert bench.texts("b.md") == ["# B"]


def test_json_that_is_no_record_is_counted_in_a_folder_and_a_failure_where_it_is_named(bench: Bench) -> None:
    bench.write("a.md", "# A")
    package: Path = bench.write("package.json", '{"name": "x"}')
    found = bench.ingest(kind="auto")
    assert (found.failures, found.left_out) == ((), {"RECORD_FORM_UNKNOWN": 1})
    report = bench.ingest([package], kind="auto", now=LATER)
    assert [(failure.source_uri, failure.code) for failure in report.failures] == [
        ("package.json", "RECORD_FORM_UNKNOWN")
    ]
    assert Options().kind == "auto"
