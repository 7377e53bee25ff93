"""About how many tokens texts have, before any model has seen them: from some of them that are read."""

import re
from collections.abc import Sequence

from rebuild.work import Work

SAMPLE = 300
"""Texts that are read: so many tell the share of text in a line to some hundredths."""

# Near what WordPiece makes of English, of source code, and of scripts that write without spaces. For alphabets other
# than Latin models differ by a factor of three, and this lies between them.
_TOKEN = re.compile(r"[A-Za-z\u00c0-\u024f]{1,7}|[0-9]{1,3}|[\u0370-\u1fff]{1,2}|\S")


def about_tokens(text: str) -> int:
    return sum(1 for _ in _TOKEN.finditer(text))


def tokens_a_byte(work: Work, lines: Sequence[tuple[str, int]]) -> float:
    """Tokens of these texts for each byte of their lines: much of a line says where its text is from.

    `lines` are text hashes and the lengths of their lines.
    """
    places = work.catalog.places_of_texts([text_hash for text_hash, _ in lines])
    size = sum(length for text_hash, length in lines)
    return sum(map(about_tokens, work.records.texts(places))) / size if size else 0.0
