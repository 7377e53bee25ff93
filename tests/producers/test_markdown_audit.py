"""The checklist of the chunking specification, asked of chunks that stand in a partition."""

from collections.abc import Callable

import pytest

from chunksink.chunkbus.canonical import chunk_object_hash, text_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.producers.markdown import MarkdownChunker, Policy
from chunksink.producers.markdown.audit import audit
from tests.producers.bench import NOW, Bench

TEXT = "# Title\n\n" + "A sentence stands here. " * 300 + "\n\n## Part\n\nMore.\n"


def rewrite(bench: Bench, change: Callable[[list[Record]], object]) -> None:
    """The partition with changed chunks that the contract still accepts."""
    records = bench.records()
    change(records)
    with PartitionWriter(bench.root, "markdown") as writer:
        for record in records:
            record["hashes"] = {"text_hash": text_hash(record["text"])}
            record["hashes"]["chunk_object_hash"] = chunk_object_hash(record)
            writer.add(record)
        writer.commit(documents=1, producer=ManifestProducer("other", "1"), created_at=NOW)


def test_what_was_ingested_keeps_the_checklist(bench: Bench) -> None:
    bench.write("a.md", TEXT)
    bench.write("b.md", TEXT)
    bench.ingest()
    assert list(audit(bench.root, "markdown")) == []
    bench.ingest(chunker=MarkdownChunker(policy=Policy(target=50, soft_max=60, hard_max=70)))
    assert list(audit(bench.root, "markdown")) == [], "each by the policy that it names"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda records: records[0].update(text=records[0]["text"] + " more" * 600), "over the hard maximum of 520"),
        (lambda records: records[1]["metadata"].update(ordinal=7), "its ordinal is 7"),
        (lambda records: records[1].update(chunk_id="0" * 64), "its chunk_id is not the stable-id formula's"),
        (lambda records: records[1]["metadata"].update(headings_path=[]), "has no headings_path"),
        (lambda records: records[1]["metadata"].pop("kind"), "lacks a field"),
    ],
)
def test_each_rule_can_be_broken(bench: Bench, change: Callable[[list[Record]], object], reason: str) -> None:
    bench.write("a.md", TEXT)
    bench.ingest()
    rewrite(bench, change)
    bench.assert_valid()
    breaches = list(audit(bench.root, "markdown"))
    assert any(reason in breach.reason for breach in breaches)
    assert {(breach.source_uri, breach.line) for breach in breaches} == {("a.md", 1)}


def test_chunks_by_other_rules_are_passed_over_and_unknown_policies_told(bench: Bench) -> None:
    bench.write("a.md", TEXT)
    bench.ingest()
    made = "canonicalizer_name"
    rewrite(bench, lambda records: [r["provenance"]["canonicalizer"].update({made: "x"}) for r in records])
    assert list(audit(bench.root, "markdown")) == []
    version = {made: "chunksink-markdown", "canonicalizer_version": "chunking_spec_v1.99:350/450/520/15%:words-1"}
    rewrite(bench, lambda records: [r["provenance"]["canonicalizer"].update(version) for r in records])
    (breach,) = audit(bench.root, "markdown")
    assert "which this release does not know" in breach.reason
