"""How commands print: one JSON document or lines of text."""

import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from chunksink.chunkbus.wording import encodable, more
from chunksink.command_line import logs

_LABEL_WIDTH = 11
_GAP = re.compile(r" {2,}(?=\S)")
_DEEPEST_INDENT = 32
_LETTERS = (
    "\u0e01-\u0e3f\u0e45-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u312f\u31f0-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
"""Of scripts without spaces between words. A line may end after each of them."""
_OPENING = "「『（［｛【〈《〔“\u0e40-\u0e44"
"""A line does not end with these brackets and Thai vowels."""
_PIECE = re.compile(rf"\s*(?:[{_OPENING}]*(?:[{_LETTERS}][^\w\s{_OPENING}]*|[^\s{_LETTERS}{_OPENING}]+)|[{_OPENING}]+)")
"""A word, or a letter of such a script with its marks and punctuation; with the spaces before it."""
_WORD = re.compile(r"\s*\S+")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Note(str):
    """A line for standard error, so that a pipe gets only the result."""

    __slots__ = ()


def echo(lines: Iterable[str]) -> None:
    for line in lines:
        if isinstance(line, Note):
            note(line)
        else:
            click.echo(wrapped(line, columns()))


def note(line: str, *, severity: str = "info", event: str = "note", **style: Any) -> None:
    """Print a line on standard error, in the form of `--log-format`."""
    if logs.is_json():
        logs.write(line, severity=severity, event=event)
    else:
        click.secho(wrapped(line, columns(is_error=True)), err=True, **style)


def columns(*, is_error: bool = False) -> int | None:
    """The width of the terminal; None without one, since programs expect whole lines."""
    stream = sys.stderr if is_error else sys.stdout
    return shutil.get_terminal_size().columns if stream.isatty() else None


def wrapped(text: str, width: int | None, *, prose: bool = False) -> str:
    """Breaks long lines between words. Two or more spaces begin a column. `prose` has no file names or addresses, so it
    is also broken between letters of scripts without spaces.

    Continuation lines are aligned with the last column that begins within `_DEEPEST_INDENT` characters. In a line
    without such a column they are indented two spaces more than the line.
    """
    unbroken = _PIECE if prose else _WORD
    return text if width is None else "\n".join(_wrapped_line(line, width, unbroken) for line in text.split("\n"))


def _wrapped_line(line: str, width: int, unbroken: re.Pattern[str]) -> str:
    line = line.rstrip()  # for many spaces at the end, the patterns would take quadratic time
    gaps = [gap.end() for gap in _GAP.finditer(line) if gap.end() <= _DEEPEST_INDENT]
    indent = gaps[-1] if gaps else 0
    hanging = " " * (indent if line[:indent].strip() else indent + 2)
    lines = [""]
    for piece in unbroken.findall(line):
        if lines[-1].strip() and _columns(lines[-1] + piece) > width:
            lines.append(hanging + piece.lstrip())
        else:
            lines[-1] += piece
    return "\n".join(lines)


def _columns(text: str) -> int:
    """How wide a terminal shows the text: East Asian characters take two columns; marks and placeholders take none."""
    if text.isascii():
        return len(text)
    shown = (char for char in text if unicodedata.category(char) not in ("Mn", "Me", "Cf", "Cn"))
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in shown)


def show(as_json: bool, document: Any, lines: Iterable[str]) -> None:
    """The result of a command: the document with --json, else the lines."""
    if as_json:
        print_json(document)
    else:
        echo(lines)


def print_json(document: Any) -> None:
    import orjson

    try:
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONEncodeError:  # a file name that is not UTF-8
        text = json.dumps(document, indent=2, ensure_ascii=False)
        text = _SURROGATE.sub(lambda found: "\\" + encodable(found[0]), text)
    click.echo(text)


def labelled(label: str, value: str) -> str:
    return f"{label:<{_LABEL_WIDTH}} {value}"


def first(lines: Sequence[str], limit: int | None, rest: str = "", *, total: int | None = None) -> Iterator[str]:
    """The first `limit` lines, then a note with the number of the others. `total` is the number of all, if `lines` has
    only some."""
    yield from lines[:limit]
    for line in more(len(lines) if total is None else total, limit, rest):
        yield Note(f"... and {line}")
