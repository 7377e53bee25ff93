"""How commands print: one JSON document or lines of text, and the same words for counts, sizes and long lists."""

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from chunksink import logs

# Soft hyphen, zero width space, non-joiner and joiner, word joiner: invisible, and needed by scripts and emoji.
_HARMLESS = frozenset("\u00ad\u200b\u200c\u200d\u2060")
_LABEL_WIDTH = 11
_GAP = re.compile(r" {2,}(?=\S)")
_DEEPEST_INDENT = 32
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


def wrapped(text: str, width: int | None) -> str:
    """Breaks long lines between words. Two or more spaces begin a column.

    Continuation lines are aligned with the last column that begins within `_DEEPEST_INDENT` characters. In a line
    without such a column they are indented two spaces more than the line.
    """
    return text if width is None else "\n".join(_wrapped_line(line, width) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    gaps = [gap.end() for gap in _GAP.finditer(line) if gap.end() <= _DEEPEST_INDENT]
    indent = gaps[-1] if gaps else 0
    hanging = " " * (indent if line[:indent].strip() else indent + 2)
    return textwrap.fill(line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)


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
        text = _SURROGATE.sub(lambda found: "\\" + logs.encodable(found[0]), text)
    click.echo(text)


def labelled(label: str, value: str) -> str:
    return f"{label:<{_LABEL_WIDTH}} {value}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def counts(numbers: Mapping[str, int], noun: str = "") -> str:
    """`3 sources added, 1 source changed`, without what is 0."""
    return ", ".join(
        f"{counted(number, noun) if noun else f'{number:,}'} {what}" for what, number in numbers.items() if number
    )


def some(names: Sequence[str], limit: int | None, *, total: int | None = None) -> str:
    """The first `limit` names on one line, and how many more there are. None shows all.

    `total` is the number of all names if `names` has only some of them.
    """
    return " and ".join([", ".join(names[:limit]), *more(len(names) if total is None else total, limit)])


def first(lines: Sequence[str], limit: int | None, rest: str = "", *, total: int | None = None) -> Iterator[str]:
    """As `some`, with one name per line."""
    yield from lines[:limit]
    for line in more(len(lines) if total is None else total, limit, rest):
        yield Note(f"... and {line}")


def more(number: int, limit: int | None, rest: str = "") -> list[str]:
    """`12 more`, if `limit` is less than `number`."""
    return [] if limit is None or number <= limit else [f"{number - limit:,} more{rest}"]


def sized(size: float) -> str:
    """Bytes as people read them."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"


def named(source: str) -> str:
    """The name of a source, safe for a terminal. Documents of other programs may have none."""
    return printable(source) or "(documents that name no source)"


def printable(text: str) -> str:
    """A foreign name, safe for a terminal: characters that move the cursor or change the text direction are escaped."""
    return "".join(char if char.isprintable() or char in _HARMLESS else repr(char)[1:-1] for char in text)
