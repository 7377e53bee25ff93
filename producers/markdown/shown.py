"""The text of a passage as its chunk shows it: its slice of the document, moved to the left margin as a whole, below
the header of the table that it is a later part of.

The contract strips white space from the beginning of a chunk. Of indented code, of a fence or a table in a list and
of nested items that would be the first line's indentation alone, and they would mean something else.
"""

import re
from os.path import commonprefix
from typing import NamedTuple

from chunksink.producers.markdown.passages import Passage

_INDENTATION = re.compile(r"^[ \t]*(?=\S)", re.MULTILINE)


class Shown(NamedTuple):
    """`start` and `end` are the document's first and last visible characters of it."""

    text: str
    overlap_chars: int
    start: int
    end: int


def shown_of(text: str, passage: Passage) -> Shown:
    """Code or a table that begins is moved by itself: what is repeated above it has a margin of its own."""
    start, own_start, end = passage.start, passage.own_start, passage.end
    begin = _line_start(text, own_start if passage.part == 0 and passage.kind.is_literal else start)
    above, moved = text[start:begin], text[begin:end]
    margin = _margin(moved)
    whole = above + _without(margin, moved)
    overlap = above + _without(margin, text[begin:own_start]) if own_start > start else ""
    stripped = len(whole) - len(whole.lstrip())
    raw = text[start:end]
    header = passage.header
    return Shown(
        header + whole.strip(),
        len(header) + max(0, len(overlap) - stripped),
        start + len(raw) - len(raw.lstrip()),
        start + len(raw.rstrip()),
    )


def _line_start(text: str, at: int) -> int:
    """Where the line begins of which only indentation lies before; else the same place."""
    begin = at
    while begin and text[begin - 1] in " \t":
        begin -= 1
    return begin if not begin or text[begin - 1] == "\n" else at


def _margin(lines: str) -> str:
    """What all of them begin with; nearly always the first begins with a word."""
    if lines.lstrip("\n")[:1] not in (" ", "\t"):
        return ""
    margin: str = commonprefix(_INDENTATION.findall(lines))  # noqa: RUF071 (they are no paths)
    return margin


def _without(margin: str, lines: str) -> str:
    return lines.removeprefix(margin).replace(f"\n{margin}", "\n") if margin else lines
