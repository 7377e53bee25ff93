"""Identity: the policy's formula by hand, the bus's ids, documents that stay as they are while their log grows."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.canonical import json_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.findings import Finding
from chunksink.chunkbus.identity import family_key, normalise_source, parent_id, tenant_id
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.validate import Validation
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.producers.produced import RecordReader
from chunksink.producers.recorder import Policy, RecorderReader
from chunksink.sinks.projection import project_family
from tests.producers.recorder.support import MAKING, SMALL, read_cast, read_file, read_log, said, typed, write_log

REQUIRED = {
    "chunk_id": str,
    "policy_version": str,
    "pane_id": str,
    "session_id": (str, type(None)),
    "direction": str,
    "start_offset": dict,
    "end_offset": dict,
    "event_ids": list,
    "event_count": int,
    "occurred_at_start_ms": int,
    "occurred_at_end_ms": int,
    "text_chars": int,
    "content_hash": str,
}


def formula(chunk: Record) -> str:
    """The policy's sentence, written again."""
    told = chunk["metadata"]
    key = ":".join(
        [
            "ft.recorder.chunking.v1",
            told["pane_id"],
            told["direction"],
            str(told["start_offset"]["ordinal"]),
            str(told["end_offset"]["ordinal"]),
            sha256(chunk["text"].encode("utf-8")).hexdigest(),
        ]
    )
    return sha256(key.encode("utf-8")).hexdigest()


def test_golden_ids(tmp_path: Path) -> None:
    """Made outside of Python: printf '%s' KEY | sha256sum, with the hash of the text made the same way."""
    events = [typed("ls\r", 0, pane=7, ordinal=41), said("README.md\r\n", 5, pane=7, ordinal=42)]
    (chunk,) = read_log(tmp_path, events).chunks
    assert chunk["metadata"]["content_hash"] == "91d37a00e6c6350f106079c3eaf75b45d93f1a9ea3c08ff003640961be81a988"
    assert chunk["metadata"]["chunk_id"] == "0cd27b792525037805ab5782df2494d63adf5f5ecb175b7dcb5158fbd8df11c7"
    assert formula(chunk) == chunk["metadata"]["chunk_id"]
    key = ["work.jsonl#pane=7&part=0", None, "0/41/0", chunk["metadata"]["chunk_id"]]
    assert chunk["chunk_id"] == json_hash(key)


def test_the_metadata_that_the_policy_requires(tmp_path: Path) -> None:
    read = read_log(tmp_path, [typed("ls", 0, session_id="s"), said("x" * 4000, 1, session_id="s"), said("y", 2)])
    for chunk in read.chunks:
        told = chunk["metadata"]
        assert [name for name, kind in REQUIRED.items() if not isinstance(told[name], kind)] == []
        assert told["policy_version"] == "ft.recorder.chunking.v1"
        assert told["direction"] in ("ingress", "egress", "mixed_glued")
        assert list(told["start_offset"]) == list(told["end_offset"]) == ["segment_id", "ordinal", "byte_offset"]
        assert told["event_count"] == len(told["event_ids"])
        assert told["text_chars"] == len(chunk["text"])
        assert told["chunk_id"] == formula(chunk)


def test_equal_parts_of_one_event_have_ids_of_their_own(tmp_path: Path) -> None:
    """The policy's formula gives them the same one: same event, same text."""
    read = read_log(tmp_path, [said("x" * 9000, 0)])
    assert len(set(read.told("chunk_id"))) < len(read.chunks)
    assert len(set(read.ids)) == len(read.ids)


def test_equal_ordinals_in_two_segments_have_ids_of_their_own(tmp_path: Path) -> None:
    gap = {"event_type": "gap", "pane_id": 3}
    read = read_log(tmp_path, [said("x", 0, segment_id=1, ordinal=0), gap, said("x", 1, segment_id=2, ordinal=0)])
    assert len(set(read.told("chunk_id"))) == 1
    assert len(set(read.ids)) == 2


def test_logs_and_tenants_never_share_an_id(tmp_path: Path) -> None:
    path = write_log(tmp_path, [said("x", 0)])
    reads = [
        read_file(path),
        read_file(path, uri="other/work.jsonl"),
        read_file(path, making=replace(MAKING, tenant="acme")),
        read_log(tmp_path, [said("x", 0, session_id="s")]),
    ]
    chunks = [read.chunks[0] for read in reads]
    assert len({chunk["metadata"]["chunk_id"] for chunk in chunks}) == 1
    assert len({chunk["chunk_id"] for chunk in chunks}) == 4
    assert len({chunk["document_id"] for chunk in chunks}) == 4
    assert len({family_key(parent_id(chunk), tenant_id(chunk)) for chunk in chunks}) == 4
    assert tenant_id(chunks[2]) == "acme" and reads[2].families[0].tenant == "acme"


@pytest.mark.parametrize("pane", ["..", "a/b", "a&part=9", "a#b", "ü %20", "a/../b", "pane=1"])
def test_no_pane_takes_the_name_of_another(tmp_path: Path, pane: str) -> None:
    (family,) = read_log(tmp_path, [said("x", 0, pane=pane)]).families
    name = family.source_uri
    assert name == family.records[0]["provenance"]["source_uri"] == normalise_source(name)
    assert name.startswith("work.jsonl#pane=") and name.endswith("&part=0") and name.count("&") == 1


def test_a_log_that_grows_changes_only_the_last_part_of_the_panes_that_grew(tmp_path: Path) -> None:
    def events(count: int, pane: int) -> list[dict[str, Any]]:
        return [said(f"{number} of {pane}: the output goes on", 20 * number, pane=pane) for number in range(count)]

    both = [event for pair in zip(events(40, 1), events(40, 2), strict=True) for event in pair]
    before = read_log(tmp_path, both, SMALL).families
    grown = [*both, *events(80, 1)[40:]]
    after = {family.source_uri: family for family in read_log(tmp_path, grown, SMALL).families}
    changed = [family.source_uri for family in before if after[family.source_uri] != family]
    assert len(before) > 12 and len(after) > len(before)
    of_pane_1 = [family.source_uri for family in before if "pane=1&" in family.source_uri]
    assert changed == of_pane_1[-1:]
    kept = {record["chunk_id"] for family in before for record in family.records}
    assert len(kept - {record["chunk_id"] for family in after.values() for record in family.records}) <= 1


def test_an_edit_changes_the_version_of_all_that_follows(tmp_path: Path) -> None:
    """Byte offsets move, even those of other panes."""
    events = [said("first", 0, pane=1), said("second", 1, pane=2)]
    before = read_log(tmp_path, events).families
    after = read_log(tmp_path, [said("first!", 0, pane=1), events[1]]).families
    assert [one.source_uri for one in before] == [one.source_uri for one in after]
    for old, new in zip(before, after, strict=True):
        assert old.records[0]["document_id"] != new.records[0]["document_id"]


def test_parts_come_in_order_and_know_their_size(tmp_path: Path) -> None:
    read = read_log(tmp_path, [said(f"{number} " + "word " * 9, number) for number in range(10)], SMALL)
    assert [family.source_uri for family in read.families] == [
        f"work.jsonl#pane=3&part={number}" for number in range(len(read.families))
    ]
    for family in read.families:
        places = [(record["chunk_index"], record["chunk_count"]) for record in family.records]
        assert places == [(index, len(family.records)) for index in range(len(family.records))]
        assert len({record["document_id"] for record in family.records}) == 1
    assert [len(family.records) for family in read.families[:-1]] == [3] * (len(read.families) - 1)


@pytest.mark.promise(10)
def test_nothing_of_a_run_is_in_an_id(tmp_path: Path) -> None:
    path = write_log(tmp_path, [said("x", 0)])
    other = replace(
        MAKING, created_at="2031-01-01T00:00:00Z", producer={"name": "other", "version": "9", "run_id": "r"}
    )
    (one,), (two,) = read_file(path).chunks, read_file(path, making=other).chunks
    assert (one["chunk_id"], one["document_id"]) == (two["chunk_id"], two["document_id"])
    assert two["created_at"] == "2031-01-01T00:00:00Z" and two["producer"]["run_id"] == "r"


def test_the_reader_is_one_of_the_record_readers() -> None:
    reader: RecordReader = RecorderReader()
    assert reader.canonicalizer != RecorderReader(Policy(overlap_chars=60)).canonicalizer
    assert reader.parser[0] and reader.canonicalizer[1].startswith("ft.recorder.chunking.v1+")


@pytest.mark.parametrize(
    "values",
    [{"overlap_chars": 451}, {"max_chunk_chars": 20, "overlap_chars": 0}, {"hard_gap_ms": -1}, {"chunks_per_part": 0}],
)
def test_impossible_policies_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"got|needs|negative"):
        Policy(**values)


def test_the_bus_takes_the_chunks(tmp_path: Path) -> None:
    read = read_log(
        tmp_path, [typed("ls\r", 0), *(said(f"{number} \x1b[1mline\x1b[0m", number) for number in range(300))]
    )
    cast = read_cast(tmp_path, '{"version": 2, "width": 9, "height": 9}', '[0.25, "o", "hello"]')
    root = BusRoot(tmp_path / "bus")
    with PartitionWriter(root, "recorder") as writer:
        for record in [*read.chunks, *cast.chunks]:
            writer.add(record)
        producer = ManifestProducer("test", "1")
        writer.commit(documents=2, producer=producer, created_at=MAKING.created_at, failures=0, skipped=0, errors={})
    findings: list[Finding] = []
    assert Validation(root, on_finding=findings.append).run(["recorder"]).ok
    assert findings == []


def test_an_index_gets_places_and_times(tmp_path: Path) -> None:
    (chunk,) = read_log(
        tmp_path, [said("x", 0, segment_id=2, ordinal=7), said("y", 1999, segment_id=2, ordinal=9)]
    ).chunks
    (document,) = project_family([chunk])
    assert (document.start_offset, document.end_offset) == (
        "2/7/0",
        f"2/9/{chunk['metadata']['end_offset']['byte_offset']}",
    )
    assert document.modified_at_epoch == 1_700_000_001
    assert (document.path, document.filename, document.extension) == ("work.jsonl", "work.jsonl", "jsonl")
    assert document.source_type == "recorder"
    header = '{"version": 3, "term": {"cols": 9, "rows": 9}, "title": "Demo"}'
    (recorded,) = read_cast(tmp_path, header, '[0, "m", "Setup"]', '[1.5, "o", "x"]', '[2, "o", "y"]').chunks
    (document,) = project_family([recorded])
    assert (document.timestamp_start, document.timestamp_end) == (1.5, 3.5)
    assert document.modified_at_epoch is None  # the recording does not say when it was made
    assert (document.title, document.section, document.headings) == ("Demo", "Setup", ("Setup",))
