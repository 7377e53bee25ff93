"""Properties of every log: nothing lost or repeated except overlap, no text over the limit, every chunk replays."""

import json
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from chunksink.chunkbus.canonical import canonical_text
from chunksink.chunkbus.chunk import Record
from tests.conftest import examples
from tests.ingest.reading import solid
from tests.ingest.recorder.support import DEFAULT, SMALL, START, Read, Sizes, check_replay, read_file, write_log

MARKS = {"ingress_text": "[IN] ", "egress_output": "[OUT] "}

_plain = st.text(alphabet=st.sampled_from("abcdefgh  \n.é中\u0301\U0001f469\u200d\U0001f4bb"), max_size=40)
_long = st.builds(lambda text, times: text * times, _plain, st.integers(2, 12))
_texts = st.one_of(_plain, _plain, _long, st.sampled_from(["x", "ls", "\n\n", " ", "a\n" * 9, "w" * 200]))
_sent = st.lists(
    st.sampled_from(["a", "bc ", "\r\n", "\r", "\b", "\x1b[1m", "\x1b]0;t\x07", "\x1b", "\x9b", "\x00", "z" * 30])
)
_kinds = st.sampled_from(["egress_output"] * 6 + ["ingress_text"] * 4 + ["control_marker", "lifecycle_marker"])
_steps = st.one_of(st.integers(0, 60), st.integers(0, 400), st.integers(-400, 1500))
_rows = st.tuples(_kinds, st.integers(1, 2), _texts, _steps, st.sampled_from([False] * 9 + [True]))


def events_of(rows: list[Any]) -> list[dict[str, Any]]:
    moment = START + 100_000
    events = []
    for kind, pane, text, step, is_gap in rows:
        moment += step
        event = {"event_type": kind, "pane_id": pane, "occurred_at_ms": moment, "is_gap": is_gap}
        events.append({**event, "text": text} if kind in MARKS else event)
    return events


def read(events: list[dict[str, Any]], sizes: Sizes) -> Read:
    """Read and replayed; the file is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        result = read_file(write_log(Path(folder), events), sizes)
        check_replay(result, sizes)
        return result


def by_pane(result: Read) -> dict[str, list[Record]]:
    panes = defaultdict(list)
    for chunk in result.chunks:
        panes[chunk["metadata"]["pane_id"]].append(chunk)
    return panes


def check_limits(chunk: Record, events: list[dict[str, Any]], sizes: Sizes) -> None:
    metadata, text = chunk["metadata"], chunk["text"]
    assert 0 < len(text) == metadata["text_chars"] <= sizes["MAX_CHUNK_CHARS"]
    assert text == canonical_text(text)
    most_of_a_fragment = sizes["MIN_CHUNK_CHARS"] // 7 + 1
    assert metadata["event_count"] <= sizes["MAX_CHUNK_EVENTS"] + most_of_a_fragment
    numbers = [int(name.split(":")[1]) for name in metadata["event_ids"]]
    assert numbers == sorted(set(numbers))
    own = [events[number] for number in numbers]
    times = [event["occurred_at_ms"] for event in own]
    assert (metadata["occurred_at_start_ms"], metadata["occurred_at_end_ms"]) == (min(times), max(times))
    assert max(times) - min(times) <= sizes["MAX_WINDOW_MS"] + sizes["MERGE_WINDOW_MS"]
    assert {str(event["pane_id"]) for event in own} == {metadata["pane_id"]}
    assert not any(event["is_gap"] for event in own[1:])
    directions = [event["event_type"] for event in own]
    if metadata["direction"] == "mixed_glued":
        assert sorted(directions, reverse=True) == directions and len(set(directions)) == 2
    else:
        assert set(directions) == {{"ingress": "ingress_text", "egress": "egress_output"}[metadata["direction"]]}
    stretch = [event for event in events[numbers[0] : numbers[-1] + 1] if event["pane_id"] == own[0]["pane_id"]]
    for before, after in pairwise(event for event in stretch if "text" in event):
        assert abs(after["occurred_at_ms"] - before["occurred_at_ms"]) <= sizes["HARD_GAP_MS"]


def check_overlap(before: Record, after: Record, sizes: Sizes) -> None:
    metadata = after["metadata"]
    if metadata["overlap_chars"]:
        assert metadata["opened_by"] == "limit"
        directions = (before["metadata"]["direction"], metadata["direction"])
        assert directions in {("ingress",) * 2, ("egress",) * 2, ("mixed_glued", "egress")}
    repeated = after["text"][: metadata["overlap_chars"]].rstrip()
    assert len(repeated) <= sizes["OVERLAP_CHARS"]
    assert before["text"].endswith(repeated)


@settings(max_examples=examples(500))
@given(
    st.lists(_rows, max_size=40),
    st.sampled_from(
        [SMALL] * 4 + [DEFAULT, {**DEFAULT, "MAX_CHUNK_CHARS": 40, "OVERLAP_CHARS": 0, "MIN_CHUNK_CHARS": 0}]
    ),
)
def test_any_log_follows_the_rules_and_loses_nothing(rows: list[Any], sizes: Sizes) -> None:
    events = events_of(rows)
    result = read(events, sizes)
    assert not any(notice.is_failure for notice in result.notices)
    assert len(set(result.ids)) == len(result.ids)
    for pane, chunks in by_pane(result).items():
        sent = [
            MARKS[event["event_type"]] + event["text"]
            for event in events
            if event["event_type"] in MARKS and str(event["pane_id"]) == pane and event["text"].strip()
        ]
        own = "".join(chunk["text"][chunk["metadata"]["overlap_chars"] :] for chunk in chunks)
        assert solid(own) == solid("".join(sent))
        assert chunks[0]["metadata"]["overlap_chars"] == 0
        for chunk in chunks:
            check_limits(chunk, events, sizes)
        for before, after in pairwise(chunks):
            check_overlap(before, after, sizes)
    assert read(events, sizes).families == result.families


@settings(max_examples=examples(200))
@given(st.lists(_rows, max_size=40), st.integers(0, 40))
def test_growing_log_keeps_all_but_the_last_chunk_of_each_pane(rows: list[Any], length: int) -> None:
    events = events_of(rows)
    grown, short = by_pane(read(events, SMALL)), by_pane(read(events[:length], SMALL))
    for pane, chunks in short.items():
        kept = len(chunks) - 1
        assert [chunk["chunk_id"] for chunk in chunks[:kept]] == [chunk["chunk_id"] for chunk in grown[pane][:kept]]


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.sampled_from(["egress_output", "ingress_text"]), _sent), max_size=20))
def test_anything_sent_to_a_terminal_is_canonical_and_replays(rows: list[Any]) -> None:
    events = events_of([(kind, 1, "".join(sent), 5, False) for kind, sent in rows])
    for text in read(events, SMALL).texts:
        assert text == canonical_text(text)
        assert "\x1b" not in text and len(text) <= SMALL["MAX_CHUNK_CHARS"]


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(st.sampled_from("oooiimrx"), _sent, st.integers(0, 5000)), max_size=30), st.sampled_from([2, 3])
)
def test_any_recording_replays(rows: list[Any], version: int) -> None:
    header = {"version": 2, "width": 9, "height": 9} if version == 2 else {"version": 3, "term": {"cols": 9, "rows": 9}}
    frames, at = [], 0
    for code, sent, step in rows:
        at += step
        data = "80x24" if code == "r" else "".join(sent)
        frames.append(json.dumps([(at if version == 2 else step) / 10_000, code, data]))
    with tempfile.TemporaryDirectory() as folder:
        result = read_file(write_log(Path(folder), [json.dumps(header), *frames], "any.cast"), SMALL)
        check_replay(result, SMALL)
    assert not any(notice.is_failure for notice in result.notices)
    assert all(len(text) <= SMALL["MAX_CHUNK_CHARS"] for text in result.texts)
