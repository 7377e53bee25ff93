"""Begin, end and text of chunks: every boundary of the policy, overlap and glue."""

import time
from pathlib import Path

import pytest

from chunksink.chunkbus.canonical import canonical_text
from chunksink.ingest.terminal import is_unfinished, readable
from tests.ingest.recorder.support import check_replay, output, read_log, typed

LINE = "The quick brown fox jumps over the lazy dog, and nothing else happens here."


def test_long_burst_is_split_with_overlap(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(900))
    read = read_log(tmp_path, [output(words, 0)])
    assert len(read.texts) > 4
    assert max(map(len, read.texts)) <= 1800
    assert min(map(len, read.texts[:-1])) > 1790
    assert read.texts[0].startswith("[OUT] word0 ") and "[OUT]" not in read.texts[1]
    overlaps = read.metadata("overlap_chars")
    for before, after, overlap in zip(read.texts, read.texts[1:], overlaps[1:], strict=False):
        assert 100 < overlap <= 121
        assert before.endswith(after[:overlap].rstrip())
    own = "".join(text[overlap:] for text, overlap in zip(read.texts, overlaps, strict=True))
    assert own.replace(" ", "") == f"[OUT]{words}".replace(" ", "")
    assert len({place["ordinal"] for place in read.metadata("start_offset")}) == 1
    assert len(set(read.ids)) == len(set(read.metadata("chunk_id"))) == len(read.texts)
    check_replay(read)


def test_tiny_command_is_glued_to_its_output(tmp_path: Path) -> None:
    read = read_log(tmp_path, [typed("ls\r", 0, event_id="a"), output("README.md\r\n", 8000, event_id="b")])
    assert read.texts == ["[IN] ls\n[OUT] README.md"]
    assert read.metadata("direction") == ["mixed_glued"]
    assert read.metadata("event_ids") == [["a", "b"]]
    first, last = read.metadata("start_offset")[0], read.metadata("end_offset")[0]
    assert (first["ordinal"], last["ordinal"]) == (0, 1)
    assert first["byte_offset"] == 0 < last["byte_offset"]
    check_replay(read)
    late = read_log(tmp_path, [typed("ls\r", 0), output("README.md", 8001)])
    assert late.metadata("direction") == ["ingress", "egress"]


def test_mixed_directions_with_delay_are_split(tmp_path: Path) -> None:
    read = read_log(tmp_path, [typed("make\r", 0), output("done", 30_001)], {"MERGE_WINDOW_MS": 60_000})
    assert read.texts == ["[IN] make", "[OUT] done"]
    assert read.metadata("opened_by") == ["start", "time"]


def test_gap_starts_a_fresh_chunk(tmp_path: Path) -> None:
    read = read_log(tmp_path, [output("before", 0), output("after", 1, is_gap=True), output("more", 2)])
    assert read.texts == ["[OUT] before", "[OUT] after\n[OUT] more"]
    assert read.metadata("opened_by") == ["start", "gap"]
    assert read.metadata("overlap_chars") == [0, 0]


@pytest.mark.parametrize("kind", ["control_marker", "lifecycle_marker"])
def test_marker_separates_outputs(tmp_path: Path, kind: str) -> None:
    read = read_log(tmp_path, [output("one", 0), output(None, 1, kind), output("two", 1)])
    assert read.texts == ["[OUT] one", "[OUT] two"]
    assert read.metadata("opened_by") == ["start", kind.removesuffix("_marker")]


def test_panes_and_sessions_never_share_a_chunk(tmp_path: Path) -> None:
    events = [
        output("a1", 0, pane=1, session_id="s"),
        output("b1", 1, pane=2, session_id="s"),
        output("a2", 2, pane=1, session_id="s"),
        output("c1", 3, pane=1, session_id="t"),
        output("d1", 4, pane="1"),
    ]
    read = read_log(tmp_path, events)
    assert read.documents == {
        "work.jsonl#session=s&pane=1&part=0": ["[OUT] a1\n[OUT] a2"],
        "work.jsonl#session=s&pane=2&part=0": ["[OUT] b1"],
        "work.jsonl#session=t&pane=1&part=0": ["[OUT] c1"],
        "work.jsonl#pane=1&part=0": ["[OUT] d1"],
    }
    check_replay(read)


def test_jump_in_time_separates_in_both_directions(tmp_path: Path) -> None:
    times = {"a": 0, "b": 30_000, "c": 60_001, "d": 20_000, "e": 19_000}
    read = read_log(tmp_path, [output(text, at) for text, at in times.items()])
    assert read.texts == ["[OUT] a\n[OUT] b", "[OUT] c", "[OUT] d\n[OUT] e"]
    windows = zip(read.metadata("occurred_at_start_ms"), read.metadata("occurred_at_end_ms"), strict=True)
    assert all(start <= end for start, end in windows)


def test_resize_separates_only_with_a_gap(tmp_path: Path) -> None:
    events = [output("a", 0), output(None, 1, kind="control_marker", control_marker_type="resize"), output("b", 2)]
    assert read_log(tmp_path, events).texts == ["[OUT] a\n[OUT] b"]
    events[1]["is_gap"] = True
    assert read_log(tmp_path, events).texts == ["[OUT] a", "[OUT] b"]


def test_cap_is_checked_before_an_event_is_added(tmp_path: Path) -> None:
    read = read_log(tmp_path, [output("a" * 1000, 0), output("b" * (1800 - 1006 - 7), 1), output("c" * 200, 2)])
    assert list(map(len, read.texts)) == [1800, 120 + 1 + 206]
    assert read.texts[1] == "b" * 120 + "\n[OUT] " + "c" * 200
    over = read_log(tmp_path, [output("a" * 1000, 0), output("b" * (1800 - 1006 - 6), 1)])
    assert list(map(len, over.texts)) == [1006, 120 + 1 + 794]


def test_overlap_yields_to_an_event_that_fits_alone(tmp_path: Path) -> None:
    read = read_log(tmp_path, [output("a" * 900, 0), output("b" * 1744, 1), output("c" * 1794, 2)])
    assert list(map(len, read.texts)) == [906, 1800, 1800]
    assert read.metadata("overlap_chars") == [0, 50, 0]
    assert read.metadata("opened_by") == ["start", "limit", "limit"]
    check_replay(read)


def test_tiny_end_is_attached_without_its_overlap(tmp_path: Path) -> None:
    events = [output(f"output line {number}", number) for number in range(50)]
    read = read_log(tmp_path, events)
    assert read.metadata("event_count") == [50]
    assert read.texts[0].endswith("[OUT] output line 47\n[OUT] output line 48\n[OUT] output line 49")
    check_replay(read)
    late = read_log(tmp_path, [*events[:48], output("late", 8048), output("end", 8049)])
    assert late.metadata("event_count") == [48, 2]


def test_tiny_fragment_before_more_output_is_not_attached(tmp_path: Path) -> None:
    sizes = {"MAX_CHUNK_EVENTS": 2, "MIN_CHUNK_CHARS": 40}
    read = read_log(tmp_path, [output("abc", number) for number in range(6)], sizes)
    assert read.metadata("event_count") == [2, 4]


def test_glue_never_exceeds_the_cap(tmp_path: Path) -> None:
    fits = read_log(tmp_path, [typed("ls", 0), output("b" * (1800 - 8 - 6), 1)])
    assert list(map(len, fits.texts)) == [1800]
    too_long = read_log(tmp_path, [typed("ls", 0), output("b" * (1800 - 8 - 5), 1)])
    assert list(map(len, too_long.texts)) == [7, 1793]
    assert too_long.metadata("direction") == ["ingress", "egress"]


def test_nothing_is_glued_across_a_marker(tmp_path: Path) -> None:
    for blank in ([], [output(" ", 1)]):  # a change of direction before the marker does not hide it
        events = [typed("ls", 0), *blank, output(None, 1, "control_marker"), output("README", 2)]
        assert read_log(tmp_path, events).metadata("direction") == ["ingress", "egress"]


@pytest.mark.parametrize(("excess", "directions"), [(0, ["mixed_glued"]), (1, ["ingress", "egress"])])
def test_glue_exceeds_the_window_by_the_merge_window_only(tmp_path: Path, excess: int, directions: list[str]) -> None:
    outputs = [output(LINE, excess + 8000 + 24_000 * number) for number in range(6)]
    assert read_log(tmp_path, [typed("a", 0), typed("b", excess), *outputs]).metadata("direction") == directions


@pytest.mark.parametrize(("chars", "directions"), [(74, ["mixed_glued"]), (75, ["ingress", "egress"])])
def test_long_input_is_not_glued(tmp_path: Path, chars: int, directions: list[str]) -> None:
    assert read_log(tmp_path, [typed("x" * chars, 0), output("y", 1)]).metadata("direction") == directions


def test_output_after_a_glued_chunk_repeats_the_end_of_its_output(tmp_path: Path) -> None:
    read = read_log(tmp_path, [typed("cat x", 0), output("b" * 1500, 1), output("c" * 1500, 2)])
    assert read.metadata("direction") == ["mixed_glued", "egress"]
    assert read.texts[1].startswith("b" * 120 + "\n[OUT] ccc")
    check_replay(read)


# -- the text of a chunk: what a person would see, with the markers of the policy


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("a\r\nb\rc\nd\r\r\ne", "a\nb\nc\nd\ne"),
        ("a\x0bb\x0cc\x85d\u2028e\u2029f", "a\nb\nc\nd\ne\nf"),
        ("  two  spaces\tand a tab  \t\n\n  next\u00a0 ", "  two  spaces\tand a tab\n\n  next"),
        ("\x1b[1;31mred\x1b[0m \x1b[38;5;12mblue\x1b[m", "red blue"),
        ("\x1b[?2004hon\x1b[?2004l", "on"),
        ("\x1b[2J\x1b[Htop\x1b[10;20Hthere", "topthere"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ends\nkept", "\nkept"),
        ("\x1bPq#0;2;0\x1b\\after", "after"),
        ("\x1bPnever ends", "never ends"),
        ("\x1b(Bplain\x1b=\x1b>\x1b7\x1b8", "plain"),
        ("\x9b31mred\x9d0;title\x9c", "red"),
        ("cut off \x1b[38;5", "cut off"),
        ("lone \x1b", "lone"),
        ("lss\b \b -l", "ls -l"),
        ("ac\bbc\b", "abc"),
        ("N\bNA\bA_\bM", "NAM"),
        ("one\n\b\btwo", "one\ntwo"),
        ("bell\x07 null\x00 del\x7f \ud800\ufeff", "bell null del"),
        ("\x1b[0m\r\n \x1b[K", ""),
    ],
)
def test_readable(sent: str, expected: str) -> None:
    assert readable(sent) == expected
    assert readable(expected) == expected
    assert canonical_text("x" + expected) == "x" + expected


@pytest.mark.parametrize(
    "hostile", ["\x1b]", "\x1bP", "\x1b[", "\x1b", "\x1b[1", " " * 50 + "x", "a\b", "\r", "\x1b]a"]
)
def test_no_text_takes_quadratic_time(hostile: str) -> None:
    began = time.process_time()
    readable(hostile * (2_000_000 // len(hostile)))
    assert time.process_time() - began < 60


@pytest.mark.parametrize("text", ["\x1b", "a\x1b[", "a\x1b[38;5", "\x1b[?"])
def test_unfinished_sequences_are_recognised(text: str) -> None:
    assert is_unfinished(text)
    assert not is_unfinished(text + "m.")


def test_every_event_begins_a_line_with_its_marker(tmp_path: Path) -> None:
    events = [typed("cat <<E\nbody\nE\n", 0), output("body", 1), output("\n  indented\n\nlast  \n\n", 2)]
    assert read_log(tmp_path, events).texts == ["[IN] cat <<E\nbody\nE\n[OUT] body\n[OUT]\n  indented\n\nlast"]


def test_events_without_text_separate_directions_and_add_nothing(tmp_path: Path) -> None:
    events = [output("one", 0), typed("\r", 1), output("two", 2), output("\x1b[2J", 3), output("three", 4)]
    read = read_log(tmp_path, events)
    assert (read.texts, read.notices) == (["[OUT] one", "[OUT] two\n[OUT] three"], [])


def test_long_event_is_cut_at_line_ends(tmp_path: Path) -> None:
    lines = [f"{number:03} " + "x" * 90 for number in range(60)]
    read = read_log(tmp_path, [output("\n".join(lines), 0)])
    assert len(read.texts) == 4
    for text, overlap in zip(read.texts, read.metadata("overlap_chars"), strict=True):
        assert set(text[overlap:].removeprefix("[OUT] ").split("\n")) <= set(lines)


@pytest.mark.parametrize("space", [" " * 119, " " * 121, " " * 5000, "\n" * 121, "\n" * 5000])
def test_white_space_where_an_event_is_cut_is_not_repeated(tmp_path: Path, space: str) -> None:
    read = read_log(tmp_path, [output("a" * 1790 + space + "b" * 100, 0), output("c", 1)])
    assert read.texts[0] == "[OUT] " + "a" * 1790
    assert read.texts[1].endswith("b" * 100 + "\n[OUT] c")
    assert read.texts[1].startswith("b" if len(space) > 120 else "a")
    check_replay(read)
