"""What is odd about a text that is read whole: said of it, since its author may have meant otherwise."""

import re
from collections.abc import Iterator, Sequence

from chunksink.producers.errors import FENCE_UNCLOSED, LINE_ENDLESS, NESTING_TOO_DEEP, NUL_REMOVED, TABLE_TOO_WIDE
from chunksink.producers.markdown.document import Block, Document, Kind
from chunksink.producers.markdown.normalise import MAX_LINE_CHARACTERS
from chunksink.producers.markdown.parser import MAX_NESTING
from chunksink.producers.markdown.passages import Passage
from chunksink.producers.markdown.plain import BlockToken, Plain
from chunksink.producers.markdown.policy import Policy
from chunksink.producers.produced import Tell

_LEVELS_OF_AN_ITEM = 2  # its list and itself
_NUL_OF_JSON = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def tell_removed(data: bytes, tell: Tell) -> None:
    if b"\0" in data:
        tell(NUL_REMOVED)


def odd_of_block(token: BlockToken) -> str | None:
    """Of one that the library has found: what is plain has an end, and stands in nothing."""
    if isinstance(token, Plain) or not token.map:
        return None
    if token.type == "fence":
        start, end = token.map
        lines = token.content.count("\n") + (not token.content.endswith("\n") and bool(token.content))
        return FENCE_UNCLOSED if end - start < lines + 2 else None
    return NESTING_TOO_DEEP if token.level + _LEVELS_OF_AN_ITEM >= MAX_NESTING else None


def has_nul(json: bytes) -> bool:
    """Whether a text in it does."""
    return b"u0000" in json and _NUL_OF_JSON.search(json) is not None


def find_odd(document: Document, passages: Sequence[Passage], policy: Policy) -> Iterator[str]:
    """Codes of what is to be told."""
    yield from sorted(document.odd)
    long = (block for block in document.blocks if block.end - block.start > MAX_LINE_CHARACTERS)
    if any(_is_endless(document.text, block) for block in long):
        yield LINE_ENDLESS
    tables = (passage for passage in passages if passage.kind is Kind.TABLE)
    if any(table.tokens > policy.hard_max or _ends_within_a_row(document.text, table) for table in tables):
        yield TABLE_TOO_WIDE


def _is_endless(text: str, block: Block) -> bool:
    return max(map(len, text[block.start : block.end].split("\n"))) > MAX_LINE_CHARACTERS


def _ends_within_a_row(text: str, passage: Passage) -> bool:
    return passage.end < len(text) and "\n" not in text[passage.end - 1 : passage.end + 1]
