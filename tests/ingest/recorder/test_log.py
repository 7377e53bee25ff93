"""Logs: tolerant if nothing is lost, and a notice with line and code for every skipped line."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from chunksink.ingest.codes import MEANINGS
from chunksink.ingest.formats.recorder import RecorderFormat
from chunksink.ingest.formats.recorder.events import MAX_LINE_BYTES
from chunksink.ingest.formats.registry import Match
from chunksink.ingest.model import Family
from tests.conftest import HEAVY
from tests.ingest.recorder.support import (
    check_replay,
    output,
    read_file,
    read_items,
    read_log,
    typed,
    write_log,
)

GOOD = output("good", 0)


@pytest.mark.promise(6)
@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ('{"event_type": "egress_out', "EVENT_MALFORMED"),
        ("[" * 100_000, "EVENT_MALFORMED"),
        ('{"sequence": ' + "9" * 5000 + "}", "EVENT_MALFORMED"),
        (b'{"text": "\xff"}', "EVENT_MALFORMED"),
        ({"pane_id": 1, "text": "x"}, "EVENT_MALFORMED"),
        ({**GOOD, "event_type": "heartbeat"}, "EVENT_KIND_UNKNOWN"),
        ({**GOOD, "event_type": "\ud800"}, "EVENT_KIND_UNKNOWN"),
        ({**GOOD, "pane_id": "a\nb"}, "EVENT_MALFORMED"),
        ({**GOOD, "pane_id": "\ud800"}, "EVENT_MALFORMED"),
        ({**GOOD, "event_id": "x" * 257}, "EVENT_MALFORMED"),
        (output(None, 0), "EVENT_MALFORMED"),
        ({**GOOD, "is_gap": "yes"}, "EVENT_MALFORMED"),
        ({**GOOD, "occurred_at_ms": -1}, "EVENT_MALFORMED"),
        ({**GOOD, "ordinal": 1.5}, "EVENT_MALFORMED"),
        ({**GOOD, "segment_id": 2**53}, "EVENT_MALFORMED"),
        ({**GOOD, "schema_version": "ft.recorder.event.v2"}, "EVENT_MALFORMED"),
        (b"x" * (MAX_LINE_BYTES + 1), "EVENT_TOO_LONG"),
    ],
)
def test_bad_line_is_reported_and_the_others_are_read(tmp_path: Path, bad: Any, code: str) -> None:
    read = read_log(tmp_path, [output("before", 0), bad, output("after", 1)])
    assert read.texts == ["[OUT] before\n[OUT] after"]
    assert read.codes == [(2, code)]
    (notice,) = read.notices
    assert notice.is_failure and len(notice.reason.encode()) < 300
    assert code in MEANINGS
    check_replay(read)


def test_events_out_of_order_are_reported(tmp_path: Path) -> None:
    events = [
        output("a", 0, segment_id=1, ordinal=5),
        output("late", 1, segment_id=1, ordinal=4),
        output("twice", 1, segment_id=1, ordinal=5),
        output("other pane", 1, pane=4, segment_id=1, ordinal=4),
        output("old segment", 1, segment_id=0, ordinal=9),
        output("b", 2, segment_id=2, ordinal=0),
    ]
    read = read_log(tmp_path, events)
    assert read.texts == ["[OUT] a\n[OUT] b", "[OUT] other pane"]
    assert read.codes == [(2, "EVENT_OUT_OF_ORDER"), (3, "EVENT_OUT_OF_ORDER"), (5, "EVENT_OUT_OF_ORDER")]
    assert read.chunks[0]["metadata"]["start_offset"]["segment_id"] == 1
    assert read.chunks[0]["metadata"]["end_offset"] == {
        "segment_id": 2,
        "ordinal": 0,
        "byte_offset": read.path.read_bytes().rindex(b'{"event_type"'),
    }
    check_replay(read)


def test_event_of_the_recorder_schema_is_read(tmp_path: Path) -> None:
    about = {"schema_version": "ft.recorder.event.v1", "event_id": "e-1", "session_id": "s-1", "is_gap": False}
    event = output("hello\r\n", 0, pane=7, **about, sequence=11, causality={"parent_event_id": None}, byte_offset=4096)
    (chunk,) = read_log(tmp_path, [event]).chunks
    assert chunk["text"] == "[OUT] hello"
    assert chunk["metadata"]["start_offset"] == {"segment_id": 0, "ordinal": 11, "byte_offset": 4096}
    assert chunk["metadata"]["event_ids"] == ["e-1"]
    assert (chunk["metadata"]["pane_id"], chunk["metadata"]["session_id"]) == ("7", "s-1")


def test_missing_places_are_those_of_the_line(tmp_path: Path) -> None:
    read = read_log(tmp_path, ["", output("x", 0)])
    (chunk,) = read.chunks
    assert chunk["metadata"]["start_offset"] == {"segment_id": 0, "ordinal": 1, "byte_offset": 1}
    assert chunk["metadata"]["event_ids"] == ["0:1"]
    assert read.notices == []


def test_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    read = read_log(tmp_path, [b"\xef\xbb\xbf" + json.dumps(GOOD).encode()])
    assert (read.texts, read.notices) == (["[OUT] good"], [])


def test_text_of_a_marker_names_the_section(tmp_path: Path) -> None:
    build, nameless = output("Build", 1, "control_marker"), output(None, 3, "control_marker")
    read = read_log(tmp_path, [output("a", 0), build, output("b", 2), nameless, output("c", 4)])
    assert read.sections == [None, ["Build"], ["Build"]]


def test_only_the_first_bytes_of_a_growing_log_are_read(tmp_path: Path) -> None:
    path = write_log(tmp_path, [output("a", 0)])
    before, size = read_file(path), path.stat().st_size
    write_log(tmp_path, [output("a", 0), output("b", 1)])
    assert read_file(path, size=size).families == before.families
    assert RecorderFormat.may_grow


@pytest.mark.parametrize("content", [b"", b"\n\n", json.dumps(output(None, 0, "control_marker")).encode()])
def test_log_without_text_is_an_empty_source(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    read = read_file(path)
    assert read.families == []
    assert [(notice.code, notice.is_failure) for notice in read.notices] == [("SOURCE_EMPTY", False)]


@pytest.mark.promise(6)
def test_line_of_50_megabytes_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(json.dumps(output("before", 0)).encode() + b"\n")
        file.write(b'{"event_type": "egress_output", "pane_id": 3, "occurred_at_ms": 1, "text": "')
        for _ in range(50):
            file.write(b"x" * 1_000_000)
        file.write(b'"}\n' + json.dumps(output("after", 1)).encode() + b"\n")
    tracemalloc.start()
    read = read_file(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read.texts == ["[OUT] before\n[OUT] after"]
    assert read.codes == [(2, "EVENT_TOO_LONG")]
    assert peak < 3 * MAX_LINE_BYTES


@pytest.mark.skipif(not HEAVY, reason="part of `make soak`")
def test_memory_is_flat_while_panes_take_turns(tmp_path: Path) -> None:
    def peak_of(rounds: int) -> tuple[int, int]:
        path = tmp_path / f"{rounds}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number in range(rounds):
                for pane in range(6):
                    event = typed if number % 50 == 0 else output
                    text = f"{number} of pane {pane} " + "word " * 30
                    file.write(json.dumps(event(text, 10 * number, pane=pane)) + "\n")
        tracemalloc.start()
        chunks = sum(len(item.chunks) for item in read_items(path) if isinstance(item, Family))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return chunks, peak

    few, flat = peak_of(rounds := 1500 if HEAVY else 400)
    many, peak = peak_of(6 * rounds)
    assert many > 5.9 * few
    assert peak < 2 * flat + 500_000


@pytest.mark.parametrize(
    ("record", "match"),
    [
        ({"schema_version": "ft.recorder.event.v1"}, Match.DECLARED),
        ({"schema_version": "ft.recorder.event.v2"}, Match.DECLARED),
        (GOOD, Match.LIKELY),
        ({"event_type": "click", "text": "a log of something else"}, Match.NO),
        ({"schema_version": ["ft.recorder.event.v1"]}, Match.NO),
    ],
)
def test_match(record: dict[str, Any], match: Match) -> None:
    assert RecorderFormat().match(record) is match
