"""The context of a text: its title and heading, which the encoder reads before the text.

A vector depends on the context, so its key in the cache includes a hash of the context.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

EmbedContext = Literal["title, headings", ""]
"""What precedes a text in the encoder's input."""
CONTEXT_BYTES = 16
"""Length of the hash of a context."""
_MAX_CHARACTERS = 100


def context_of(title: str | None, headings: Sequence[str]) -> str:
    """A line for the title and one for the innermost heading, each at most 100 characters, cut after a word. Outer
    headings would make all sections of a page alike."""
    lines = dict.fromkeys([title or "", *headings[-1:]])
    return "\n".join(filter(None, (_cut(line) for line in lines)))


def _cut(line: str) -> str:
    if len(line) <= _MAX_CHARACTERS:
        return line
    start = line[:_MAX_CHARACTERS]
    return start.rpartition(" ")[0] or start


def context_hash(context: str) -> bytes:
    """16 bytes, or `b""` for an empty context."""
    return sha256(context.encode()).digest()[:CONTEXT_BYTES] if context else b""


def context_before(text: str, context: str) -> str:
    """The context as it precedes the text. The context's last line is left out if the text begins with the same line,
    with or without heading marks. A line that `context_of` has cut is not recognised."""
    outer, _, last = context.rpartition("\n")
    first = text.lstrip().partition("\n")[0].lstrip("# ").rstrip()
    is_heading = last in (first, first.rstrip("# "))  # a heading may end with its marks, or with a name such as C#
    shown = outer if is_heading else context
    return f"{shown}\n\n" if shown else ""
