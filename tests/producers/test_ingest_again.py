"""A further run: what is skipped, replaced, kept, recorded."""

from pathlib import Path

import pytest

from chunksink.chunkbus.canonical import sha256_hex
from chunksink.chunkbus.ledger import Ledger
from chunksink.producers.errors import IngestRefused
from chunksink.producers.markdown import MarkdownChunker, Policy
from tests.producers.bench import LATER, NOW, Bench


def test_a_second_run_does_nothing(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.write("empty.md", "\n")
    bench.write("bad.md", b"\xff")
    bench.ingest()
    before = bench.bytes_on_bus()
    attempts = len(bench.attempts())
    report = bench.ingest(now=LATER)
    assert bench.bytes_on_bus() == before
    assert (report.written, report.processed, report.unchanged, report.empty) == (False, 0, 1, 1)
    assert (report.documents, report.chunks) == (1, 1)
    assert len(bench.attempts()) == attempts + 1, "only the failure is tried, and recorded, again"


@pytest.mark.promise(2)
def test_chunks_that_a_killed_run_committed_get_their_name(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    before = bench.bytes_on_bus()
    chunks = bench.root.chunks_file("markdown")
    checksum = sha256_hex(chunks.read_bytes())
    chunks.rename(bench.root.waiting_file("markdown", checksum))
    chunks.write_bytes(b"the version before\n")
    assert not bench.ingest(now=LATER).written
    assert bench.bytes_on_bus() == before
    assert not list(bench.root.canonical.glob(".*.jsonl"))


def test_a_manifest_that_is_a_folder_is_told_as_what_it_is(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    bench.root.manifest_file("markdown").unlink()
    bench.root.manifest_file("markdown").mkdir()
    with pytest.raises(IngestRefused, match="is not valid"):
        bench.ingest(now=LATER)


def test_chunks_that_wait_and_are_damaged_are_left_to_be_mended(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    chunks = bench.root.chunks_file("markdown")
    waiting = bench.root.waiting_file("markdown", sha256_hex(chunks.read_bytes()))
    waiting.write_bytes(chunks.read_bytes().replace(b"# A", b"# B"))
    chunks.unlink()
    with pytest.raises(IngestRefused, match="is not valid"):
        bench.ingest(now=LATER)
    assert waiting.exists()


def test_an_edit_replaces_its_family_and_leaves_the_others_as_they_were(bench: Bench) -> None:
    for name in ("a.md", "b.md", "c.md"):
        bench.write(name, f"# {name}\n\n## One\n\n## Two\n")
    bench.ingest()
    before = {record["chunk_id"]: record for record in bench.records()}
    bench.write("b.md", "# changed")
    report = bench.ingest(now=LATER)
    bench.assert_valid()
    assert bench.texts("b.md") == ["# changed"]
    kept = [record for record in bench.records() if record["provenance"]["source_uri"] != "b.md"]
    assert kept == [record for record in before.values() if record["provenance"]["source_uri"] != "b.md"]
    assert (report.processed, report.unchanged) == (1, 2)
    assert bench.manifest().idempotency.skipped == 2


def test_order_of_history_leaves_no_trace(bench: Bench, tmp_path: Path) -> None:
    bench.write("b.md", "# B")
    bench.ingest()
    bench.write("a.md", "# A")
    bench.write("b.md", "# B2")
    bench.ingest()
    (tmp_path / "other").mkdir()
    fresh = Bench(tmp_path / "other")
    fresh.write("a.md", "# A")
    fresh.write("b.md", "# B2")
    fresh.ingest()
    volatile = ("created_at", "hashes")
    ours, theirs = ([{k: v for k, v in r.items() if k not in volatile} for r in b.records()] for b in (bench, fresh))
    assert ours == theirs


def test_a_source_that_fails_keeps_its_last_good_chunks_and_is_counted(bench: Bench) -> None:
    bench.write("a.md", "# A, good")
    bench.write("b.md", "# B")
    bench.ingest()
    bench.write("a.md", b"# A \xff")
    bench.write("b.md", "# B, new")
    report = bench.ingest(now=LATER)
    bench.assert_valid()
    assert bench.texts("a.md") == ["# A, good"]
    assert bench.texts("b.md") == ["# B, new"]
    assert bench.manifest().counts.failures == 1
    assert bench.manifest().errors == {"CHUNKING_FAILED": 1}
    assert [(failure.source_uri, failure.code) for failure in report.failures] == [("a.md", "CHUNKING_FAILED")]
    assert "offset 4, line 1" in report.failures[0].reason
    last = bench.attempts(source="a.md")[0]
    assert (last["status"], last["error_type"]) == ("failed", "CHUNKING_FAILED")


def test_a_mended_source_clears_the_failure_and_its_history_stays(bench: Bench) -> None:
    bench.write("a.md", b"\xff")
    bench.ingest()
    bench.write("a.md", "# A")
    bench.ingest(now=LATER)
    assert bench.manifest().errors == {}
    assert bench.manifest().counts.failures == 0
    assert [attempt["status"] for attempt in bench.attempts(source="a.md")] == ["processed", "failed"]


def test_an_emptied_source_gives_up_its_chunks_and_says_so(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.write("b.md", "# B")
    bench.ingest()
    bench.write("a.md", "")
    report = bench.ingest(now=LATER)
    assert bench.texts("a.md") == []
    assert bench.texts("b.md") == ["# B"]
    assert report.empty == 1
    assert bench.manifest().errors == {"SOURCE_EMPTY": 1}
    assert bench.manifest().counts.failures == 0
    assert bench.attempts(source="a.md")[0]["error_type"] == "SOURCE_EMPTY"


def test_a_vanished_source_keeps_its_chunks(bench: Bench) -> None:
    bench.write("a.md", "# A")
    path = bench.write("b.md", "# B")
    bench.ingest()
    path.unlink()
    bench.write("a.md", "# A2")
    report = bench.ingest(now=LATER)
    assert bench.texts("b.md") == ["# B"]
    assert report.carried_over == 1


def test_another_policy_reads_everything_again(bench: Bench) -> None:
    bench.write("a.md", "# A\n\n" + "A few words in a sentence. " * 100)
    bench.ingest()
    before = len(bench.records())
    report = bench.ingest(chunker=MarkdownChunker(policy=Policy(target=50, soft_max=60, hard_max=70)), now=LATER)
    assert report.processed == 1
    assert len(bench.records()) > 2 * before
    assert "50/60/70" in (bench.manifest().chunking_policy_id or "")


def test_the_ledger_gets_the_row_that_a_kill_after_the_commit_cost(bench: Bench, tmp_path: Path) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    bench.ledger = Ledger(tmp_path / "new.db")
    assert not bench.ingest(now=LATER).written
    assert [attempt["status"] for attempt in bench.attempts()] == ["processed"]
    bench.ingest(now=LATER)
    assert len(bench.attempts()) == 1


def test_a_ledger_row_without_chunks_does_not_skip(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    bench.root.chunks_file("markdown").unlink()
    bench.root.manifest_file("markdown").unlink()
    assert bench.ingest(now=LATER).processed == 1
    assert bench.texts("a.md") == ["# A"]


@pytest.mark.parametrize("now", ["1999-01-01T00:00:00Z", NOW])
def test_a_clock_that_jumps_back_never_loses_an_edit(bench: Bench, now: str) -> None:
    bench.write("a.md", "# A")
    bench.ingest(now=NOW, to="newest")
    bench.ingest(now="2026-02-01T00:00:00Z")
    bench.write("a.md", "# A2")
    bench.ingest(now=now)
    assert bench.records()[0]["created_at"] > NOW
    assert bench.manifest().created_at == bench.records()[0]["created_at"]
