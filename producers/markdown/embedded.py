"""Data that stands in the text itself: `data:` addresses, as of embedded images, and addresses as long as such.

Nobody reads or follows them, so they go with the marks around them and with the lines that define them. The words
that stand for them stay, and code stays as it was written.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from markdown_it.common.utils import normalizeReference

from chunksink.chunkbus.patterns import for_good
from chunksink.producers.markdown.plain import HOLD_WORDS, BlockToken

MAX_ADDRESS = 4096

# Looking for the end of code spans that have none is bounded, and so is what a bracket holds.
_CODE = r"(?<![\\`])(?P<ticks>`+)(?!`)[\s\S]{0,20000}?(?<!`)(?P=ticks)(?!`)"
_BRACKETS = r"(?<!\\)!?\[(?P<words>[^\[\]]{0,999})(?<!\\)\]"
# `Promise<data:Foo>` holds none, and stands in the text.
_DATA = r"data:(?:[\w.+-]{1,99}/[\w.+-]{1,99})?(?:;[\w.+-]{1,99}(?:=[^\s;,<>]{0,999})?){0,9},"
_DATA_ADDRESS = re.compile(_DATA, re.IGNORECASE)
_TO_ITS_END = for_good(r"[^\s<>()]++|\([^\s<>()]*+\)")
_ADDRESS = (
    rf"(?:<(?:data:[^<>\n]*|[^<>\n]{{{MAX_ADDRESS + 1},}})>"
    rf"|(?:data:|[^\s<>()]{{{MAX_ADDRESS + 1}}}){_TO_ITS_END})"
)
_EMBEDDED = re.compile(
    rf"{_CODE}"
    rf"|{_BRACKETS}\(\s*{_ADDRESS}\s*\)"
    rf"|(?P<before>(?<!\\)\]\(\s*){_ADDRESS}"  # of a link with a title, or with brackets in its words
    rf"|(?<!\\)<{_DATA}[^<>\s]*>"
    r"|(?P<tag><[a-z][^<>]{0,999}?[\s:])(?:srcset|src|href)\s{0,9}=\s{0,9}(?:\"data:[^\"]*\"|'data:[^']*'|data:[^\s\"'<>]*)",
    re.IGNORECASE,
)
_REFERENCE = re.compile(rf"{_CODE}|{_BRACKETS}(?:\[(?P<label>[^\[\]]{{0,999}})\]|(?!\())")


def is_embedded(url: str) -> bool:
    return len(url) > MAX_ADDRESS or url[:5].lower() == "data:"


def drop_embedded(text: str, lines: list[str], tokens: list[BlockToken], definitions: dict[str, Any]) -> None:
    """Takes them out of the lines of a text, with the link definitions, and out of the tokens that were made of it."""
    if not _says_data(text) and not _has_long_line(text):
        return
    names = set(_take_definitions(lines, definitions))
    last: list[int] | None = None
    for token in tokens:
        if not token.map or not (token.type == "html_block" or token.type in HOLD_WORDS):
            continue
        if not _may_hold(token.content) and not (names and "[" in token.content):
            continue
        token.content = _without(token.content, names)
        if token.map != last:  # the cells of a row share their line
            start, end = last = token.map
            lines[start:end] = _without("\n".join(lines[start:end]), names).split("\n")


def _has_long_line(text: str) -> bool:
    begin = 0
    while begin + MAX_ADDRESS < len(text):
        begin = text.rfind("\n", begin, begin + MAX_ADDRESS + 1) + 1
        if not begin:
            return True
    return False


def _take_definitions(lines: list[str], definitions: dict[str, Any]) -> Iterator[str]:
    """The names that mean such an address. Of their lines only titles stay."""
    named = definitions.get("references", {})
    yield from (name for name, definition in named.items() if _holds_data(definition["href"]))
    for definition in chain(named.values(), definitions.get("duplicate_refs", ())):
        if _holds_data(definition["href"]):
            start, end = definition["map"]
            lines[start:end] = [" ".join(definition["title"].split()), *[""] * (end - start - 1)]


def _holds_data(url: str) -> bool:
    """What is longer or says what it is. `[note]: data:loss` is a line that people read."""
    return len(url) > MAX_ADDRESS or _DATA_ADDRESS.match(url) is not None


def _may_hold(text: str) -> bool:
    return len(text) > MAX_ADDRESS or _says_data(text)


def _says_data(text: str) -> bool:
    return b"data:" in text.encode("utf-8", "surrogatepass").lower()  # bytes, since their case takes no time


def _without(text: str, names: set[str]) -> str:
    """The text on as many lines."""
    text = _EMBEDDED.sub(_words_of, text)
    if not names:
        return text
    return _REFERENCE.sub(lambda match: _words_of(match) if _name_of(match) in names else match[0], text)


def _words_of(match: re.Match[str]) -> str:
    if match["ticks"]:
        return match[0]
    found = match.groupdict()
    kept = found["words"] or found.get("before") or found.get("tag") or ""
    return kept + "\n" * (match[0].count("\n") - kept.count("\n"))


def _name_of(match: re.Match[str]) -> str | None:
    """What its author called the address: the words, where nothing else is said."""
    return None if match["ticks"] else normalizeReference(match["label"] or match["words"])
