"""The text of a chunk: what a person would have read, with the markers of the policy."""

import time
from pathlib import Path

import pytest

from chunksink.chunkbus.canonical import canonical_text
from chunksink.producers.recorder.ends import find_end, find_start
from chunksink.producers.terminal import is_unfinished, readable
from tests.producers.recorder.support import check_replay, read_log, said, typed


@pytest.mark.parametrize(
    ("sent", "read"),
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
        ("10%\r55%\r100%\r\n", "10%\n55%\n100%"),
        ("\x1b[0m\r\n \x1b[K", ""),
    ],
)
def test_readable(sent: str, read: str) -> None:
    assert readable(sent) == read
    assert readable(read) == read
    assert canonical_text("x" + read) == "x" + read


@pytest.mark.parametrize(
    "hostile", ["\x1b]", "\x1bP", "\x1b[", "\x1b", "\x1b[1", " " * 50 + "x", "a\b", "\r", "\x1b]a"]
)
def test_no_text_takes_long(hostile: str) -> None:
    text = hostile * (2_000_000 // len(hostile))
    began = time.process_time()
    readable(text)
    assert time.process_time() - began < 60  # quadratic would be hours


@pytest.mark.parametrize("text", ["\x1b", "a\x1b[", "a\x1b[38;5", "\x1b[?"])
def test_unfinished_sequences_are_seen(text: str) -> None:
    assert is_unfinished(text)
    assert not is_unfinished(text + "m.")


def test_every_event_begins_a_line_with_its_marker(tmp_path: Path) -> None:
    read = read_log(tmp_path, [typed("cat <<E\nbody\nE\n", 0), said("body", 1), said("\n  indented\n\nlast  \n\n", 2)])
    assert read.texts == ["[IN] cat <<E\nbody\nE\n[OUT] body\n[OUT]\n  indented\n\nlast"]


def test_events_without_text_part_directions_and_are_told(tmp_path: Path) -> None:
    read = read_log(tmp_path, [said("one", 0), typed("\r", 1), said("two", 2), said("\x1b[2J", 3), said("three", 4)])
    assert read.texts == ["[OUT] one", "[OUT] two\n[OUT] three"]
    assert [(left.line, left.code, left.is_failure) for left in read.left_out] == [(2, "EVENT_WITHOUT_TEXT", False)]
    assert read.left_out[0].reason.startswith("2 events of pane 3")


@pytest.mark.parametrize(
    "character",
    ["e\u0301", "\U0001f469\u200d\U0001f4bb", "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea", "\u0915\u093f"],
)
def test_no_character_is_cut(character: str) -> None:
    text = "x" * 10 + character + "y" * 10
    inside = range(11, 10 + len(character))
    for limit in range(1, len(text)):
        assert find_end(text, 0, limit) not in inside
        assert find_end(text, 0, limit) <= limit
        assert find_start(text, limit) not in inside


def test_a_text_of_marks_alone_is_cut_all_the_same() -> None:
    assert find_end("\u0301" * 500, 0, 200) == 200


def test_a_line_end_in_the_second_half_is_preferred() -> None:
    text = "a" * 60 + "\n" + "b" * 60
    assert find_end(text, 0, 100) == 60
    assert find_end(text, 0, 60) == 60
    assert find_end("a" * 40 + "\n" + "b" * 80, 0, 100) == 100


def test_a_long_event_is_cut_at_line_ends(tmp_path: Path) -> None:
    lines = [f"{number:03} " + "x" * 90 for number in range(60)]
    read = read_log(tmp_path, [said("\n".join(lines), 0)])
    assert len(read.texts) == 4
    for text, overlap in zip(read.texts, read.told("overlap_chars"), strict=True):
        own = text[overlap:].removeprefix("[OUT] ").split("\n")
        assert all(line in lines for line in own)


@pytest.mark.parametrize("space", [" " * 119, " " * 121, " " * 5000, "\n" * 121, "\n" * 5000])
def test_much_white_space_where_an_event_is_cut_is_not_repeated(tmp_path: Path, space: str) -> None:
    read = read_log(tmp_path, [said("a" * 1790 + space + "b" * 100, 0), said("c", 1)])
    assert read.texts[0] == "[OUT] " + "a" * 1790
    assert read.texts[1].endswith("b" * 100 + "\n[OUT] c")
    assert read.texts[1].startswith("b" if len(space) > 120 else "a")
    check_replay(read)
