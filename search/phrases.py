"""What stands in quotes must stand in every hit, however it is found.

Keyword search keeps to that by itself, with every engine. So it is asked for what holds the phrases, and nothing else
is looked at by meaning. Which signs are quotes is decided here: engines are told of straight ones only.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chunksink.sinks.reader import Filter, Hit, KeywordReader

# Keyboards, phones and word processors write any of these; one that follows a number is an inch mark.
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
_SIGNS = re.compile(f"[{_DOUBLE}{''.join(one for one, _ in _PAIRS)}\u300d\u300f]")
MOST_HOLDING = 2_000
"""Of what holds the phrases so many are compared by meaning, the best by words. Each vector must be read."""


@dataclass(frozen=True)
class Phrases:
    """Those of a query, as they were typed."""

    told: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.told)

    def __str__(self) -> str:
        return " and ".join(f'"{phrase}"' for phrase in self.told)

    @property
    def query(self) -> str:
        """These alone."""
        return " ".join(f'"{phrase}"' for phrase in self.told)

    def held(self, reader: KeywordReader, filters: Sequence[Filter]) -> list[Hit]:
        return reader.search(self.query, MOST_HOLDING, filters, every=True)


def phrases_of(text: str) -> Phrases:
    """Quotes around signs alone, and a quote without its other one, are none."""
    quoted = (_SIGNS.sub(" ", match[match.lastindex or 0]) for match in _QUOTED.finditer(text))
    return Phrases(tuple(dict.fromkeys(one for one in quoted if any(map(str.isalnum, one)))))


def for_words(text: str) -> str:
    """A query as keyword search is asked: what stands in quotes first, for Meilisearch reads no more than ten words.

    Quotes around signs alone are left out, and so are they where nothing but signs was typed.
    """
    phrases = phrases_of(text)
    if not phrases and not _SIGNS.search(text):
        return text
    rest = _SIGNS.sub(" ", _QUOTED.sub(" " if phrases else _unquoted, text))
    return f"{phrases.query} {rest}" if phrases else rest if rest.strip() else text


def without_quotes(text: str) -> str:
    """The query with its phrases as single words."""
    return " ".join(_SIGNS.sub(" ", _QUOTED.sub(_unquoted, text)).split())


def _unquoted(match: re.Match[str]) -> str:
    return f" {match[match.lastindex or 0]} "
