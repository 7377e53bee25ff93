"""What a parsed document says in fields that are not read, so that no sentence vanishes without a word.

Another form of what is read, as the HTML of a block, is not meant, nor names, styles and places: what has four words
or more and stands nowhere in the text is.
"""

import re
from collections.abc import Iterator
from html import unescape

from chunkbus.chunk import Record
from producers.parsed.blocks import IMAGES, NO_TEXT, TABLES, is_text
from producers.records.sentences import sentences

_TAG = re.compile(r"<[^<>]*>")
_SIGNS = re.compile(r"[\W_]+")
_READ_OF_DOCUMENT = frozenset(
    (
        *("source", "doc_id", "blocks", "tables", "images", "metadata", "title", "text"),
        *("content_hash", "provenance", "tenant_id", "schema_version"),
    )
)


def find_unread(record: Record, text: str) -> list[str]:
    """Where it stands, as `blocks[3].footnote`. `text` is what was made of the document."""
    places = list(_candidates(record))
    if not places:
        return []
    letters = _letters(text)
    return [place for place, found in places if not all(_letters(said) in letters for said in found)]


def _candidates(record: Record) -> Iterator[tuple[str, list[str]]]:
    for name, value in record.items():
        if name not in _READ_OF_DOCUMENT and (found := list(sentences(value))):
            yield name, found
    for number, block in enumerate(record.get("blocks") or ()):
        # Tables and images keep their other fields.
        if isinstance(block, dict) and str(block.get("type")).lower() not in (*TABLES, *IMAGES):
            yield from _beside(block, f"blocks[{number}]")


def _beside(block: Record, place: str) -> Iterator[tuple[str, list[str]]]:
    text = next((block[name] for name in ("text", "content") if is_text(block.get(name))), "")
    items = block.get("items")
    if isinstance(items, list):
        for number, entry in enumerate(items):
            if isinstance(entry, dict):
                yield from _beside(entry, f"{place}.items[{number}]")
    elif not text:
        return  # it is told as a block without text
    for name, value in block.items():
        if name in NO_TEXT or value is text or value is items:
            continue
        if found := [said for said in sentences(value) if _letters(said) not in _letters(text)]:
            yield f"{place}.{name}", found


def _letters(text: str) -> str:
    return _SIGNS.sub("", unescape(_TAG.sub("", text))).casefold()
