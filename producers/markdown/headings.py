"""A heading as the chunks below it carry it: its words without attributes, not too many, and its anchor."""

import re

from chunksink.chunkbus.patterns import for_good

MAX_CARRIED = 1000
"""Characters of a title, heading or language: every chunk carries it."""

_ITEM = r"""(?:[#.][\w:.-]+|[\w:-]+=(?:"[^"{}]*"|'[^'{}]*'|[^\s{}"']+))"""
_MORE_ITEMS = for_good(rf"[ \t]+{_ITEM}")
# As Pandoc, Docusaurus, Hugo and kramdown write them: `{#usage .wide key="value"}`, `{: #usage}`.
_ATTRIBUTES = re.compile(rf"(?<!\\)\{{:?[ \t]*(?=[#.])({_ITEM}{_MORE_ITEMS})[ \t]*\}}\s*\Z")
# As MDX writes an id, in a comment: `{/*usage*/}`.
_MDX_ID = re.compile(r"(?<!\\)\{/\*[ \t]*([^\s*{}]{1,200})[ \t]*\*/\}\s*\Z")
_VERSION = re.compile(r"\W*(?:v(?:ersion)?\W*)?\d+(?:\.\d+)+", re.I)
_ANCHOR = re.compile(r"(?:^|(?<=[ \t]))#([\w:.-]{1,200})(?=[ \t]|$)")


def split_heading(content: str) -> tuple[str, str]:
    """The inline Markdown of a heading without the attributes at its end, and the anchor among these, if any."""
    found = _ATTRIBUTES.search(content)
    anchor = _ANCHOR.search(found[1]) if found else None
    if found is None:
        found = anchor = _MDX_ID.search(content)
    if found is None:
        return content, ""
    words = content[: found.start()].rstrip()
    if not words:  # they are its words, as those of a template's `{#if}`
        return content, ""
    open_words = words.rstrip("#")  # `## Usage ## {#usage}`, but not `## C# {#c-sharp}`
    if not open_words or open_words[-1] in " \t":
        words = open_words.rstrip()
    return words, anchor[1] if anchor else ""


def names_a_version(title: str) -> bool:
    """As in a changelog, whose first heading is the last of many."""
    return _VERSION.match(title) is not None


def carried(text: str) -> str:
    """The text, or as many of its words as every chunk can carry; all of it stands where it was written."""
    if len(text) <= MAX_CARRIED:
        return text
    head = text[: MAX_CARRIED - 1]
    return (head.rpartition(" ")[0] or head) + "…"
