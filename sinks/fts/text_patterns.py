"""Patterns that check whether a text has a word or phrase as typed. The index has neither punctuation nor endings.

A Latin word beside Han characters is not a separate word for FTS5: 手机iPhone. The trigram index finds it, but also
finds longer words (Spring for ring), so its results count only if the pattern matches.

In quotes, punctuation must match: `"C++"` does not find C#. Without quotes, texts with only the bare word (C for C++)
are also found, and texts with only the guessed stem of an incomplete word, both with a low score.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest

from chunksink.chunkbus.patterns import INDIC_SIGN, LETTER
from chunksink.sinks.fts import expressions
from chunksink.sinks.fts.query import SPACED, TOKEN, Query, is_spaceless
from chunksink.sinks.fts.word_forms import widths


def attached(query: Query) -> list[str]:
    """The words of the query, in all widths, that may be joined to a script without spaces. Not the parts of a name
    (ABC-1234): other texts have them in other names."""
    parts = {part for word in query.words for part in TOKEN.findall(word) if part != word}
    return [form for word in query.words if word not in parts for form in widths(word)]


def attached_patterns(query: Query) -> list[str]:
    """A pattern for each word of `attached`."""
    return [pattern(word, as_prefix=word in widths(query.prefix)) for word in attached(query)]


def pattern(term: str, *, as_prefix: bool = False) -> str:
    """A pattern for lower-case texts: the whole words of the term, with any spaces or punctuation between them. With
    `as_prefix` the last word may be the beginning of a longer one."""
    tokens = TOKEN.findall(term.lower())
    parts = [re.escape(token) for token in tokens]
    if not tokens:
        return re.escape(term.lower())
    if not is_spaceless(tokens[0]):  # the lookbehind comes last, because a pattern is faster if it begins with letters
        parts[0] += f"(?<!{SPACED}{parts[0]})"
    if not is_spaceless(tokens[-1]) and not as_prefix:
        parts[-1] += f"(?!{SPACED})"
    between = [rf"[\W_]{'*' if is_spaceless(one + other) else '+'}" for one, other in pairwise(tokens)]
    return "".join(chain(*zip_longest(parts, between, fillvalue="")))


_HYPHENS = "-\u2010-\u2015"
_APOSTROPHES = "'\u2018\u2019"
_BEFORE = rf"{_HYPHENS}{_APOSTROPHES}.#$@&:?!%*~^<\[{{/\\"
_AFTER = "+#*"
# Punctuation within a word, and some at its ends, belongs to it. A full stop or bracket after it does not.
_LETTERS = rf"(?:\w|{INDIC_SIGN})+"
_WORD = re.compile(
    rf"(?>(?:(?<![{_BEFORE}\w])[{_BEFORE}]++)?){_LETTERS}(?:[{_HYPHENS}+#.$@&/:=~\\]+{_LETTERS})*[{_AFTER}]*"
)


@dataclass(frozen=True)
class TextCheck:
    """A term that the index matches too loosely. Rows that match `expression` got `weight` times its BM25 score. Rows
    without a match of `pattern` lose most of that score, if any row has one."""

    expression: str
    weight: float
    pattern: str


def text_checks(query: Query, prefix_weight: float) -> Iterator[TextCheck]:
    """The checks that a query needs; none if the index alone can answer it."""
    for bare, typed in query.punctuated:
        as_prefix = bare == query.prefix
        yield TextCheck(expressions.word(bare), 1.0, exact_pattern(typed, as_prefix=as_prefix))
        if as_prefix:
            yield TextCheck(expressions.longer(query), prefix_weight, exact_pattern(typed, as_prefix=True))
    if query.prefix and (guessed := expressions.guessed(query)):
        yield TextCheck(guessed, prefix_weight, pattern(query.prefix, as_prefix=True))


def has_punctuation(phrase: str) -> bool:
    return any(not re.fullmatch(f"{LETTER}+", word) for word in punctuated_words(phrase))


def punctuated_words(phrase: str) -> list[str]:
    """The words with the punctuation that belongs to them."""
    return _WORD.findall(phrase)


def exact_pattern(phrase: str, *, as_prefix: bool = False) -> str:
    """As `pattern`, but the punctuation of the words must match."""
    parts = punctuated_words(phrase.lower())
    between = [rf"[\W_]{'*' if is_spaceless(one[-1] + other[0]) else '+'}" for one, other in pairwise(parts)]
    joined = "".join(chain(*zip_longest(map(_escaped, parts), between, fillvalue="")))
    first, last = parts[0][0], parts[-1][-1]
    before = f"(?<!{SPACED})" if first.isalnum() and not is_spaceless(first) else ""
    if as_prefix or is_spaceless(last):
        return before + joined
    return f"{before}{joined}(?!{SPACED if last.isalnum() else f'[{_AFTER}]'})"


def _escaped(word: str) -> str:
    """A pattern for the word with any kind of hyphens and apostrophes."""
    escaped = re.sub(f"[{_APOSTROPHES}]", f"[{_APOSTROPHES}]", re.escape(word))
    return re.sub(rf"\\-|[{_HYPHENS}]", f"[{_HYPHENS}]", escaped)
