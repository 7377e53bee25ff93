"""What commands print in the same way: JSON documents, counted nouns, some of many names."""

from collections.abc import Sequence
from typing import Any

import click

# Soft hyphen, zero width space, non-joiner and joiner, word joiner: nobody sees them, and scripts and emoji need them.
_HARMLESS = frozenset("\u00ad\u200b\u200c\u200d\u2060")


def print_json(document: Any) -> None:
    import orjson

    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def some(names: Sequence[str], most: int | None) -> str:
    """The first of them, and whether there are more; without `most` all."""
    shown = names[:most]
    return ", ".join(shown) + (", ..." if len(shown) < len(names) else "")


def sized(size: float) -> str:
    """Bytes as people read them."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"


def printable(text: str) -> str:
    """A name from somewhere else on one line of a terminal: what would move the cursor, or turn the direction of what
    follows, is spelt out."""
    return "".join(char if char.isprintable() or char in _HARMLESS else repr(char)[1:-1] for char in text)
