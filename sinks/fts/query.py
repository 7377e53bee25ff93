"""Parses a typed query into search terms.

Words are searched in `documents_fts`. Runs of scripts without spaces are searched as pairs of characters in
`documents_places`, and as a whole in `documents_trigrams` if they have at least three characters. The parts of a
joined word (boundary-layer) are separate terms, as in the index; texts where they are adjacent score a little more. A
word with digits or underscores (E-417, err_42) is also one term.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from chunksink.chunkbus.patterns import INDIC_SIGN, SPACELESS, possessive
from chunksink.sinks.fts.word_forms import composed, widths
from chunksink.sinks.values import LONE_SURROGATE

RUN = re.compile(f"[{SPACELESS}]+")
SPACED = rf"(?:[^\W_{SPACELESS}]|{INDIC_SIGN})"
"""A letter or digit of all other scripts."""
TOKEN = re.compile(f"{SPACED}+|[{SPACELESS}]+")
_TOKENS = re.compile(f"(?:{TOKEN.pattern})+")


def is_spaceless(text: str) -> bool:
    """Whether the text has a character of a script without spaces."""
    return not text.isascii() and RUN.search(text) is not None


# Limits for very long queries, such as a pasted page. The rarest words and the first pairs of characters are used.
MAX_TERMS = 48
MAX_PAIRS = 400
MAX_CHARACTERS = 10_000
MAX_PUNCTUATED = 4
_MAX_VERBATIM = 16
"""Words. A query with more is hardly ever in a text as typed."""
FEW = 3
"""In a query with at most this many words or pairs of characters, documents that have all of them rank higher."""

_EAST_ASIAN_PUNCTUATION = (
    "\u3001-\u3003\u3008-\u3011\u3014-\u301f\uff01\uff08\uff09\uff0c\uff1b\uff1f\uff3b\uff3d\uff5b\uff5d\uff61-\uff64"
)
"""It needs no spaces beside it. Without the wide signs that occur in names, such as \uff0d and \uff0e."""
_TYPED = re.compile(rf'(?<![0-9])"([^"]*)"|([^\s"{_EAST_ASIAN_PUNCTUATION}]+)')  # a quote after a digit is an inch mark
_JOINT = re.compile("[!-/:-@\\[-`{-~\u2010-\u2015]+")
_JOINED_WORDS = re.compile(r"(?<![^\W\d_])[^\W\d_]++" + possessive(r"(?:[-./&\u2010-\u2015]|::)[^\W\d_]++", "+"))
_WITHOUT_PUNCTUATION_AROUND = re.compile(rf"\w.*(?:\w|{INDIC_SIGN})", re.DOTALL)
_POSSESSIVE = re.compile("['\u2019]s$", re.IGNORECASE)
# C++, C#, .NET: words whose punctuation changes the meaning.
_PUNCTUATED = re.compile(rf"(?<![\w.])(?<!{INDIC_SIGN})(?:\.(?!\d)({SPACED}+)|({SPACED}+)[+#]+)(?!{SPACED})")
_NAMED = re.compile(r"[\d_]")
_DIGIT = re.compile(r"\d")
_YEAR = re.compile("(?:19|20)[0-9]{2}")
_MAX_WORDS_FOR_COMPOUNDS = 8
_MAX_IDENTIFIERS = 8  # a pasted log may have hundreds
_ONE_NAME = re.compile(rf"(?:[\w.\u2010-\u2015-]|{INDIC_SIGN})+")
_LONG_PART = 3  # of a name like E-417; shorter parts are not distinctive

# Lucene's list for English, and the words of questions.
_STOP_WORD_LIST = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
    was will with
    what which who whom whose how when where why
    i me my we our you your he him his she her them
    do does did am been being have has had can could should would may might must shall
"""
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())


@dataclass(frozen=True)
class Query:
    words: tuple[str, ...]
    """Words, and phrases of words."""
    runs: tuple[str, ...]
    """Runs of scripts without spaces."""
    mixed: tuple[str, ...] = ()
    """Words joined to runs (10月3日), in lower case and all widths. Their parts are in `words` and `runs`."""
    prefix: str = ""
    """The last word, if it may be incomplete."""
    phrases: tuple[str, ...] = ()
    """Typed in quotes; every hit has all of them."""
    punctuated: tuple[tuple[str, str], ...] = ()
    """Words with punctuation (C++, .NET): each as a bare word, and as typed."""
    joined: tuple[str, ...] = ()
    """The joined words (dry-run) of a short query. Their parts are in `words`."""
    compounds: tuple[str, ...] = ()
    """Neighbouring words written as one: sortorder for sort order, database for data base."""
    verbatim: str = ""
    """The whole query, if a text may contain it as typed. Empty for one word, for many, and with phrases or runs."""


@lru_cache(maxsize=256)  # each search parses its query several times
def parse(typed: str) -> Query:
    """Stop words are dropped unless there are no other words."""
    words: dict[str, None] = {}
    runs: dict[str, None] = {}
    mixed: dict[str, None] = {}
    phrases: dict[str, None] = {}
    punctuated: dict[tuple[str, str], None] = {}
    joined: dict[str, None] = {}
    in_quotes: set[str] = set()
    last = ""
    storable = LONE_SURROGATE.sub(" ", typed[:MAX_CHARACTERS].replace("\0", " "))
    for match in _TYPED.finditer(storable):
        phrase, plain = match.groups()
        part = phrase if phrase is not None else plain
        runs.update(dict.fromkeys(form for run in RUN.findall(part) for form in composed(run)))
        mixed_tokens = (one.lower() for one in _TOKENS.findall(part) if is_spaceless(one) and not RUN.fullmatch(one))
        mixed.update(dict.fromkeys(form for one in mixed_tokens for form in widths(one)))
        if phrase is not None and any(map(str.isalnum, phrase)):
            phrases[phrase] = None
        elif phrase is None:
            punctuated.update(((found[1] or found[2], found[0]), None) for found in _PUNCTUATED.finditer(plain))
        for rest in (rest.strip() for rest in RUN.split(part) if any(map(str.isalnum, rest))):
            terms = [rest] if phrase is not None else _terms(rest)
            words.update(dict.fromkeys(terms))
            in_quotes.update(terms if phrase is not None else ())
            last = terms[-1] if phrase is None else ""
            joined.update(dict.fromkeys(_joined(rest) if phrase is None else ()))
    kept = tuple(word for word in words if word in in_quotes or word.lower() not in _STOP_WORDS) or tuple(words)
    shortest = 2 if len(kept) < 2 else 3  # beside other words, a beginning of two letters matches too much
    is_open = typed.endswith(last) and len(last) >= shortest and last[-1].isalnum()
    prefix = last if is_open and last in kept else ""
    fewest = 2 if len(kept) > 1 else FEW  # `the closure` is hardly more than `closure`
    is_verbatim = not phrases and not runs and fewest <= len(TOKEN.findall(storable)) <= _MAX_VERBATIM
    kept_punctuated = tuple(one for one in punctuated if one[0] in kept)[:MAX_PUNCTUATED]
    return Query(
        kept,
        tuple(runs)[:MAX_PAIRS],
        tuple(mixed)[:MAX_TERMS],
        prefix=prefix,
        phrases=tuple(phrases),
        punctuated=kept_punctuated,
        joined=tuple(joined) if len(kept) <= FEW else (),  # does not help long questions
        compounds=_compounds([word for word in kept if word not in in_quotes]),
        verbatim=storable if is_verbatim else "",
    )


def _terms(token: str) -> list[str]:
    """The search terms of one typed token, which has no spaces. The last one may be incomplete."""
    plain = _POSSESSIVE.sub("", token)
    parts = [part for part in _JOINT.split(plain) if any(map(str.isalnum, part))] or [token]
    if len(parts) > 1 and _NAMED.search(plain):
        return [*(part for part in parts if len(part) >= _LONG_PART), *_WITHOUT_PUNCTUATION_AROUND.findall(plain)]
    return parts


def _compounds(words: Sequence[str]) -> tuple[str, ...]:
    pairs = pairwise(words[:_MAX_WORDS_FOR_COMPOUNDS])
    return tuple(f"{one}{other}" for one, other in pairs if one.isalpha() and other.isalpha())


def names_of(query: Query) -> list[str]:
    """Words with a digit that name a thing, a version or an error. Not years, and not parts of another name."""
    with_digit = [word for word in query.words if len(word) >= _LONG_PART and _DIGIT.search(word)]
    named = [word for word in with_digit if not _YEAR.fullmatch(word)]
    return [word for word in named if not any(word in other for other in named if other != word)]


def identifiers_of(query: Query) -> list[str]:
    """The first names, and words with underscores: no other word has their meaning. Not those in phrases, because every
    hit contains the phrases. Not `main.py:120` or `max_size=300`: texts may have such parts apart."""
    words = dict.fromkeys([*names_of(query), *(word for word in query.words if "_" in word)])
    names = filter(_ONE_NAME.fullmatch, words)
    return [name for name in names if not any(name in phrase for phrase in query.phrases)][:_MAX_IDENTIFIERS]


def _joined(token: str) -> list[str]:
    """The joined words (dry-run) in a token. None in a name with a digit or underscore (E-417), which is one term."""
    plain = _POSSESSIVE.sub("", token)
    return [] if _NAMED.search(plain) else _JOINED_WORDS.findall(plain)
