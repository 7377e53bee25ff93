"""About how many tokens and bytes texts have, before any model has seen them: from some of them that are read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chunksink.rebuild.work import Work

SAMPLE = 300
"""Texts that are read: so many tell the share of text in a line to some hundredths."""

# Near what WordPiece makes of English, of source code, and of scripts that write without spaces. For alphabets other
# than Latin models differ by a factor of three, and this lies between them.
_TOKEN = re.compile(r"[A-Za-z\u00c0-\u024f]{1,7}|[0-9]{1,3}|[\u0370-\u1fff]{1,2}|\S")


@dataclass(frozen=True)
class Texts:
    """Some texts, in numbers."""

    number: int = 0
    tokens: int = 0
    size: int = 0
    """In bytes of UTF-8."""


def about_tokens(text: str) -> int:
    return sum(1 for _ in _TOKEN.finditer(text))


def about_texts(work: Work, number: int, size: int, sample: Sequence[tuple[str, int]]) -> Texts:
    """So many texts, whose lines have so many bytes: much of a line says where its text is from.

    `sample` are hashes of some of them, and the lengths of their lines.
    """
    texts = work.records.texts(work.catalog.places_of_texts([text_hash for text_hash, _ in sample]))
    read = [(about_tokens(text), len(text.encode("utf-8", "surrogatepass"))) for text in texts]
    share = size / max(1, sum(length for _, length in sample))
    return Texts(number, round(share * sum(tokens for tokens, _ in read)), round(share * sum(own for _, own in read)))
