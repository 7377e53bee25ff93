"""What commands print in the same way: JSON documents and counted nouns."""

from typing import Any

import click


def print_json(document: Any) -> None:
    import orjson

    click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sized(size: float) -> str:
    """Bytes as people read them."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"


def printable(text: str) -> str:
    """A name from somewhere else on one line of a terminal: what would move the cursor is spelt out."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
