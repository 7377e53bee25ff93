"""What must hold for every log: nothing lost, nothing twice but what may be repeated, no text over the cap."""

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
from chunksink.producers.recorder import Policy
from tests.conftest import examples
from tests.producers.recorder.support import SMALL, START, Read, check_replay, read_file, write_log

_plain = st.text(alphabet=st.sampled_from("abcdefgh  \n.é中\u0301\U0001f469\u200d\U0001f4bb"), max_size=40)
_long = st.builds(lambda text, times: text * times, _plain, st.integers(2, 12))
_texts = st.one_of(
    _plain, _plain, _long, st.sampled_from(["x", "ls", "\n\n", " ", "a\n" * 9, "w" * 200, "\u0301" * 90])
)
_sent = st.lists(
    st.sampled_from(["a", "bc ", "\r\n", "\r", "\b", "\x1b[1m", "\x1b]0;t\x07", "\x1b", "\x9b", "\x00", "z" * 30])
)
_kinds = st.sampled_from(["egress_output"] * 6 + ["ingress_text"] * 4 + ["control", "lifecycle", "gap"])
_steps = st.one_of(st.integers(0, 60), st.integers(0, 400), st.integers(-400, 1500))
_rows = st.tuples(_kinds, st.integers(1, 2), _texts, _steps, st.sampled_from([False] * 9 + [True]))


def events_of(rows: list[Any]) -> list[dict[str, Any]]:
    moment = START + 100_000
    events = []
    for kind, pane, text, step, is_gap in rows:
        moment += step
        event = {"event_type": kind, "pane_id": pane, "occurred_at_ms": moment, "is_gap": is_gap}
        if kind in ("egress_output", "ingress_text"):
            event["text"] = text
        events.append(event)
    return events


def read(events: list[dict[str, Any]], policy: Policy) -> Read:
    """Read and replayed; the file is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        found = read_file(write_log(Path(folder), events), policy)
        check_replay(found, policy)
        return found


def by_pane(found: Read) -> dict[str, list[Record]]:
    panes = defaultdict(list)
    for chunk in found.chunks:
        panes[chunk["metadata"]["pane_id"]].append(chunk)
    return panes


def own(chunk: Record) -> str:
    text: str = chunk["text"]
    return text[chunk["metadata"]["overlap_chars"] :]


def without_space(text: str) -> str:
    return "".join(text.split())


def check_limits(chunk: Record, events: list[dict[str, Any]], policy: Policy) -> None:
    told, text = chunk["metadata"], chunk["text"]
    assert 0 < len(text) == told["text_chars"] <= policy.max_chunk_chars
    assert text == canonical_text(text)
    extra = policy.min_chunk_chars // 7 + 1  # a tiny fragment has no more events
    assert told["event_count"] <= policy.max_chunk_events + extra
    mine = [events[int(name.split(":")[1])] for name in told["event_ids"]]
    assert told["event_ids"] == sorted(set(told["event_ids"]), key=lambda name: int(name.split(":")[1]))
    times = [event["occurred_at_ms"] for event in mine]
    assert (told["occurred_at_start_ms"], told["occurred_at_end_ms"]) == (min(times), max(times))
    assert max(times) - min(times) <= policy.max_window_ms + policy.merge_window_ms
    assert {str(event["pane_id"]) for event in mine} == {told["pane_id"]}
    assert not any(event["is_gap"] for event in mine[1:])
    directions = [event["event_type"] for event in mine]
    if told["direction"] == "mixed_glued":
        assert sorted(directions, reverse=True) == directions and len(set(directions)) == 2
    else:
        assert set(directions) == {{"ingress": "ingress_text", "egress": "egress_output"}[told["direction"]]}
    first, last = (int(told[end]["ordinal"]) for end in ("start_offset", "end_offset"))
    of_pane = [event for event in events[first : last + 1] if event["pane_id"] == mine[0]["pane_id"]]
    stretch = [event for event in of_pane if "text" in event]
    for before, after in pairwise(stretch):  # events without readable text are events too
        assert abs(after["occurred_at_ms"] - before["occurred_at_ms"]) <= policy.hard_gap_ms
    if told["opened_by"] != "limit":
        assert told["overlap_chars"] == 0


def check_overlap(before: Record, after: Record, policy: Policy) -> None:
    told = after["metadata"]
    if told["overlap_chars"]:
        assert told["opened_by"] == "limit"
        directions = (before["metadata"]["direction"], told["direction"])
        assert directions in {("ingress",) * 2, ("egress",) * 2, ("mixed_glued", "egress")}
    repeated = after["text"][: told["overlap_chars"]].rstrip()
    assert len(repeated) <= policy.overlap_chars
    assert before["text"].endswith(repeated)


def check(events: list[dict[str, Any]], policy: Policy) -> Read:
    found = read(events, policy)
    assert not any(left.is_failure for left in found.left_out)
    assert len(set(found.ids)) == len(found.ids)
    for pane, chunks in by_pane(found).items():
        marks = {"ingress_text": "[IN] ", "egress_output": "[OUT] "}
        said = [
            marks[event["event_type"]] + event["text"]
            for event in events
            if event["event_type"] in marks and str(event["pane_id"]) == pane and event["text"].strip()
        ]
        assert without_space("".join(map(own, chunks))) == without_space("".join(said))
        for chunk in chunks:
            check_limits(chunk, events, policy)
        for before, after in pairwise(chunks):
            check_overlap(before, after, policy)
    return found


@settings(max_examples=examples(400))
@given(st.lists(_rows, max_size=40))
def test_any_log_is_cut_by_the_rules_and_loses_nothing(rows: list[Any]) -> None:
    events = events_of(rows)
    assert check(events, SMALL).families == read(events, SMALL).families


@settings(max_examples=examples(100))
@given(
    st.lists(_rows, max_size=40),
    st.sampled_from([Policy(), Policy(max_chunk_chars=40, overlap_chars=0, min_chunk_chars=0)]),
)
def test_any_log_under_other_policies(rows: list[Any], policy: Policy) -> None:
    check(events_of(rows), policy)


@settings(max_examples=examples(200))
@given(st.lists(_rows, max_size=40), st.integers(0, 40))
def test_a_log_that_grows_keeps_all_but_the_end_of_each_pane(rows: list[Any], length: int) -> None:
    """What is appended decides on the last chunk only, so only the last part of a pane becomes another version."""
    events = events_of(rows)
    grown, short = by_pane(read(events, SMALL)), by_pane(read(events[:length], SMALL))
    for pane, chunks in short.items():
        kept = len(chunks) - 1
        assert [chunk["chunk_id"] for chunk in chunks[:kept]] == [chunk["chunk_id"] for chunk in grown[pane][:kept]]


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.sampled_from(["egress_output", "ingress_text"]), _sent), max_size=20))
def test_whatever_a_terminal_was_sent_is_canonical_and_replays(rows: list[Any]) -> None:
    events = events_of([(kind, 1, "".join(sent), 5, False) for kind, sent in rows])
    for text in read(events, SMALL).texts:
        assert text == canonical_text(text)
        assert "\x1b" not in text and len(text) <= SMALL.max_chunk_chars


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(st.sampled_from("oooiimrx"), _sent, st.integers(0, 500)), max_size=30), st.sampled_from([2, 3])
)
def test_any_recording_replays(rows: list[Any], version: int) -> None:
    header = {"version": 2, "width": 9, "height": 9} if version == 2 else {"version": 3, "term": {"cols": 9, "rows": 9}}
    frames, at = [], 0
    for code, sent, step in rows:
        at += step
        data = "80x24" if code == "r" else "".join(sent)
        frames.append(json.dumps([(at if version == 2 else step) / 1000, code, data]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "any.cast")
        path.write_text("\n".join([json.dumps(header), *frames]), encoding="utf-8")
        found = read_file(path, SMALL)
        check_replay(found, SMALL)
    assert not any(left.is_failure for left in found.left_out)
    assert all(len(text) <= SMALL.max_chunk_chars for text in found.texts)
