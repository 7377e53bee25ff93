"""Identity: the policy's formula by hand, the chunks' own ids, documents that stay the same while their log grows."""

from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.canonical import json_hash
from chunksink.chunkbus.identity import family_key, normalise_source, parent_id, tenant_id
from chunksink.ingest.formats.recorder import RecorderFormat
from chunksink.sinks.projection import project_family
from tests.ingest.recorder.support import SMALL, output, read_cast, read_file, read_log, typed, write_log


def test_golden_ids(tmp_path: Path) -> None:
    """Made outside of Python: printf '%s' KEY | sha256sum, with the hash of the text made the same way."""
    events = [typed("ls\r", 0, pane=7, ordinal=41), output("README.md\r\n", 5, pane=7, ordinal=42)]
    (chunk,) = read_log(tmp_path, events).chunks
    assert chunk["metadata"]["content_hash"] == "91d37a00e6c6350f106079c3eaf75b45d93f1a9ea3c08ff003640961be81a988"
    assert chunk["metadata"]["chunk_id"] == "0cd27b792525037805ab5782df2494d63adf5f5ecb175b7dcb5158fbd8df11c7"
    assert chunk["metadata"]["policy_version"] == "ft.recorder.chunking.v1"
    key = ["work.jsonl#pane=7&part=0", None, "0/41/0", chunk["metadata"]["chunk_id"]]
    assert chunk["chunk_id"] == json_hash(key)


def test_equal_parts_of_one_event_have_different_ids(tmp_path: Path) -> None:
    """The policy's formula makes the same id of them: same event, same text."""
    read = read_log(tmp_path, [output("x" * 9000, 0)])
    assert len(set(read.metadata("chunk_id"))) < len(read.chunks)
    assert len(set(read.ids)) == len(read.ids)


def test_equal_ordinals_in_two_segments_have_different_ids(tmp_path: Path) -> None:
    gap = output("x", 1, segment_id=2, ordinal=0, is_gap=True)
    read = read_log(tmp_path, [output("x", 0, segment_id=1, ordinal=0), gap])
    assert len(set(read.metadata("chunk_id"))) == 1
    assert len(set(read.ids)) == 2


def test_logs_sessions_and_tenants_never_share_an_id(tmp_path: Path) -> None:
    path = write_log(tmp_path, [output("x", 0)])
    reads = [
        read_file(path),
        read_file(path, uri="other/work.jsonl"),
        read_file(path, tenant="acme"),
        read_log(tmp_path, [output("x", 0, session_id="s")]),
    ]
    chunks = [read.chunks[0] for read in reads]
    assert len({chunk["metadata"]["chunk_id"] for chunk in chunks}) == 1
    assert len({chunk["chunk_id"] for chunk in chunks}) == 4
    assert len({chunk["document_id"] for chunk in chunks}) == 4
    assert len({family_key(parent_id(chunk), tenant_id(chunk)) for chunk in chunks}) == 4
    assert tenant_id(chunks[2]) == "acme"


@pytest.mark.parametrize("pane", ["..", "a/b", "a&part=9", "a#b", "ü %20", "a/../b", "pane=1"])
def test_no_pane_takes_the_name_of_another(tmp_path: Path, pane: str) -> None:
    (chunk,) = read_log(tmp_path, [output("x", 0, pane=pane)]).chunks
    name = chunk["provenance"]["source_uri"]
    assert name == normalise_source(name)
    assert name.startswith("work.jsonl#pane=") and name.endswith("&part=0") and name.count("&") == 1


def test_growing_log_changes_only_the_last_part_of_the_panes_that_grew(tmp_path: Path) -> None:
    def events(count: int, pane: int) -> list[dict[str, Any]]:
        return [output(f"{number} of {pane}: the output goes on", 20 * number, pane=pane) for number in range(count)]

    both = [event for pair in zip(events(40, 1), events(40, 2), strict=True) for event in pair]
    before = read_log(tmp_path, both, SMALL)
    after = read_log(tmp_path, [*both, *events(80, 1)[40:]], SMALL)
    parts = dict(zip(after.documents, after.families, strict=True))
    changed = [uri for uri, family in zip(before.documents, before.families, strict=True) if parts[uri] != family]
    assert len(before.families) > 12 and len(after.families) > len(before.families)
    assert changed == [uri for uri in before.documents if "pane=1&" in uri][-1:]
    assert len(set(before.ids) - set(after.ids)) <= 1


@pytest.mark.promise(10)
def test_ids_do_not_depend_on_the_run(tmp_path: Path) -> None:
    path = write_log(tmp_path, [output("x", 0)])
    producer = {"name": "other", "version": "9", "run_id": "r"}
    (one,) = read_file(path).chunks
    (two,) = read_file(path, created_at="2031-01-01T00:00:00Z", producer=producer).chunks
    assert (one["chunk_id"], one["document_id"]) == (two["chunk_id"], two["document_id"])
    assert two["created_at"] == "2031-01-01T00:00:00Z" and two["producer"]["run_id"] == "r"


def test_canonicalizer_names_every_parameter() -> None:
    version = "ft.recorder.chunking.v1+3:1800/48/120000/30000/80/8000/120:part-64"
    assert RecorderFormat().canonicalizer == ("chunksink-recorder", version)


def test_index_contains_places_and_times(tmp_path: Path) -> None:
    events = [output("x", 0, segment_id=2, ordinal=7), output("y", 1999, segment_id=2, ordinal=9)]
    (chunk,) = read_log(tmp_path, events).chunks
    (document,) = project_family([chunk])
    end = f"2/9/{chunk['metadata']['end_offset']['byte_offset']}"
    assert (document.start_offset, document.end_offset) == ("2/7/0", end)
    assert document.modified_at_epoch == 1_700_000_001
    assert (document.path, document.filename, document.extension) == ("work.jsonl", "work.jsonl", "jsonl")
    assert document.source_type == "recorder"
    header = '{"version": 3, "term": {"cols": 9, "rows": 9}, "title": "Demo"}'
    (recorded,) = read_cast(tmp_path, header, '[0, "m", "Setup"]', '[1.5, "o", "x"]', '[2, "o", "y"]').chunks
    (document,) = project_family([recorded])
    assert (document.timestamp_start, document.timestamp_end) == (1.5, 3.5)
    assert document.modified_at_epoch is None
    assert (document.title, document.section, document.headings) == ("Demo", "Setup", ("Setup",))
