"""Quoted phrases, which every hit must contain, whichever leg finds it.

Every keyword engine supports phrases. So the keyword leg finds the documents that contain them, and the semantic leg
compares only these. This module decides which characters are quotes; engines get straight ones.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chunksink.sinks.reader import Filter, Hit, KeywordReader

# All double quotes that people type. A quote after a digit is an inch mark, so it does not open a phrase.
_DOUBLE = '"\u201c\u201d\u201e\u201f\uff02'
_PAIRS = (("\u00ab", "\u00bb"), ("\u00bb", "\u00ab"), ("\u300c", "\u300d"), ("\u300e", "\u300f"))
_QUOTED = re.compile(
    "|".join(
        [
            f"(?<![0-9])[{_DOUBLE}]([^{_DOUBLE}]*)[{_DOUBLE}]",
            *(f"{one}([^{one}{other}]*){other}" for one, other in _PAIRS),
        ]
    )
)
_QUOTE_MARK = re.compile(f"[{_DOUBLE}{''.join(one for one, _ in _PAIRS)}\u300d\u300f]")
MAX_PHRASE_HITS = 2_000
"""Of the documents that contain the phrases, the semantic leg compares at most this many with the query, since each
vector must be read."""


@dataclass(frozen=True)
class Phrases:
    """The phrases of a query, as typed."""

    texts: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.texts)

    def __str__(self) -> str:
        return " and ".join(f'"{phrase}"' for phrase in self.texts)

    @property
    def query(self) -> str:
        """A query of the phrases alone."""
        return " ".join(f'"{phrase}"' for phrase in self.texts)

    def hits(self, reader: KeywordReader, filters: Sequence[Filter]) -> list[Hit]:
        return reader.search(self.query, MAX_PHRASE_HITS, filters, every=True)


def phrases_of(text: str) -> Phrases:
    """The quoted phrases of a query. Unpaired quotes are ignored, and so are quotes around punctuation alone."""
    quoted = (_QUOTE_MARK.sub(" ", match[match.lastindex or 0]) for match in _QUOTED.finditer(text))
    return Phrases(tuple(dict.fromkeys(one for one in quoted if any(map(str.isalnum, one)))))


def keyword_query(text: str, spelling: Mapping[str, str] | None = None) -> str:
    """The query for a keyword engine: phrases first, because Meilisearch reads only ten words.

    Quotes around punctuation alone are removed. `spelling` replaces words outside phrases.
    """
    phrases = phrases_of(text)
    if not phrases and not _QUOTE_MARK.search(text):
        return respelled(text, spelling or {})
    rest = respelled(_QUOTE_MARK.sub(" ", _QUOTED.sub(" " if phrases else _unquoted, text)), spelling or {})
    return f"{phrases.query} {rest}" if phrases else rest if rest.strip() else text


def without_quotes(text: str) -> str:
    """The query without quotes, so that the words of its phrases are searched one by one."""
    return " ".join(_QUOTE_MARK.sub(" ", _QUOTED.sub(_unquoted, text)).split())


def respelled(text: str, spelling: Mapping[str, str]) -> str:
    """The query with these words replaced."""
    for word, other in spelling.items():
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", other, text)  # `other` has letters only: no escapes
    return text


def _unquoted(match: re.Match[str]) -> str:
    return f" {match[match.lastindex or 0]} "
