"""The text of a chunk: what a person would have read, with the markers of the policy."""

import time
from pathlib import Path

import pytest

from chunksink.chunkbus.canonical import canonical_text
from chunksink.ingest.terminal import is_unfinished, readable
from tests.ingest.recorder.support import check_replay, output, read_log, typed


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
        ("10%\r55%\r100%\r\n", "10%\n55%\n100%"),
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
