"""Logs as they come: tolerant where nothing is lost by it, and a word with line and code on all that is left out."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from chunksink.producers.errors import MEANINGS
from chunksink.producers.produced import Produced
from chunksink.producers.recorder import RecorderReader
from chunksink.producers.recorder.lines import MAX_LINE_BYTES
from tests.conftest import HEAVY
from tests.producers.recorder.support import MAKING, START, check_replay, read_file, read_log, said, typed, write_log

GOOD = said("good", 0)


@pytest.mark.promise(6)
@pytest.mark.parametrize(
    ("bad", "code", "reason"),
    [
        ('{"event_type": "egress_out', "EVENT_MALFORMED", "is not JSON"),
        ("[1, 2]", "EVENT_MALFORMED", "not a JSON object"),
        ('{"text": NaN}', "EVENT_MALFORMED", "NaN is no number"),
        ("[" * 100_000, "EVENT_MALFORMED", "is not JSON"),
        ('{"sequence": ' + "9" * 5000 + "}", "EVENT_MALFORMED", "is not JSON"),
        (b'{"text": "\xff"}', "EVENT_NOT_UTF8", "byte 0xff at offset 10"),
        ({"pane_id": 1, "text": "x"}, "EVENT_MALFORMED", "lacks event_type and direction"),
        ({**GOOD, "event_type": "heartbeat"}, "EVENT_KIND_UNKNOWN", "event_type is 'heartbeat'; known are"),
        ({**GOOD, "event_type": 5}, "EVENT_KIND_UNKNOWN", "event_type is 5"),
        ({**GOOD, "event_type": ["gap"]}, "EVENT_KIND_UNKNOWN", "event_type is ['gap']"),
        ({**GOOD, "direction": "ingress"}, "EVENT_MALFORMED", "contradict"),
        ({**GOOD, "pane_id": None}, "EVENT_MALFORMED", "lacks pane_id"),
        ({**GOOD, "pane_id": True}, "EVENT_MALFORMED", "pane_id is True"),
        ({**GOOD, "pane_id": "a\nb"}, "EVENT_MALFORMED", "printable"),
        ({**GOOD, "pane_id": "\ud800"}, "EVENT_MALFORMED", "printable"),
        ({**GOOD, "event_id": "x" * 257}, "EVENT_MALFORMED", "event_id is"),
        (said(None, 0), "EVENT_MALFORMED", "lacks text"),
        ({**GOOD, "text": 7}, "EVENT_MALFORMED", "text is 7"),
        ({**GOOD, "is_gap": "yes"}, "EVENT_MALFORMED", "is_gap is 'yes'"),
        ({**GOOD, "occurred_at_ms": None}, "EVENT_WITHOUT_TIME", "lacks occurred_at_ms"),
        ({**GOOD, "occurred_at_ms": "soon"}, "EVENT_MALFORMED", "occurred_at_ms is 'soon'"),
        ({**GOOD, "occurred_at_ms": -1}, "EVENT_MALFORMED", "occurred_at_ms is -1"),
        ({**GOOD, "ordinal": 1.5}, "EVENT_MALFORMED", "ordinal is 1.5"),
        ({**GOOD, "segment_id": 2**53}, "EVENT_MALFORMED", "segment_id is"),
        ({**GOOD, "schema_version": "ft.recorder.event.v2"}, "EVENT_MALFORMED", "schema_version is"),
        (b"x" * (MAX_LINE_BYTES + 1), "EVENT_TOO_LONG", f"longer than 8 MiB: {MAX_LINE_BYTES + 2} bytes"),
    ],
)
def test_a_bad_line_is_told_and_the_others_are_read(tmp_path: Path, bad: Any, code: str, reason: str) -> None:
    read = read_log(tmp_path, [said("before", 0), bad, said("after", 1)])
    assert read.texts == ["[OUT] before\n[OUT] after"]
    assert read.codes == [(2, code)]
    (left,) = read.left_out
    assert left.source_uri == "work.jsonl" and left.is_failure
    assert reason in left.reason and len(left.reason) < 300
    assert code in MEANINGS
    check_replay(read)


def test_a_clock_that_goes_back_is_told_and_the_log_counts(tmp_path: Path) -> None:
    events = [said("a", 1000), said("b", 9000), said("c", 3000), said("d", 3000), said("other", 500, pane=4)]
    read = read_log(tmp_path, [*events, said("e", 2999)])
    assert read.texts == ["[OUT] a\n[OUT] b\n[OUT] c\n[OUT] d\n[OUT] e", "[OUT] other"]
    assert [(left.line, left.code, left.is_failure) for left in read.left_out] == [
        (3, "EVENT_BACK_IN_TIME", False),
        (6, "EVENT_BACK_IN_TIME", False),
    ]
    assert read.left_out[0].reason == "is 6000 ms before the last event of pane 3"
    check_replay(read)


def test_events_out_of_order_are_told(tmp_path: Path) -> None:
    events = [
        said("a", 0, segment_id=1, ordinal=5),
        said("late", 1, segment_id=1, ordinal=4),
        said("twice", 1, segment_id=1, ordinal=5),
        said("other pane", 1, pane=4, segment_id=1, ordinal=4),
        said("old segment", 1, segment_id=0, ordinal=9),
        said("b", 2, segment_id=2, ordinal=0),
    ]
    read = read_log(tmp_path, events)
    assert read.texts == ["[OUT] a\n[OUT] b", "[OUT] other pane"]
    assert read.codes == [(2, "EVENT_OUT_OF_ORDER"), (3, "EVENT_OUT_OF_ORDER"), (5, "EVENT_OUT_OF_ORDER")]
    assert "segment 0, ordinal 9 of pane 3 comes after segment 1, ordinal 5" in read.left_out[2].reason
    assert read.chunks[0]["metadata"]["start_offset"]["segment_id"] == 1
    assert read.chunks[0]["metadata"]["end_offset"] == {
        "segment_id": 2,
        "ordinal": 0,
        "byte_offset": read.path.read_bytes().rindex(b'{"event_type"'),
    }
    check_replay(read)


def test_each_session_counts_for_itself(tmp_path: Path) -> None:
    read = read_log(tmp_path, [said("a", 0, session_id="s", sequence=4), said("b", 1, session_id="t", sequence=0)])
    assert (len(read.families), read.left_out) == (2, [])


def test_a_pane_names_ordinals_or_does_not(tmp_path: Path) -> None:
    """Else nobody could say from a chunk's span alone which events were out of order."""
    marker = {"event_type": "control", "pane_id": 3}
    events = [
        said("a", 0),
        said("b", 1, ordinal=7),
        said("c", 2),
        marker,
        said("d", 3, ordinal=3),
        said("e", 4, ordinal=8),
    ]
    read = read_log(tmp_path, events)
    assert read.texts == ["[OUT] a\n[OUT] b", "[OUT] e"]
    assert read.codes == [(3, "EVENT_MALFORMED"), (5, "EVENT_OUT_OF_ORDER")]
    assert "lacks ordinal" in read.left_out[0].reason
    check_replay(read)


def test_a_recorders_own_event_is_understood(tmp_path: Path) -> None:
    event = {
        "schema_version": "ft.recorder.event.v1",
        "event_id": "e-1",
        "pane_id": 7,
        "session_id": "s-1",
        "workflow_id": None,
        "source": "wezterm_mux",
        "occurred_at_ms": START,
        "recorded_at_ms": START + 3,
        "sequence": 11,
        "causality": {"parent_event_id": None},
        "event_type": "egress_output",
        "text": "hello\r\n",
        "encoding": "utf8",
        "segment_kind": "delta",
        "is_gap": False,
        "byte_offset": 4096,
    }
    (chunk,) = read_log(tmp_path, [event]).chunks
    assert chunk["text"] == "[OUT] hello"
    assert chunk["metadata"]["start_offset"] == {"segment_id": 0, "ordinal": 11, "byte_offset": 4096}
    assert chunk["metadata"]["event_ids"] == ["e-1"]
    assert (chunk["metadata"]["pane_id"], chunk["metadata"]["session_id"]) == ("7", "s-1")


def test_what_an_event_does_not_say_is_its_place_in_the_log(tmp_path: Path) -> None:
    read = read_log(tmp_path, ["", {"direction": "egress", "pane_id": "p", "occurred_at_ms": START, "text": "x"}])
    (chunk,) = read.chunks
    assert chunk["metadata"]["start_offset"] == {"segment_id": 0, "ordinal": 1, "byte_offset": 1}
    assert chunk["metadata"]["event_ids"] == ["0:1"]
    assert read.left_out == []


def test_a_gap_with_text_is_output(tmp_path: Path) -> None:
    read = read_log(tmp_path, [said("a", 0), said("lost some", 1, "gap"), said("ordinary", 2)])
    assert read.texts == ["[OUT] a", "[OUT] lost some\n[OUT] ordinary"]


def test_a_control_events_text_names_the_section(tmp_path: Path) -> None:
    events = [said("a", 0), said("Build", 1, "control"), said("b", 2), said(None, 3, "control"), said("c", 4)]
    assert [chunk["span"].get("section") for chunk in read_log(tmp_path, events).chunks] == [
        None,
        ["Build"],
        ["Build"],
    ]


def test_a_line_that_is_still_being_written_is_told_and_whole_the_next_time(tmp_path: Path) -> None:
    path = write_log(tmp_path, [said("a", 0), said("b", 1)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    torn = read_file(path)
    assert (torn.texts, torn.codes) == (["[OUT] a"], [(2, "EVENT_MALFORMED")])
    path.write_bytes(whole.rstrip(b"\n"))
    assert read_file(path).texts == ["[OUT] a\n[OUT] b"]


@pytest.mark.parametrize("content", [b"", b"\n\n", b'{"event_type": "control"}\n'])
def test_a_log_without_text_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    read = read_file(path)
    assert read.families == []
    assert [(left.line, left.code, left.is_failure) for left in read.left_out] == [(None, "SOURCE_EMPTY", False)]


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    assert read_file(tmp_path / "absent.jsonl").codes == [(None, "SOURCE_UNREADABLE")]
    assert read_file(tmp_path).codes == [(None, "SOURCE_UNREADABLE")]


@pytest.mark.promise(6)
def test_a_line_of_50_megabytes_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    with path.open("wb") as file:
        file.write(json.dumps(said("before", 0)).encode() + b"\n")
        file.write(b'{"event_type": "egress_output", "pane_id": 3, "occurred_at_ms": 1, "text": "')
        for _ in range(50):
            file.write(b"x" * 1_000_000)
        file.write(b'"}\n' + json.dumps(said("after", 1)).encode() + b"\n")
    tracemalloc.start()
    read = read_file(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read.texts == ["[OUT] before\n[OUT] after"]
    assert read.codes == [(2, "EVENT_TOO_LONG")]
    assert peak < 3 * MAX_LINE_BYTES


def test_an_event_of_megabytes_is_cut(tmp_path: Path) -> None:
    read = read_log(tmp_path, [said("".join(f"{number} " for number in range(900_000)), 0)])
    assert sum(len(family.records) for family in read.families) == len(read.chunks) > 3000
    assert max(map(len, read.texts)) <= 1800


def test_memory_is_flat_while_panes_take_turns(tmp_path: Path) -> None:
    def peak_of(rounds: int) -> tuple[int, int]:
        path = tmp_path / f"{rounds}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number in range(rounds):
                for pane in range(6):
                    kind = typed if number % 50 == 0 else said
                    file.write(
                        json.dumps(kind(f"{number} of pane {pane} " + "word " * 30, 10 * number, pane=pane)) + "\n"
                    )
        chunks = 0
        tracemalloc.start()
        for one in RecorderReader().read(path, path.name, MAKING):
            assert isinstance(one, Produced)
            chunks += len(one.records)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return chunks, peak

    few, flat = peak_of(rounds := 1500 if HEAVY else 500)
    many, peak = peak_of(4 * rounds)
    assert many > 3.9 * few
    assert peak < 1.2 * flat + 200_000


BOUNDARIES = [
    {**said("lost", 1, is_gap=True), "occurred_at_ms": None},
    {**said("lost", 1, kind="gap"), "occurred_at_ms": None},
    said("PROMPT", 1, kind="control_marker", ordinal=0),
    {**said(None, 1, kind="lifecycle_marker"), "text": 7},
    said("PROMPT", 1, kind="control_marker", pane=True),
    said("PROMPT", 1, kind="control_marker", session_id=[7]),
    said("lost", 1, kind="weird", is_gap=True),
    said("lost", 1, direction="ingress", is_gap=True),
    said("lost", 1, kind="gap", direction="sideways"),
    said("PROMPT", 1, kind="control_marker", is_gap="no"),
    {**said("lost", 1, is_gap=True, control_marker_type="resize"), "text": 5},
    said("lost", 1, kind="gap", control_marker_type="resize", ordinal="x"),
]


@pytest.mark.parametrize("session", [None, "s"])
@pytest.mark.parametrize("refused", BOUNDARIES)
def test_a_boundary_that_is_refused_parts_all_the_same(
    tmp_path: Path, refused: dict[str, Any], session: str | None
) -> None:
    before, after = (said(text, at, ordinal=5 + at, session_id=session) for text, at in (("before", 0), ("after", 2)))
    events = [before, {"session_id": session} | refused, after]
    read = read_log(tmp_path, events)
    assert read.texts == ["[OUT] before", "[OUT] after"]
    assert [line for line, _ in read.codes] == [2]
    assert read.left_out[0].is_failure
    check_replay(read)


@pytest.mark.parametrize(
    "refused",
    [
        said("x", 1, ordinal=4),
        said("x", 1, is_gap="yes"),
        said(None, 1, kind="control", control_marker_type="resize", schema_version="ft.recorder.event.v2"),
    ],
)
def test_any_other_event_that_is_refused_parts_nothing(tmp_path: Path, refused: dict[str, Any]) -> None:
    read = read_log(tmp_path, [said("before", 0, ordinal=5), refused, said("after", 2, ordinal=6)])
    assert read.texts == ["[OUT] before\n[OUT] after"]
    assert [line for line, _ in read.codes] == [2]


def test_a_gap_parts_though_the_window_changed_its_size(tmp_path: Path) -> None:
    events = [said("a", 0), said("", 1, kind="control_marker", control_marker_type="resize"), said("b", 2)]
    assert read_log(tmp_path, events).texts == ["[OUT] a\n[OUT] b"]
    events[1]["is_gap"] = True
    assert read_log(tmp_path, events).texts == ["[OUT] a", "[OUT] b"]


def test_labels_below_which_nothing_stands_are_told_once_of_a_pane(tmp_path: Path) -> None:
    def marker(text: str, kind: str = "control_marker", pane: Any = 3) -> dict[str, Any]:
        return said(text, 0, kind=kind, pane=pane)

    events = [marker("one"), marker("two"), said("a", 0), marker("three"), marker("end", "lifecycle_marker")]
    read = read_log(tmp_path, [*events, said("b", 0, pane=4), marker("used", pane=4), said("c", 1, pane=4)])
    assert [(one.line, one.code, one.is_failure) for one in read.left_out] == [(1, "LABEL_WITHOUT_TEXT", False)]
    assert read.left_out[0].reason == "labels of pane 3 have no text below them: 3, of which the first stands here"
    assert [chunk["span"].get("section") for chunk in read.chunks] == [["two"], None, ["used"]]


def test_a_label_for_all_panes_is_told_where_none_shows_it(tmp_path: Path) -> None:
    def marker(text: str) -> dict[str, Any]:
        return {"event_type": "control_marker", "text": text}

    events = [said("a", 0), said("b", 0, pane=4), marker("deploy"), said("c", 1, pane=4)]
    read = read_log(tmp_path, events)
    assert read.left_out == []
    assert [chunk["span"].get("section") for chunk in read.chunks] == [None, None, ["deploy"]]
    read = read_log(tmp_path, [marker("first"), *events, marker("one"), marker("two")])
    assert [(one.line, one.code) for one in read.left_out] == [(1, "LABEL_WITHOUT_TEXT")]
    assert read.left_out[0].reason == (
        "labels for all panes have no text below them: 3, of which the first stands here"
    )
