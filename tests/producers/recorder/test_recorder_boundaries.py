"""Where chunks begin and end: every row of the policy's table, every boundary, overlap and glue."""

from pathlib import Path
from typing import Any

import pytest

from chunksink.producers.recorder import Policy
from tests.producers.recorder.support import check_replay, read_log, said, typed

LINE = "The quick brown fox jumps over the lazy dog, and nothing else happens here."


# --- the policy's table of edge cases -----------------------------------------------------------------------------


def test_a_very_long_burst_is_cut_with_overlap(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(900))
    read = read_log(tmp_path, [said(words, 0)])
    assert len(read.texts) > 4
    assert max(map(len, read.texts)) <= 1800
    assert min(map(len, read.texts[:-1])) > 1790  # no room is wasted
    assert read.texts[0].startswith("[OUT] word0 ") and "[OUT]" not in read.texts[1]
    for before, after, overlap in zip(read.texts, read.texts[1:], read.told("overlap_chars")[1:], strict=False):
        assert 100 < overlap <= 121
        assert before.endswith(after[:overlap].rstrip())
    own = "".join(text[overlap:] for text, overlap in zip(read.texts, read.told("overlap_chars"), strict=True))
    assert own.replace(" ", "") == f"[OUT]{words}".replace(" ", "")
    assert len({(place["ordinal"]) for place in read.told("start_offset")}) == 1
    assert len(set(read.ids)) == len(set(read.told("chunk_id"))) == len(read.texts)
    check_replay(read)


def test_a_tiny_command_is_glued_to_its_output(tmp_path: Path) -> None:
    read = read_log(tmp_path, [typed("ls\r", 0, event_id="a"), said("README.md\r\n", 8000, event_id="b")])
    assert read.texts == ["[IN] ls\n[OUT] README.md"]
    assert read.told("direction") == ["mixed_glued"]
    assert read.told("event_ids") == [["a", "b"]]
    first, last = read.told("start_offset")[0], read.told("end_offset")[0]
    assert (first["ordinal"], last["ordinal"]) == (0, 1)
    assert first["byte_offset"] == 0 < last["byte_offset"]
    check_replay(read)


def test_an_output_after_the_merge_window_is_not_glued(tmp_path: Path) -> None:
    read = read_log(tmp_path, [typed("ls\r", 0), said("README.md", 8001)])
    assert read.told("direction") == ["ingress", "egress"]


def test_mixed_directions_with_delay_are_apart(tmp_path: Path) -> None:
    read = read_log(tmp_path, [typed("make\r", 0), said("done", 30_001)], Policy(merge_window_ms=60_000))
    assert read.texts == ["[IN] make", "[OUT] done"]
    assert read.told("opened_by") == ["start", "time"]


def test_a_gap_starts_a_fresh_chunk(tmp_path: Path) -> None:
    read = read_log(tmp_path, [said("before", 0), said("after", 1, is_gap=True), said("more", 2)])
    assert read.texts == ["[OUT] before", "[OUT] after\n[OUT] more"]
    assert read.told("opened_by") == ["start", "gap"]
    assert read.told("overlap_chars") == [0, 0]


@pytest.mark.parametrize("kind", ["control_marker", "control", "lifecycle_marker", "lifecycle", "gap"])
def test_a_control_marker_parts_outputs(tmp_path: Path, kind: str) -> None:
    marker = {"event_type": kind, "pane_id": 3}  # needs no time
    read = read_log(tmp_path, [said("one", 0), marker, said("two", 1)])
    assert read.texts == ["[OUT] one", "[OUT] two"]
    assert read.told("opened_by") == ["start", kind.removesuffix("_marker")]


def test_the_same_events_give_the_same_chunks(tmp_path: Path) -> None:
    events = [typed("cat log\r", 0), *(said(f"{number}: {LINE}\n", 10 * number) for number in range(200))]
    first, second = read_log(tmp_path, events), read_log(tmp_path, events)
    assert len(first.ids) > 5
    assert first.families == second.families


# --- hard boundaries ----------------------------------------------------------------------------------------------


def test_panes_and_sessions_never_share_a_chunk(tmp_path: Path) -> None:
    events = [
        said("a1", 0, pane=1, session_id="s"),
        said("b1", 1, pane=2, session_id="s"),
        said("a2", 2, pane=1, session_id="s"),
        said("c1", 3, pane=1, session_id="t"),
        said("d1", 4, pane="1"),
    ]
    read = read_log(tmp_path, events)
    assert [(family.source_uri, [record["text"] for record in family.records]) for family in read.families] == [
        ("work.jsonl#session=s&pane=1&part=0", ["[OUT] a1\n[OUT] a2"]),
        ("work.jsonl#session=s&pane=2&part=0", ["[OUT] b1"]),
        ("work.jsonl#session=t&pane=1&part=0", ["[OUT] c1"]),
        ("work.jsonl#pane=1&part=0", ["[OUT] d1"]),
    ]
    check_replay(read)


def test_a_marker_without_a_pane_parts_every_pane_of_its_session(tmp_path: Path) -> None:
    def around(marker: dict[str, Any]) -> list[str]:
        before = [said("a", 0, pane=1, session_id="s"), said("b", 0, pane=2, session_id="t")]
        after = [said("c", 1, pane=1, session_id="s"), said("d", 1, pane=2, session_id="t")]
        return sorted(read_log(tmp_path, [*before, marker, *after]).texts)

    apart = ["[OUT] a", "[OUT] b", "[OUT] c", "[OUT] d"]
    assert around({"event_type": "control"}) == apart
    assert around({"event_type": "control", "session_id": "s"}) == ["[OUT] a", "[OUT] b\n[OUT] d", "[OUT] c"]
    assert around({"event_type": "control_marker", "control_marker_type": "resize"}) == [
        "[OUT] a\n[OUT] c",
        "[OUT] b\n[OUT] d",
    ]


def test_a_jump_in_time_parts_in_both_directions(tmp_path: Path) -> None:
    read = read_log(
        tmp_path, [said("a", 0), said("b", 30_000), said("c", 60_001), said("d", 20_000), said("e", 19_000)]
    )
    assert read.texts == ["[OUT] a\n[OUT] b", "[OUT] c", "[OUT] d\n[OUT] e"]
    windows = zip(read.told("occurred_at_start_ms"), read.told("occurred_at_end_ms"), strict=True)
    assert all(start <= end for start, end in windows)


# --- soft boundaries and overlap ----------------------------------------------------------------------------------


def test_the_cap_is_asked_before_an_event_is_added(tmp_path: Path) -> None:
    read = read_log(tmp_path, [said("a" * 1000, 0), said("b" * (1800 - 1006 - 7), 1), said("c" * 200, 2)])
    assert list(map(len, read.texts)) == [1800, 120 + 1 + 206]
    assert read.texts[1] == "b" * 120 + "\n[OUT] " + "c" * 200
    over = read_log(tmp_path, [said("a" * 1000, 0), said("b" * (1800 - 1006 - 6), 1)])
    assert list(map(len, over.texts)) == [1006, 120 + 1 + 794]


def test_the_overlap_counts_and_yields_to_an_event_that_fits_alone(tmp_path: Path) -> None:
    read = read_log(tmp_path, [said("a" * 900, 0), said("b" * 1744, 1), said("c" * 1794, 2)])
    assert list(map(len, read.texts)) == [906, 1800, 1800]
    assert read.told("overlap_chars") == [0, 50, 0]
    assert read.told("opened_by") == ["start", "limit", "limit"]
    check_replay(read)


def test_a_chunk_has_at_most_so_many_events(tmp_path: Path) -> None:
    read = read_log(tmp_path, [said(f"line {number} of the output", number) for number in range(100)])
    assert read.told("event_count") == [48, 48, 4]
    assert read.texts[1].startswith("e output\n[OUT] line 44 of the output\n")
    check_replay(read)


def test_a_chunk_is_at_most_so_wide(tmp_path: Path) -> None:
    read = read_log(tmp_path, [said(LINE, 20_000 * number) for number in range(9)])
    starts, ends = read.told("occurred_at_start_ms"), read.told("occurred_at_end_ms")
    assert [end - start for start, end in zip(starts, ends, strict=True)] == [120_000, 20_000]


def test_overlap_may_reach_back_over_a_short_chunk(tmp_path: Path) -> None:
    """The end of the chunk before is the end of its text, whatever that itself repeats."""
    policy = Policy(max_window_ms=5000, min_chunk_chars=1)
    read = read_log(tmp_path, [said(f"number {number}", 10_000 * number) for number in range(3)], policy)
    assert read.texts[2] == "[OUT] number 0\n[OUT] number 1\n[OUT] number 2"
    assert read.told("event_count") == [1, 1, 1]
    check_replay(read)


@pytest.mark.parametrize(
    "between",
    [
        [{"event_type": "control", "pane_id": 3}],
        [said("x", 3, is_gap=True)],
        [typed("a command that is long enough to stand by itself, for it has more than 80 characters", 3)],
    ],
)
def test_nothing_is_repeated_across_a_hard_boundary(tmp_path: Path, between: list[dict[str, Any]]) -> None:
    read = read_log(tmp_path, [said(LINE * 20, 0), said(LINE * 20, 1), *between, said(LINE * 20, 4), said("y", 50_000)])
    repeated = [chunk["metadata"]["opened_by"] for chunk in read.chunks if chunk["metadata"]["overlap_chars"]]
    assert set(repeated) == {"limit"}
    for chunk in read.chunks:
        assert (chunk["metadata"]["overlap_chars"] > 0) == (chunk["metadata"]["opened_by"] == "limit")


# --- glue ---------------------------------------------------------------------------------------------------------


def test_a_tiny_end_is_attached_without_what_it_repeated(tmp_path: Path) -> None:
    events = [said(f"output line {number}", number) for number in range(50)]
    read = read_log(tmp_path, events)
    assert read.told("event_count") == [50]
    assert read.texts[0].endswith("[OUT] output line 47\n[OUT] output line 48\n[OUT] output line 49")
    check_replay(read)
    apart = read_log(tmp_path, [*events[:48], said("late", 8048), said("end", 8049)])
    assert apart.told("event_count") == [48, 2]


def test_a_tiny_fragment_before_more_output_is_not_attached(tmp_path: Path) -> None:
    policy = Policy(max_chunk_events=2, min_chunk_chars=40)
    read = read_log(tmp_path, [said("abc", number) for number in range(6)], policy)
    assert read.told("event_count") == [2, 4]


def test_glue_never_passes_the_cap(tmp_path: Path) -> None:
    fits = read_log(tmp_path, [typed("ls", 0), said("b" * (1800 - 8 - 6), 1)])
    assert list(map(len, fits.texts)) == [1800]
    too_long = read_log(tmp_path, [typed("ls", 0), said("b" * (1800 - 8 - 5), 1)])
    assert list(map(len, too_long.texts)) == [7, 1793]
    assert too_long.told("direction") == ["ingress", "egress"]


@pytest.mark.parametrize(
    "between", [{"event_type": "control", "pane_id": 3}, {"event_type": "gap", "pane_id": 3}], ids=["control", "gap"]
)
def test_nothing_is_glued_across_a_marker(tmp_path: Path, between: dict[str, Any]) -> None:
    for events in (
        [typed("ls", 0), between, said("README", 1)],
        [typed("ls", 0), said(" ", 1), between, said("README", 2)],
    ):
        assert read_log(tmp_path, events).told("direction") == ["ingress", "egress"]


def test_glue_passes_the_window_by_the_merge_window_only(tmp_path: Path) -> None:
    def read(wide: int) -> list[str]:
        slowly = [typed("a", 0), typed("b", wide)]
        return read_log(tmp_path, [*slowly, *(said(LINE, wide + 8000 + 24_000 * n) for n in range(6))]).told(
            "direction"
        )

    assert read(0) == ["mixed_glued"]  # 128 seconds
    assert read(1) == ["ingress", "egress"]


def test_only_input_before_output_is_glued(tmp_path: Path) -> None:
    read = read_log(tmp_path, [said("$", 0), typed("ls", 1), said("README", 2), typed("cat README", 3)])
    assert read.texts == ["[OUT] $", "[IN] ls\n[OUT] README", "[IN] cat README"]


def test_a_long_input_is_not_glued(tmp_path: Path) -> None:
    assert read_log(tmp_path, [typed("x" * 74, 0), said("y", 1)]).told("direction") == ["mixed_glued"]
    assert read_log(tmp_path, [typed("x" * 75, 0), said("y", 1)]).told("direction") == ["ingress", "egress"]


def test_output_after_a_glued_chunk_repeats_the_end_of_its_output(tmp_path: Path) -> None:
    read = read_log(tmp_path, [typed("cat x", 0), said("b" * 1500, 1), said("c" * 1500, 2)])
    assert read.told("direction") == ["mixed_glued", "egress"]
    assert read.texts[1].startswith("b" * 120 + "\n[OUT] ccc")
    check_replay(read)


def test_the_tiny_end_of_a_long_input_leaves_its_overlap_behind_when_glued(tmp_path: Path) -> None:
    read = read_log(tmp_path, [typed("a" * 1790, 0), typed("end", 9000), said("y", 9001)])
    assert read.texts[1] == "[IN] end\n[OUT] y"
    assert read.told("overlap_chars") == [0, 0]
    check_replay(read)
