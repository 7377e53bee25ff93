"""From files to a partition: what is skipped, replaced, carried over, refused, recorded."""

import os
from dataclasses import FrozenInstanceError
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from chunkbus.chunk import Record, new_chunk
from chunkbus.errors import PartitionLocked
from chunkbus.findings import Finding
from chunkbus.layout import BusRoot
from chunkbus.ledger import Ledger
from chunkbus.manifest import Manifest, ManifestProducer, Tombstone
from chunkbus.reader import read_manifest, read_partition
from chunkbus.validate import Validation
from chunkbus.writer import PartitionWriter
from producers.errors import IngestRefused, SourceFailed
from producers.ingest import ingest_markdown
from producers.links import links_file
from producers.markdown import MarkdownChunker, Policy
from producers.report import IngestReport, Outcome, Progress
from producers.sources import find_sources, read_source

NOW = "2026-03-01T12:00:00.000000Z"
LATER = "2026-03-02T12:00:00.000000Z"


class Bench:
    """A folder of sources, a bus and a ledger, and short ways to look at them."""

    def __init__(self, home: Path) -> None:
        self.docs = home / "docs"
        self.docs.mkdir()
        self.root = BusRoot(home / "bus")
        self.ledger = Ledger(home / "ledger.db")

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def ingest(self, **options: Any) -> IngestReport:
        options = {"now": NOW, "run_id": "run", "base": self.docs, **options}
        return ingest_markdown(options.pop("paths", [self.docs]), self.root, self.ledger, **options)

    def records(self, key: str = "markdown") -> list[Record]:
        return [record for _, record in read_partition(self.root, key)]

    def texts(self, uri: str, key: str = "markdown") -> list[str]:
        return [record["text"] for record in self.records(key) if record["provenance"].get("source_uri") == uri]

    def manifest(self, key: str = "markdown") -> Manifest:
        return read_manifest(self.root, key)

    def attempts(self, **wanted: Any) -> list[dict[str, Any]]:
        return list(self.ledger.attempts(**wanted))

    def bytes_on_bus(self) -> dict[str, bytes]:
        files = [path for path in self.root.path.rglob("*") if path.is_file() and not path.name.startswith(".")]
        return {str(path.relative_to(self.root.path)): path.read_bytes() for path in files}

    def assert_valid(self) -> None:
        found: list[Finding] = []
        Validation(self.root, require_source_checksum=True, on_finding=found.append).run()
        assert found == []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_folder_becomes_a_valid_partition_in_the_order_of_names(bench: Bench) -> None:
    bench.write("b.md", "# B\n\ntext of b")
    bench.write("a/z.MD", "# Z\n")
    bench.write("a.markdown", "# A\n\n" + "A sentence. " * 400)
    bench.write("notes.txt", "not Markdown")
    bench.write(".hidden/x.md", "# hidden")
    bench.write(".x.md", "# hidden")
    report = bench.ingest(tenant="acme")
    bench.assert_valid()
    uris = list(dict.fromkeys(record["provenance"]["source_uri"] for record in bench.records()))
    assert uris == ["a.markdown", "a/z.MD", "b.md"]
    assert {record["tenant_id"] for record in bench.records()} == {"acme"}
    assert (report.sources, report.processed, report.documents, report.written) == (3, 3, 3, True)
    assert report.chunks == len(bench.records()) == bench.manifest().counts.chunks_emitted > 3
    assert [attempt["status"] for attempt in bench.attempts(run_id="run")] == ["processed"] * 3
    with pytest.raises(FrozenInstanceError):
        report.sources = 4  # type: ignore[misc]


def test_the_manifest_says_what_was_read_and_how(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    manifest = bench.manifest()
    record = bench.records()[0]
    assert manifest.created_at == record["created_at"] == NOW
    assert manifest.chunking_policy_id == MarkdownChunker().policy_id
    assert manifest.input_sources == [
        {"source_uri": "a.md", "source_checksum": record["provenance"]["source_checksum"]}
    ]
    assert manifest.canonicalization_versions == [f"chunksink-markdown: {MarkdownChunker().policy_id}"]
    assert record["producer"] == {"name": "chunksink-markdown", "version": manifest.producer.version, "run_id": "run"}


def test_no_sources_make_an_empty_valid_partition(bench: Bench) -> None:
    report = bench.ingest()
    bench.assert_valid()
    assert report.written
    assert bench.records() == []
    assert not bench.ingest(now=LATER).written


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


def test_two_runs_are_byte_identical_but_for_times_and_run_ids(bench: Bench, tmp_path: Path) -> None:
    for number in range(8):
        bench.write(f"{number}.md", f"# {number}\n\n[next]({number + 1}.md) " + "Some words stand here. " * 300)
    bench.ingest()
    (tmp_path / "again").mkdir()
    again = Bench(tmp_path / "again")
    again.ingest(paths=[bench.docs], base=bench.docs)
    assert again.bytes_on_bus() == bench.bytes_on_bus()
    assert len(bench.bytes_on_bus()) == 3
    (tmp_path / "later").mkdir()
    later = Bench(tmp_path / "later")
    later.ingest(paths=[bench.docs], base=bench.docs, now=LATER, run_id="other")
    assert [stable(record) for record in later.records()] == [stable(record) for record in bench.records()]


def stable(record: Record) -> Record:
    """The record without time, run id, and the hash over them."""
    producer = {key: value for key, value in record["producer"].items() if key != "run_id"}
    hashes = {"text_hash": record["hashes"]["text_hash"]}
    return {**record, "created_at": None, "producer": producer, "hashes": hashes}


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


def test_families_and_tombstones_of_others_are_carried_over(bench: Bench) -> None:
    foreign = new_chunk(
        document_id="d",
        text="from elsewhere",
        provenance={
            "source_ref": "mail:1",
            "parser_name": "p",
            "parser_version": "1",
            "canonicalizer": {"canonicalizer_name": "c", "canonicalizer_version": "1"},
            "inputs": [],
        },
        span_key=0,
        created_at=NOW,
        fields={"unknown_field": {"kept": [1, 2.5]}},
    )
    tombstone = Tombstone(parent_id="0" * 64, reason="withdrawn", at=NOW)
    with PartitionWriter(bench.root, "markdown") as writer:
        writer.add(foreign)
        writer.commit(documents=1, producer=ManifestProducer("other", "1"), created_at=NOW, tombstones=[tombstone])
    bench.write("a.md", "# A")
    bench.ingest(now=LATER)
    assert foreign in bench.records()
    assert bench.texts("a.md") == ["# A"]
    assert bench.manifest().tombstones == [tombstone]
    assert bench.manifest().counts.documents == 2


def test_two_tenants_share_a_partition_without_touching_each_other(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest(tenant="one")
    bench.ingest(tenant="two")
    bench.write("a.md", "# A2")
    bench.ingest(tenant="two", now=LATER)
    assert [(record["tenant_id"], record["text"]) for record in bench.records()] == [("one", "# A"), ("two", "# A2")]
    bench.assert_valid()


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
    bench.ingest(now=NOW, key="newest")
    bench.ingest(now="2026-02-01T00:00:00Z")
    bench.write("a.md", "# A2")
    bench.ingest(now=now)
    assert bench.records()[0]["created_at"] > NOW
    assert bench.manifest().created_at == bench.records()[0]["created_at"]


def test_a_broken_partition_is_refused_and_left_as_it_is(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    chunks = bench.root.chunks_file("markdown")
    chunks.write_bytes(chunks.read_bytes()[:-20])
    before = bench.bytes_on_bus()
    bench.write("a.md", "# A2")
    with pytest.raises(IngestRefused, match=r"partition markdown .* is not valid.*SCHEMA_INVALID:json_parse"):
        bench.ingest()
    assert bench.bytes_on_bus() == before


def test_two_writers_of_one_partition_do_not_mix(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("a.md", "# A")
    monkeypatch.setattr("producers.ingest.PartitionWriter", partial(PartitionWriter, lock_seconds=0.05))
    with PartitionWriter(bench.root, "markdown"), pytest.raises(PartitionLocked):
        bench.ingest()


def test_progress_names_every_source_and_how_it_went(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.ingest()
    bench.write("b.md", b"\xff")
    bench.write("c.md", " ")
    bench.write("d.md", "# D")
    seen: list[Progress] = []
    bench.ingest(on_progress=seen.append)
    assert [(step.done, step.total, step.source_uri, step.outcome) for step in seen] == [
        (1, 4, "a.md", Outcome.UNCHANGED),
        (2, 4, "b.md", Outcome.FAILED),
        (3, 4, "c.md", Outcome.EMPTY),
        (4, 4, "d.md", Outcome.PROCESSED),
    ]


def test_links_are_written_with_their_targets_resolved(bench: Bench) -> None:
    bench.write("docs/a.md", "[b](../b.md) [gone](gone.md) [wiki](https://x.atlassian.net/wiki/spaces/A/pages/1)")
    bench.write("b.md", "# B")
    report = bench.ingest()
    lines = [orjson.loads(line) for line in links_file(bench.root, "markdown").read_bytes().splitlines()]
    ids = {record["provenance"]["source_uri"]: record["document_id"] for record in bench.records()}
    assert report.links == 3
    assert [(line["url"], line["link_type"], line["target_document_id"]) for line in lines] == [
        ("../b.md", "document", ids["b.md"]),
        ("gone.md", "document", None),
        ("https://x.atlassian.net/wiki/spaces/A/pages/1", "confluence", None),
    ]
    assert {line["source_document_id"] for line in lines} == {ids["docs/a.md"]}
    links_file(bench.root, "markdown").unlink()
    assert bench.ingest().links == 3, "a lost artifact is made again from the chunks"


# Sources


def test_two_sources_of_one_name_are_refused_before_anything_is_written(bench: Bench) -> None:
    first, second = bench.write("x/notes/readme.md", "# X"), bench.write("y/notes/readme.md", "# Y")
    with pytest.raises(IngestRefused, match=r"would both be called 'notes/readme\.md'"):
        bench.ingest(paths=[first.parent, second.parent], base=None)
    assert not bench.root.path.exists()
    report = bench.ingest(paths=[first.parent, second.parent], base=bench.docs)
    assert report.processed == 2
    assert bench.texts("y/notes/readme.md") == ["# Y"]


def test_a_source_has_the_same_name_from_wherever_its_folder_is_reached(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.write("notes/sub/a.md", "# A")
    folder = bench.docs / "notes"
    seen = []
    for place, named in (
        (bench.docs, Path("notes")),
        (folder, Path()),
        (folder / "sub", Path("..")),
        (bench.docs, folder),
    ):
        monkeypatch.chdir(place)
        seen += [file.uri for file in find_sources([named], suffixes=(".md",)).files]
    assert seen == ["notes/sub/a.md"] * 4
    assert [file.uri for file in find_sources([path], suffixes=(".md",)).files] == ["a.md"]


def test_a_file_named_twice_is_read_once(bench: Bench) -> None:
    path = bench.write("a.md", "# A")
    assert bench.ingest(paths=[bench.docs, path, bench.docs]).sources == 1


def test_a_file_that_is_named_is_read_whatever_its_suffix(bench: Bench) -> None:
    assert bench.ingest(paths=[bench.write("README", "# R")]).processed == 1


@pytest.mark.parametrize(("name", "reason"), [("gone.md", "does not exist"), ("../outside.md", "does not lie below")])
def test_what_cannot_be_found_or_named_is_refused(bench: Bench, name: str, reason: str) -> None:
    bench.write("../outside.md", "# Outside")
    with pytest.raises(IngestRefused, match=reason):
        bench.ingest(paths=[bench.docs / name], base=bench.docs)


def test_links_between_folders_do_not_go_round(bench: Bench) -> None:
    bench.write("sub/a.md", "# A")
    (bench.docs / "sub" / "loop").symlink_to(bench.docs, target_is_directory=True)
    (bench.docs / "alias.md").symlink_to(bench.docs / "sub" / "a.md")
    assert [file.uri for file in find_sources([bench.docs], suffixes=(".md",)).files] == [
        "docs/alias.md",
        "docs/sub/a.md",
    ]


def test_what_cannot_be_read_is_recorded_and_the_rest_goes_on(bench: Bench) -> None:
    bench.write("a.md", "# A")
    os.mkfifo(bench.docs / "pipe.md")
    (bench.docs / "dangling.md").symlink_to(bench.docs / "gone")
    (bench.docs / os.fsdecode(b"caf\xe9.md")).write_text("# C")
    report = bench.ingest()
    bench.assert_valid()
    assert bench.texts("a.md") == ["# A"]
    assert {(failure.source_uri, failure.code) for failure in report.failures} == {
        ("pipe.md", "SOURCE_UNREADABLE"),
        ("dangling.md", "SOURCE_UNREADABLE"),
        ("caf\\xe9.md", "SOURCE_NAME_INVALID"),
    }
    assert bench.manifest().errors == {"SOURCE_NAME_INVALID": 1, "SOURCE_UNREADABLE": 2}
    assert {attempt["status"] for attempt in bench.attempts(source="caf")} == {"failed"}


def test_a_source_that_is_written_to_meanwhile_is_left_for_the_next_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.write("a.md", "# A, half")
    real = os.fstat
    calls = []

    def grow(descriptor: int) -> os.stat_result:
        calls.append(descriptor)
        if len(calls) == 1:
            before = real(descriptor)
            path.write_text("# A, half written")
            return before
        return real(descriptor)

    monkeypatch.setattr("producers.sources.os.fstat", grow)
    with pytest.raises(SourceFailed, match="was written to while it was read") as caught:
        read_source(path)
    assert caught.value.code == "SOURCE_CHANGED"
