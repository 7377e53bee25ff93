"""Splits a query into its words, because Meilisearch cannot find all documents that have at least one of them.

It requires all words, and drops some if too few documents have all of them: the last ones, or the most frequent ones.
A question of ten words then finds the documents with its rarest words only. So each word is searched alone, and the
scores are added. Rare words weigh more, as in BM25. They are counted among the documents that pass the filters, so one
tenant's documents do not affect another's results.
"""

import math
import re
from collections.abc import Iterable, Sequence

from chunksink.sinks.fts.query import RUN
from chunksink.sinks.meilisearch.rows import is_searchable

_BETWEEN = (
    r"\s!-/:-@\[-`{-~\u00a0-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u2000-\u206f"
    r"\u3000-\u3004\u3008-\u3020\uff01-\uff0f\uff1a-\uff20"
)
_PART = re.compile(rf'"[^"]*"|{RUN.pattern}|(?:(?!{RUN.pattern})[^{_BETWEEN}])+')
"""A phrase (always required), a run of a script without spaces, or a word with its combining marks."""
_HAN = re.compile("[\u3400-\u9fff]")
_KANA = re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_MAX_PARTS = 25  # each word is a search
MAX_CANDIDATES = 2000


def each_word(query: str) -> list[str]:
    """A query for each word, together with all phrases; then a query for the phrases alone. Empty if there are fewer
    than two different words and phrases."""
    parts = _parts(query)
    first = {part[0].lower(): number for number, part in reversed(list(enumerate(parts)))}
    phrases = {number for word, number in first.items() if word.startswith('"')}
    words = [{number} for number in sorted(first.values()) if number not in phrases]
    if len(first) < 2:
        return []
    return [_joined(query, parts, one | phrases) for one in [*words, *([phrases] if phrases else [])]]


def rarest(documents: Sequence[int]) -> list[int]:
    """The indexes of the rarest words. A hit must have one of them; other words only add to its score.

    `documents` is how many documents have each word. Returns the rarest word that occurs, then further ones while
    these counts add up to at most `MAX_CANDIDATES`.
    """
    found: list[int] = []
    for number in sorted((number for number, count in enumerate(documents) if count), key=documents.__getitem__):
        if found and sum(documents[each] for each in (*found, number)) > MAX_CANDIDATES:
            break
        found.append(number)
    return found


def rarity(documents: int, total: int) -> float:
    """The weight of a word that is in `documents` of `total` documents."""
    return math.log(1 + (max(0, total - documents) + 0.5) / (documents + 0.5))


def beginning_with_each(query: str) -> list[str]:
    """A query for each word, with that word first, because Meilisearch's matching strategy `last` always requires the
    first word. A last word that may be incomplete must stay last, so its query has no other words."""
    parts = _parts(query)
    found = []
    for number, part in enumerate(parts):
        rest = set(range(len(parts))) - {number}
        is_open = part.end() == len(query)
        found.append(part[0] if is_open else f"{part[0]} {_joined(query, parts, rest)}")
    return found or [query]


def may_be_japanese(query: str) -> bool:
    """Meilisearch divides a query without kana into words as if it were Chinese."""
    return _HAN.search(query) is not None and _KANA.search(query) is None


def _parts(query: str) -> list[re.Match[str]]:
    return [part for part in _PART.finditer(query) if is_searchable(part[0])][:_MAX_PARTS]


def _joined(query: str, parts: Sequence[re.Match[str]], numbers: Iterable[int]) -> str:
    """These parts. Only spaces separate them, because a minus before a word would exclude it."""
    kept = [parts[number] for number in sorted(numbers)]
    is_open = bool(kept) and kept[-1].end() == len(query)  # the last word may be incomplete
    return " ".join(part[0] for part in kept) + ("" if is_open else " ")
