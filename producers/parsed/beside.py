"""What a parsed document says in fields that are not read, so that no words vanish without a word.

Another form of what is read, as the HTML of a block or the text of all blocks, is not meant, nor is what stands under
the names of places, styles and the like: two words or more are, which stand nowhere in the text.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

from chunkbus.chunk import Record
from producers.parsed.blocks import IMAGES, NO_TEXT, TABLES, is_text
from producers.records.sayings import sayings

MOST_PLACES = 100
"""That are looked for: who has so many is told enough."""
_FEWEST_WORDS = 2
_TAG = re.compile(r"</?[A-Za-z!][^<>\n]*>")
_SIGNS = re.compile(r"[\W_]+")
_READ_OF_DOCUMENT = {"source", "doc_id", "blocks", "tables", "images", "metadata", "title"}
_READ_OF_DOCUMENT |= {"content_hash", "provenance", "tenant_id", "schema_version"}
_SAYS_NOTHING = NO_TEXT | {"style", "styles", "font", "fonts", "class", "classes", "color", "colour", "format", "label"}
_SAYS_NOTHING |= {"role", "kind", "category", "tag", "tags", "mime_type"}
_SAYS_NOTHING |= {"path", "file", "filename", "url", "href", "src", "ref", "parent"}


def find_unread(record: Record, text: str) -> list[str]:
    """Where it stands, as `blocks[3].footnote`; the first places, if there are many. `text` is what was made of the
    document."""
    said: _Said | None = None
    found: list[str] = []
    for place, words in _candidates(record):
        said = said or _Said(text)
        if not all(map(said.holds, words)):
            found.append(place)
            if len(found) == MOST_PLACES:
                break
    return found


class _Said:
    """What a text says, whatever its signs and spaces are. What is looked for mostly comes in the text's order."""

    def __init__(self, text: str) -> None:
        self._letters = _letters(text)
        self._at = 0

    def holds(self, words: str) -> bool:
        letters = _letters(words)
        found = self._letters.find(letters, self._at)
        if found < 0:
            return letters in self._letters
        self._at = found
        return True


def _candidates(record: Record) -> Iterator[tuple[str, list[str]]]:
    for name, value in record.items():
        if name == "text":
            lines = value.splitlines() if record.get("blocks") and isinstance(value, str) else []
            found = list(sayings(lines, _FEWEST_WORDS))
        else:
            found = [] if name in _READ_OF_DOCUMENT else list(_said_in(value))
        if found:
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
    own: _Said | None = None
    for name, value in block.items():
        if name.lower() in _SAYS_NOTHING or value is text or value is items:
            continue
        if words := list(_said_in(value)):
            own = own or _Said(text)
            if found := [said for said in words if not own.holds(said)]:
                yield f"{place}.{name}", found


def _said_in(value: Any) -> Iterator[str]:
    return sayings(value, _FEWEST_WORDS, _SAYS_NOTHING)


def _letters(text: str) -> str:
    return _SIGNS.sub("", unescape(_TAG.sub("", text))).casefold()
