"""Which words of a query must be found, where the counts of the whole index say nothing.

Where not all words are found, Meilisearch leaves out the most frequent ones first (`frequency`), by counts over the
whole index. So what one tenant writes would decide what another one finds; and what is rare in the index may be nowhere
among what passes a filter, and then nothing is found. In both cases the words are counted among what passes, and asked
for in steps: all that occur, then without the most frequent one, down to the rarest alone.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from chunksink.sinks.meilisearch.rows import is_searchable

_PART = re.compile(r'"[^"]*"|[^\W_]+|[^\w\s]')  # a phrase, which is always looked for, a word or a sign
_MOST_PARTS = 10  # that Meilisearch reads


@dataclass(frozen=True)
class Step:
    """A query, all of whose words must be found: so many of those that were typed."""

    query: str
    words: int = 1
    typed: int = 1
    strategy: str = "all"

    def score(self, own: float) -> float:
        """Of a document that has this score by the query: as `frequency` would have it, times the square of the share
        of words that are found. By Meilisearch's own a document with two words of ten is nearly as good as one with all
        of them, and would outdo what is near in meaning."""
        return (self.words - 1 + own) / self.typed * (self.words / self.typed) ** 2


def steps(query: str, count: Callable[[Sequence[str]], list[int]]) -> list[Step]:
    """`count` says how many documents pass the filters and have all words of each of some queries."""
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
    asked = [{part for unit in kept[:most] for part in unit} for most in range(len(kept), 0, -1)]
    if always:
        asked.append(set())  # what holds the phrases need not hold a word besides
    found_by = [Step(_only(query, parts, some | always), len(some | always), len(parts)) for some in asked]
    return [*found_by[:-1], *(replace(step, strategy="last") for step in found_by[-1:])]


def beginning_with_each(query: str) -> list[str]:
    """The query with each of its words as the first one, which must be found with `last`."""
    parts = _parts(query)
    found = []
    for number, part in enumerate(parts):
        rest = set(range(len(parts))) - {number}
        is_open = part.end() == len(query)  # may be the beginning of a longer word: it must stay the last
        found.append(part[0] if is_open else f"{part[0]} {_only(query, parts, rest)}")
    return found or [query]


def _parts(query: str) -> list[re.Match[str]]:
    return [part for part in _PART.finditer(query) if is_searchable(part[0])][:_MOST_PARTS]


def _only(query: str, parts: Sequence[re.Match[str]], kept: Iterable[int]) -> str:
    """The query with these of its parts alone, in the order and with the signs between them as they were typed."""
    wanted, at, found = set(kept), 0, ""
    for number, part in enumerate(parts):
        found += query[at : part.start()] + (part[0] if number in wanted else "")
        at = part.end()
    return found if at == len(query) and len(parts) - 1 in wanted else f"{found} "  # what is not last is no beginning
