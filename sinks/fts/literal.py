"""What the index cannot tell, since it drops signs and endings: whether the text has it as it was typed.

In quotes that is a condition, where words are typed with signs: `"C++"` stands in no text about C#. Without quotes,
what has only the bare word is found too, and so is what has another form of a word that was begun; it counts for
little.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest

from chunksink.sinks.fts import expressions, patterns
from chunksink.sinks.fts.scripts import SPACED, is_spaceless
from chunksink.sinks.fts.typed import Query

_HYPHENS = "-\u2010-\u2015"
_APOSTROPHES = "'\u2018\u2019"
_BEFORE = rf"{_HYPHENS}{_APOSTROPHES}.#$@&:?!%*~^<\[{{/\\"
_AFTER = "+#*"
# Signs within a word and some at its ends are a part of it; a full stop after it is not, nor is a bracket.
_WORD = re.compile(rf"(?>(?:(?<![{_BEFORE}\w])[{_BEFORE}]++)?)\w+(?:[{_HYPHENS}+#.$@&/:=~\\]+\w+)*[{_AFTER}]*")


@dataclass(frozen=True)
class Claim:
    """What holds the `expression` has `weight` times its score for it, and should have it as the `pattern` says."""

    expression: str
    weight: float
    pattern: str


def claims(query: Query, begun_weight: float) -> Iterator[Claim]:
    """Of a query that comes to no more than the index tells there are none."""
    for bare, typed in query.signed:
        begun = bare == query.begun
        yield Claim(expressions.word(bare), 1.0, pattern(typed, begun=begun))
        if begun:
            yield Claim(expressions.longer(query), begun_weight, pattern(typed, begun=True))
    if query.begun and (guessed := expressions.guessed(query)):
        yield Claim(guessed, begun_weight, patterns.pattern(query.begun, begun=True))


def has_signs(phrase: str) -> bool:
    return any(not word.isalnum() for word in words(phrase))


def words(phrase: str) -> list[str]:
    """With the signs that are a part of them."""
    return _WORD.findall(phrase)


def pattern(phrase: str, *, begun: bool = False) -> str:
    """For a text in small letters: the words with their signs, whatever is between them, and not within longer ones.
    The last one may be only `begun`."""
    parts = words(phrase.lower())
    told = map(_told, parts)
    between = [rf"[\W_]{'*' if is_spaceless(one[-1] + other[0]) else '+'}" for one, other in pairwise(parts)]
    joined = "".join(chain(*zip_longest(told, between, fillvalue="")))
    first, last = parts[0][0], parts[-1][-1]
    before = f"(?<!{SPACED})" if first.isalnum() and not is_spaceless(first) else ""
    if begun or is_spaceless(last):
        return before + joined
    return f"{before}{joined}(?!{SPACED if last.isalnum() else f'[{_AFTER}]'})"


def _told(word: str) -> str:
    """A pattern that has any hyphen for a hyphen, and any apostrophe for an apostrophe."""
    told = re.sub(f"[{_APOSTROPHES}]", f"[{_APOSTROPHES}]", re.escape(word))
    return re.sub(rf"\\-|[{_HYPHENS}]", f"[{_HYPHENS}]", told)
