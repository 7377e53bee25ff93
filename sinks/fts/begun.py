"""Finding words by their beginning in an index of stems.

The stem of `installation` is `instal`: nothing in the index begins with `installa`. And what is asked for is stemmed
too: that of `gateway` is `gatewai`, which `gatewayclient` does not begin with. So a beginning is asked for as the
beginning of a stem, in a disguise that the stemmer takes off again, and as the words that an ending makes of it. Which
stems that comes to, FTS5 itself says.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from chunksink.sinks.fts.stems import DISGUISES, folded, stems_of

_SHORTEST = 3
_ENDINGS_TOLD = """
    ability able ably al alism alistic ality alization alize ally ance ances ancy ant ants ate ated ates ating ation
    ational ations ative ator ators ed eed eer ement ements ence ences ency ent ently ents er ers es est fully fulness
    ibilities ibility ible ibly ic ical ically icate icated icates icating icative icism icities icity ics ied ier ies
    iest ily iness ing ings ion ional ions ious iously ism isms ist ists ities ity ive ively iveness ization izations
    ize ized izer izers izes izing less lessness liness logical logies logy ly ment ments ness nesses ogies ogy ous
    ously ousness s ful
"""
_ENDINGS = tuple(_ENDINGS_TOLD.split())
_AFTER_DOUBLED = ("ed", "ing")
"""Before these a letter is doubled: `stopp` is no stem."""


@dataclass(frozen=True)
class Begun:
    """`exact` has just what begins so for its beginning, as far as there is such a word; `guessed` are words of which
    some form begins so."""

    exact: str
    guessed: tuple[str, ...] = ()


@lru_cache(maxsize=1024)
def begun(typed: str) -> Begun:
    """How all words that begin so are asked for, where more letters than a stem has may have been typed."""
    if len(typed) < _SHORTEST or not typed.isalpha():
        return Begun(typed)
    plain = typed.lower()
    disguised = [plain + disguise for disguise in DISGUISES]
    completed = list(dict.fromkeys(_completed(plain)))
    stem_of = stems_of([*disguised, *completed])
    fitting = [one for one in disguised if folded(plain).startswith(stem_of[one])]
    exact = max(fitting, key=lambda one: len(stem_of[one]), default=plain)
    guessed: dict[str, str] = {}
    for one in completed:
        if not stem_of[one].startswith(stem_of[exact]) and stem_of[one] != stem_of[plain]:
            guessed.setdefault(stem_of[one], one)
    return Begun(exact, tuple(guessed.values()))


def _completed(typed: str) -> Iterator[str]:
    """The words that it may become, where it ends within an ending."""
    if typed[-1] == typed[-2]:
        yield from (typed + ending for ending in _AFTER_DOUBLED)
    for ending in _ENDINGS:
        for length in range(1, min(len(ending), len(typed) - 1)):
            if typed.endswith(ending[:length]):
                yield typed + ending[length:]
