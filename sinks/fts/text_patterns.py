"""Whether a text has a word or a phrase as it was typed. The index cannot tell: it drops signs and endings.

A Latin word beside Han characters has no space around it and is no word of its own for FTS5: 手机iPhone. Trigrams have
it, as they have it in what it is only a part of (Spring for ring): what they find counts where its pattern is.

In quotes signs are a condition: `"C++"` does not match a text about C#. Without quotes, what has only the bare word is
found too, and so is what has another form of a word that was begun; it counts for little.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest

from chunksink.sinks.fts import expressions
from chunksink.sinks.fts.query import SPACED, TOKEN, Query, is_spaceless
from chunksink.sinks.fts.word_forms import widths


def attached(query: Query) -> list[str]:
    """The words that may be found among trigrams."""
    return [form for word in query.words if len(word) > 2 for form in widths(word)]


def of_attached(query: Query) -> list[str]:
    """The pattern of each of them."""
    return [pattern(word, begun=_is_begun(word, query)) for word in attached(query)]


def pattern(term: str, *, begun: bool = False) -> str:
    """For a text in small letters: where the term stands in it, and not within a longer word, whatever signs are
    between its words. The last one may be only `begun`."""
    tokens = TOKEN.findall(term.lower())
    told = [re.escape(token) for token in tokens]
    if not tokens:
        return re.escape(term.lower())
    if not is_spaceless(tokens[0]):  # looked back at from behind it: a pattern that begins with letters is quicker
        told[0] += f"(?<!{SPACED}{told[0]})"
    if not is_spaceless(tokens[-1]) and not begun:
        told[-1] += f"(?!{SPACED})"
    between = [rf"[\W_]{'*' if is_spaceless(one + other) else '+'}" for one, other in pairwise(tokens)]
    return "".join(chain(*zip_longest(told, between, fillvalue="")))


def _is_begun(word: str, query: Query) -> bool:
    return word in widths(query.prefix)


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
        begun = bare == query.prefix
        yield Claim(expressions.word(bare), 1.0, exact_pattern(typed, begun=begun))
        if begun:
            yield Claim(expressions.longer(query), begun_weight, exact_pattern(typed, begun=True))
    if query.prefix and (guessed := expressions.guessed(query)):
        yield Claim(guessed, begun_weight, pattern(query.prefix, begun=True))


def has_signs(phrase: str) -> bool:
    return any(not word.isalnum() for word in signed_words(phrase))


def signed_words(phrase: str) -> list[str]:
    """With the signs that are a part of them."""
    return _WORD.findall(phrase)


def exact_pattern(phrase: str, *, begun: bool = False) -> str:
    """For a text in small letters: the words with their signs, whatever is between them, and not within longer ones.
    The last one may be only `begun`."""
    parts = signed_words(phrase.lower())
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
