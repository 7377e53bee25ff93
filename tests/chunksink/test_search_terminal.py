"""What `chunksink search` writes to a terminal, whatever stands in texts and questions."""

import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from chunksink.exits import Exit
from chunksink.output import printable
from tests.chunksink.shell import Shell
from tests.journey.support import command_line, environment
from tests.support.bus import source


@pytest.fixture
def built(quick_shell: Shell) -> Shell:
    return quick_shell.begin("on a terminal", "sync", p1=[source("notes.txt", "a cat in the notes")])


@pytest.mark.parametrize("query", ["\x1b[31mred\x1b[0m cat", "a\u202ecat cat"])
def test_nothing_that_is_shown_moves_the_cursor(built: Shell, query: str) -> None:
    built.commit("p2", source("\x1b[2Jevil.md", f"{query} and more", title="\x1b[31mtitle"))
    assert built("sync").code == Exit.OK
    ended = built("search", "cat", "--context", "1", "--explain", "--facet", "source_type")
    assert "\x1b[2J" not in ended.out
    assert "\x1b[31m" not in ended.out
    assert "\u202e" not in ended.out


@pytest.mark.parametrize(
    "char",
    [
        chr(code)
        for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x61C, 0x9B, 0x2028, 0xFFF9)
    ],
    ids=ascii,
)
def test_what_turns_the_direction_or_moves_the_cursor_is_spelt_out(char: str) -> None:
    assert printable(f"a{char}b") == f"a{ascii(char)[1:-1]}b"


@pytest.mark.parametrize("word", ["x" * 5000, "long words " * 500, "語" * 5000])
def test_what_has_no_end_is_shortened(built: Shell, word: str) -> None:
    giant = source("own.md", f"{word} cat {word}", word, source_type="long", title=word, headings=[word])
    built.commit("p2", giant)
    assert built("sync").code == Exit.OK
    out = built("search", "cat", "--filter", "source_type=long", "--context", "1").out
    assert max(map(len, out.splitlines())) < 900
    assert "own.md#…  (keyword 1)" in out
    assert " cat " in out


def on_a_terminal(folder: Path, *arguments: str, **variables: str) -> str:
    """What a command writes there, to both of its outputs."""
    master, slave = pty.openpty()
    inherited = {name: value for name, value in environment().items() if name != "NO_COLOR"}
    with subprocess.Popen(
        command_line(*arguments), cwd=folder, env=inherited | variables, stdin=slave, stdout=slave, stderr=slave
    ):
        os.close(slave)
        written = b""
        with suppress(OSError):  # which is how a terminal says that nobody is there any more
            while part := os.read(master, 65536):
                written += part
    os.close(master)
    return written.decode()


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_who_wants_no_colours_gets_none(built: Shell, variables: dict[str, str], coloured: bool) -> None:
    asked = ("search", "cat", "--mode", "hybrid")  # which warns, in this index
    written = on_a_terminal(built.folder, *asked, CHUNKSINK_SINKS="fts", **variables)
    assert "a cat in the notes" in written.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert ("\x1b" in written) is coloured
