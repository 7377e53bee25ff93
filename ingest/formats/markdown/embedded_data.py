"""Removes what is not text: `data:` addresses (embedded images), other very long addresses, and ruby readings."""

import re
from itertools import chain

from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token

from chunksink.chunkbus.patterns import possessive
from chunksink.ingest.formats.markdown.addresses import MAX_ADDRESS
from chunksink.ingest.formats.markdown.normalise import one_line
from chunksink.ingest.formats.markdown.parser import Definitions

# Bounded, because searching for missing ends of code spans and brackets is quadratic.
_CODE = r"(?<![\\`])(?P<ticks>`+)(?!`)[\s\S]{0,20000}?(?<!`)(?P=ticks)(?!`)"
_BRACKETS = r"(?<!\\)!?\[(?P<words>[^\[\]]{0,999})(?<!\\)\]"
# The comma is required: `Promise<data:Foo>` is text.
_DATA = r"data:(?:[\w.+-]{1,99}/[\w.+-]{1,99})?(?:;[\w.+-]{1,99}(?:=[^\s;,<>]{0,999})?){0,9},"
_DATA_ADDRESS = re.compile(_DATA, re.IGNORECASE)
_TO_ITS_END = possessive(r"[^\s<>()]++|\([^\s<>()]*+\)")
_ADDRESS = (
    rf"(?:<(?:data:[^<>\n]*|[^<>\n]{{{MAX_ADDRESS + 1},}})>"
    rf"|(?:data:|[^\s<>()]{{{MAX_ADDRESS + 1}}}){_TO_ITS_END})"
)
_NOT_TEXT = re.compile(
    rf"{_CODE}"
    rf"|{_BRACKETS}\(\s*{_ADDRESS}\s*\)"
    rf"|(?P<before>(?<!\\)\]\(\s*){_ADDRESS}"  # a link with a title, or with brackets in its words
    rf"|(?<!\\)<{_DATA}[^<>\s]*>"
    r"|(?<!\\)(?P<ruby><ruby(?:\s[^<>]{0,999})?>.{0,999}?</ruby\s*>)"
    r"|(?P<tag><[a-z][^<>]{0,999}?[\s:])(?:srcset|src|href)\s{0,9}=\s{0,9}(?:\"data:[^\"]*\"|'data:[^']*'|data:[^\s\"'<>]*)",
    re.IGNORECASE,
)
# A reading (`<rt>`) with the text up to the next tag of ruby, or a tag.
_READING = re.compile(r"<r[pt]c?\b[^<>]*>.*?(?=</?r[ubpt])|</?(?:ruby|rb|rp|rtc?)\b[^<>]*>", re.IGNORECASE)
_REFERENCE = re.compile(rf"{_CODE}|{_BRACKETS}(?:\[(?P<label>[^\[\]]{{0,999}})\]|(?!\())")


def drop_embedded_and_ruby(text: str, lines: list[str], tokens: list[Token], definitions: Definitions) -> None:
    """Removes embedded data and ruby readings from the lines of a text and from the tokens that were made of them."""
    if not _has_data_or_ruby(text) and max(map(len, lines)) <= MAX_ADDRESS:
        return
    names = _drop_definitions(lines, definitions)
    last: list[int] | None = None
    for token in tokens:
        is_affected = len(token.content) > MAX_ADDRESS or _has_data_or_ruby(token.content)
        is_affected = is_affected or (bool(names) and "[" in token.content)
        if not token.map or token.type not in ("html_block", "inline") or not is_affected:
            continue
        token.content = _only_text(token.content, names)
        if token.map != last:  # the cells of a row share their line
            start, end = last = token.map
            lines[start:end] = _only_text("\n".join(lines[start:end]), names).split("\n")


def _has_data_or_ruby(text: str) -> bool:
    text = text.lower()
    return "data:" in text or "<ruby" in text


def _drop_definitions(lines: list[str], definitions: Definitions) -> set[str]:
    """Removes link definitions with data as their address, except their titles; returns the names of the links."""
    named = definitions.get("references", {})
    for definition in chain(named.values(), definitions.get("duplicate_refs", ())):
        if _is_data(definition["href"]):
            start, end = definition["map"]
            lines[start:end] = [one_line(definition["title"]), *[""] * (end - start - 1)]
    return {name for name, definition in named.items() if _is_data(definition["href"])}


def _is_data(url: str) -> bool:
    """Stricter than `is_embedded`: `[note]: data:loss` is text."""
    return len(url) > MAX_ADDRESS or _DATA_ADDRESS.match(url) is not None


def _only_text(text: str, names: set[str]) -> str:
    """The text without data and readings, with the same number of lines."""

    def words_of_reference(match: re.Match[str]) -> str:
        is_code = match["ticks"] is not None
        is_named = not is_code and normalizeReference(match["label"] or match["words"]) in names
        return _words_of(match) if is_named else match[0]

    text = _NOT_TEXT.sub(_words_of, text)
    return _REFERENCE.sub(words_of_reference, text) if names else text


def _words_of(match: re.Match[str]) -> str:
    groups = match.groupdict()
    if groups["ticks"]:
        return match[0]
    if groups.get("ruby"):
        return _READING.sub("", match[0])
    kept = groups["words"] or groups.get("before") or groups.get("tag") or ""
    return kept + "\n" * (match[0].count("\n") - kept.count("\n"))
