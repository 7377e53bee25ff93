"""The checklist of the chunking specification, on fresh chunks and on those of a partition."""

from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.chunkbus.canonical import chunk_object_hash, text_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.ingest.checklist import find_breaches, find_problems
from chunksink.ingest.formats.markdown.policy import Policy
from tests.ingest.markdown.support import CREATED_AT, chunks_of

Change = Callable[[list[Record]], object]
TEXT = "# Title\n\n" + "A sentence is here. " * 300 + "\n\n## Part\n\nMore.\n"
NAME = "canonicalizer_name"
UNKNOWN = {NAME: "chunksink-markdown", "canonicalizer_version": "chunking_spec_v1.99:350/450/520/15%:words-1"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda r: r[1].update(text=""), "its text is empty"),
        (lambda r: r[1]["metadata"].update(ordinal=5), "its ordinal is 5"),
        (lambda r: r[1]["metadata"].update(headings_path=[], chunk_path="/"), "has no headings_path"),
        (lambda r: r[1]["metadata"].update(chunk_path="/Other"), "does not begin with its headings"),
        (lambda r: r[1].update(chunk_id="0" * 64), "does not match the formula"),
        (lambda r: r[1]["metadata"].update(token_count=1), "token_count is 1"),
        (lambda r: r[1].update(text="word " * 521), "over the hard maximum of 520"),
        (lambda r: r[1].update(document_id="other"), "different documents"),
        (lambda r: r.pop(0), "its ordinal is 1"),
    ],
)
def test_each_rule_can_be_broken(change: Change, problem: str) -> None:
    records = chunks_of("# A\n\nsome text\n\n## B\n\nmore text")
    assert find_problems(records, Policy()) == []
    change(records)
    assert any(problem in found for found in find_problems(records, Policy()))


def partition(folder: Path, records: list[Record]) -> FolderRoot:
    """A valid partition with changed chunks."""
    root = FolderRoot(folder)
    with PartitionWriter(root, "markdown") as writer:
        for record in records:
            record["hashes"] = {"text_hash": text_hash(record["text"])}
            record["hashes"]["chunk_object_hash"] = chunk_object_hash(record)
            writer.add(record)
        writer.commit(documents=1, producer=ManifestProducer("test", "1"), created_at=CREATED_AT)
    return root


def canonicalized(records: list[Record], canonicalizer: dict[str, str]) -> None:
    for record in records:
        record["provenance"]["canonicalizer"].update(canonicalizer)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda records: records[1]["metadata"].update(ordinal=7), "its ordinal is 7"),
        (lambda records: records[1]["metadata"].pop("kind"), "missing"),
        (lambda records: canonicalized(records, UNKNOWN), "was cut by"),
    ],
)
def test_breaches_of_a_partition_name_source_and_line(tmp_path: Path, change: Change, reason: str) -> None:
    records = chunks_of(TEXT, uri="a.md")
    change(records)
    breaches = list(find_breaches(partition(tmp_path, records), "markdown"))
    assert any(reason in breach.reason for breach in breaches)
    assert {(breach.source_uri, breach.line) for breach in breaches} == {("a.md", 1)}


def test_chunks_by_other_rules_are_skipped(tmp_path: Path) -> None:
    records = chunks_of(TEXT)
    records[0]["metadata"]["ordinal"] = 7
    canonicalized(records, {NAME: "other"})
    assert list(find_breaches(partition(tmp_path, records), "markdown")) == []
