"""The context of a text: its title and headings, which the encoder reads before the text.

A vector depends on the context, so the cache has its hash beside that of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

EmbedContext = Literal["title, headings", ""]
"""What precedes a text in the encoder's input."""
CONTEXT_BYTES = 16
"""Length of the hash of a context."""
_MOST_CHARACTERS = 200


def context_of(title: str | None, headings: Sequence[str]) -> str:
    """A line for the title and one for each heading, outermost first. A first heading that repeats the title is left
    out. If all are longer than 200 characters, the innermost ones are kept, and the last of these is cut after a word.
    """
    lines = [*([title] if title and title not in headings[:1] else []), *headings]
    kept: list[str] = []
    room = _MOST_CHARACTERS
    for line in reversed(lines):
        kept.append(line if len(line) <= room else line[: max(0, room + 1)].rpartition(" ")[0])
        room -= len(line) + 1
    return "\n".join(filter(None, reversed(kept)))


def context_hash(context: str) -> bytes:
    """16 bytes; none for an empty context."""
    return sha256(context.encode()).digest()[:CONTEXT_BYTES] if context else b""


def before(text: str, context: str) -> str:
    """The context as it precedes the text. Its last line is left out if the text begins with it, as a heading."""
    outer, _, last = context.rpartition("\n")
    begins_with_it = text.lstrip().partition("\n")[0].strip("# ") == last
    shown = outer if begins_with_it else context
    return f"{shown}\n\n" if shown else ""
