"""What a parsed document says in fields that are not read, so that no words vanish without a word.

Another form of what is read, as the HTML of a block or the text of all blocks, is not meant, nor is a single word of a
field: two or more are, which stand nowhere in the text; under the names of places, styles and the like a sentence.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from html import unescape
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.producers.parsed.blocks import IMAGES, NO_TEXT, TABLES, is_text
from chunksink.producers.records.sayings import sayings, words_of

MOST_PLACES = 100
"""That are looked for: who has so many is told enough."""
_FEWEST_WORDS = 2
_LONG = 12
"""Letters, which are hardly found within other words."""
_TAG = re.compile(r"</?[A-Za-z!][^<>\n]*>")
_SIGNS = re.compile(r"[\W_]+")
_READ_OF_DOCUMENT = {"source", "doc_id", "blocks", "tables", "images", "metadata"}
_READ_OF_DOCUMENT |= {"content_hash", "provenance", "tenant_id", "schema_version"}
_QUIET = NO_TEXT | {"style", "styles", "font", "fonts", "class", "classes", "color", "colour", "format", "label"}
_QUIET |= {"role", "kind", "category", "tag", "tags", "mime_type"}
_QUIET |= {"path", "file", "filename", "url", "href", "src", "ref", "parent"}


def find_unread(record: Record, text: str) -> list[str]:
    """Where it stands, as `blocks[3].footnote`; the first places, if there are many. `text` is what was made of the
    document."""
    said: _Said | None = None
    found: list[str] = []
    for place, words, fewest in _candidates(record):
        said = said or _Said(text)
        if said.lacks(words, fewest):
            found.append(place)
            if len(found) == MOST_PLACES:
                break
    return found


class _Said:
    """What a text says, whatever its signs and spaces are. What is looked for mostly comes in the text's order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._letters = _letters(text)
        self._at = self._word_at = 0

    def lacks(self, words: Iterable[str], fewest: int) -> bool:
        """Whether so many of these stand nowhere in it."""
        missing = 0
        for some in words:
            if not self._holds(some):
                missing += words_of(some, fewest)
                if missing >= fewest:
                    return True
        return False

    def _holds(self, words: str) -> bool:
        letters = _letters(words)
        if len(letters) < _LONG and letters.isascii():  # `art` is no part of a party
            found = self._words.find(f" {_spaced(words)} ", self._word_at)
            if found < 0:
                return f" {_spaced(words)} " in self._words
            self._word_at = found
            return True
        found = self._letters.find(letters, self._at)
        if found < 0:
            return letters in self._letters
        self._at = found
        return True

    @cached_property
    def _words(self) -> str:
        return f" {_spaced(self._text)} "


def _candidates(record: Record) -> Iterator[tuple[str, list[str], int]]:
    """Places, what is said there, and how many words of it are enough to be missed."""
    about = record.get("metadata")
    for name, value in record.items():
        found: list[Any]
        if name == "text":
            found = value.replace("-\n", "").splitlines() if record.get("blocks") and isinstance(value, str) else []
        elif name == "title":
            found = [value] if isinstance(about, dict) and about.get(name) not in (None, value) else []
        else:
            found = [] if name in _READ_OF_DOCUMENT else [{name: value}]
        if found := list(sayings(found, 1, _QUIET)):
            yield name, found, 1 if name in ("text", "title") else _FEWEST_WORDS
    for number, block in enumerate(record.get("blocks") or ()):
        # Tables and images keep their other fields.
        if isinstance(block, dict) and str(block.get("type")).lower() not in (*TABLES, *IMAGES):
            yield from _beside(block, f"blocks[{number}]")


def _beside(block: Record, place: str) -> Iterator[tuple[str, list[str], int]]:
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
        if value is text or value is items:
            continue
        if words := list(sayings({name: value}, 1, _QUIET)):
            own = own or _Said(text)
            if own.lacks(words, _FEWEST_WORDS):
                yield f"{place}.{name}", words, _FEWEST_WORDS


def _letters(text: str) -> str:
    return _SIGNS.sub("", unescape(_TAG.sub("", text))).casefold()


def _spaced(text: str) -> str:
    return _SIGNS.sub(" ", unescape(_TAG.sub("", text))).casefold().strip()
