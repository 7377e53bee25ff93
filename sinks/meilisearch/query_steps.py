"""Splits a query into steps with fewer and fewer required words.

If no document has all words, Meilisearch drops the most frequent ones first (strategy `frequency`). It drops words that
are equally frequent together, and counts words in the whole index. So it may find nothing although some documents have
some of the words: if words are equally frequent, or if no document that passes the filters has a rare word. And one
tenant's documents would affect another's results. In these cases the words are counted here, among the documents that
pass. The first step requires all words that occur, the next all but the most frequent one, the last only the rarest.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from chunksink.sinks.meilisearch.rows import is_searchable

_PART = re.compile(r'"[^"]*"|[^\W_]+|[^\w\s]')  # a phrase (always required), a word or a symbol
_MAX_PARTS = 10  # Meilisearch ignores more


@dataclass(frozen=True)
class Step:
    """A query that requires some words: `words` is their number, and `typed` the number of all typed words."""

    query: str
    words: int = 1
    typed: int = 1
    strategy: str = "all"

    def score(self, own: float) -> float:
        """The score of a hit with Meilisearch's score `own`.

        The last factor keeps hits with few of the words below vector hits: two of ten words score at most 0.008.
        """
        return (self.words - 1 + own) / self.typed * (self.words / self.typed) ** 2


def steps(query: str, count: Callable[[Sequence[str]], list[int]]) -> list[Step]:
    """`count` returns, for each query, how many documents pass the filters and have all its words."""
    parts = _parts(query)
    words = [number for number, part in enumerate(parts) if not part[0].startswith('"')]
    if len(parts) < 2 or not words:
        return [Step(query, strategy="last")]
    always = set(range(len(parts))) - set(words)
    pairs = [(one, one + 1) for one in words if one + 1 in words]  # Meilisearch finds lighthouse by "light house"
    units: list[tuple[int, ...]] = [*((one,) for one in words), *pairs]
    counted = dict(zip(units, count([_only(query, parts, {*unit, *always}) for unit in units]), strict=True))
    found: dict[tuple[int, ...], int] = {unit: number for unit, number in counted.items() if number and len(unit) == 1}
    for one, other in pairs:
        if counted[one, other] and not (counted[one,] and counted[other,]):
            for word in (one, other):
                found.pop((word,), None)
            found[one, other] = counted[one, other]
    kept = sorted(found, key=lambda unit: (found[unit], unit))
    required = [{part for unit in kept[:most] for part in unit} for most in range(len(kept), 0, -1)]
    if always:
        required.append(set())  # the phrases alone
    found_by = [Step(_only(query, parts, some | always), len(some | always), len(parts)) for some in required]
    return [*found_by[:-1], *(replace(step, strategy="last") for step in found_by[-1:])]


def can_drop_words(query: str) -> bool:
    return len(_parts(query)) > 1


def beginning_with_each(query: str) -> list[str]:
    """The query once for each word, with that word first, because the strategy `last` always requires the first."""
    parts = _parts(query)
    found = []
    for number, part in enumerate(parts):
        rest = set(range(len(parts))) - {number}
        is_open = part.end() == len(query)  # may be incomplete, so it must stay last
        found.append(part[0] if is_open else f"{part[0]} {_only(query, parts, rest)}")
    return found or [query]


def _parts(query: str) -> list[re.Match[str]]:
    return [part for part in _PART.finditer(query) if is_searchable(part[0])][:_MAX_PARTS]


def _only(query: str, parts: Sequence[re.Match[str]], kept: Iterable[int]) -> str:
    """The query reduced to these parts, in their order, with the characters between them."""
    numbers, end, reduced = set(kept), 0, ""
    for number, part in enumerate(parts):
        reduced += query[end : part.start()] + (part[0] if number in numbers else "")
        end = part.end()
    return reduced if end == len(query) and len(parts) - 1 in numbers else f"{reduced} "  # the space ends the last word
