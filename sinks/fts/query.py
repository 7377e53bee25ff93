"""What a person types, taken apart into what is looked for.

A query falls into words (for `documents_fts`) and runs of scripts without spaces (for `documents_trigrams`, and those
of one or two characters for `documents_places`). Words that hang together (boundary-layer) count one by one, for so do
the texts' words, and a little more side by side; one with digits or underscores (E-417, err_42) is also looked for as
it stands.
"""

import re
from dataclasses import dataclass

from chunksink.chunkbus.patterns import possessive
from chunksink.sinks.fts.word_forms import composed
from chunksink.sinks.values import HALF

# Scripts whose words stand side by side (Thai, Lao, Tibetan, Myanmar, Khmer, Kana, Han), and Hangul, whose words carry
# their particles with them.
_SPACELESS = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3031-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
)
RUN = re.compile(f"[{_SPACELESS}]+")
SPACED = rf"[^\W_{_SPACELESS}]"
"""A letter or digit of all other scripts: what a word consists of."""
TOKEN = re.compile(f"{SPACED}+|[{_SPACELESS}]+")


def is_spaceless(text: str) -> bool:
    """Whether anything in it is of a script without spaces."""
    return not text.isascii() and RUN.search(text) is not None


# A pasted page is a query too: of its words the rarest are looked for, of its runs those that come first.
MOST_TERMS = 48
MOST_PAIRS = 400
MOST_CHARACTERS = 10_000
MOST_SIGNED = 4
FEW = 3
"""Of so few words or runs all are meant."""

_TYPED = re.compile(r'(?<![0-9])"([^"]*)"|([^\s"]+)')  # else it is an inch mark
_JOINT = re.compile("[!-/:-@\\[-`{-~\u2010-\u2015]+")
_JOINED_WORDS = re.compile(r"(?<![^\W\d_])[^\W\d_]++" + possessive(r"(?:[-./\u2010-\u2015]|::)[^\W\d_]++", "+"))
_POSSESSIVE = re.compile("['\u2019]s$", re.IGNORECASE)
# C++, C#, .NET: a word is another one with such a sign. What stands before or after these signs has others.
_SIGNED = re.compile(rf"(?<![\w.])(?:\.(?!\d)({SPACED}+)|({SPACED}+)[+#]+)(?!{SPACED})")
_NAMED = re.compile(r"[\d_]")
_DIGIT = re.compile(r"\d")
_YEAR = re.compile("(?:19|20)[0-9]{2}")
_LONG_PART = 3  # of a name like E-417; shorter parts say nothing

# Lucene's for English, and what questions are made of; they say nothing of what is looked for.
_STOP_WORDS_TOLD = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
    was will with
    what which who whom whose how when where why
    i me my we our you your he him his she her them
    do does did am been being have has had can could should would may might must shall
"""
_STOP_WORDS = frozenset(_STOP_WORDS_TOLD.split())


@dataclass(frozen=True)
class Query:
    """The words (a phrase is one of them) and the runs; `prefix` is the last word where it may still be being typed.
    `phrases` must all stand in what is found, as they were typed in quotes. `signed` are words that were typed with a
    sign (C++, .NET), each with it; `joined` are those of few words that hang together (dry-run); each is among the
    words too."""

    words: tuple[str, ...]
    runs: tuple[str, ...]
    prefix: str = ""
    phrases: tuple[str, ...] = ()
    signed: tuple[tuple[str, str], ...] = ()
    joined: tuple[str, ...] = ()


def parse(typed: str) -> Query:
    """Stop words are left out where other words are left."""
    words: dict[str, None] = {}
    runs: dict[str, None] = {}
    phrases: dict[str, None] = {}
    signed: dict[tuple[str, str], None] = {}
    joined: dict[str, None] = {}
    meant: set[str] = set()  # words in quotes
    last = ""
    for match in _TYPED.finditer(_searchable(typed[:MOST_CHARACTERS])):
        phrase, plain = match.groups()
        part = phrase if phrase is not None else plain
        runs.update(dict.fromkeys(form for run in RUN.findall(part) for form in composed(run)))
        if phrase is not None and any(map(str.isalnum, phrase)):
            phrases[phrase] = None
        elif phrase is None:
            signed.update(dict.fromkeys(_signed(plain)))
        for rest in (rest.strip() for rest in RUN.split(part) if any(map(str.isalnum, rest))):
            terms = [rest] if phrase is not None else _terms(rest)
            words.update(dict.fromkeys(terms))
            meant.update(terms if phrase is not None else ())
            last = terms[-1] if phrase is None else ""
            joined.update(dict.fromkeys(_joined(rest) if phrase is None else ()))
    said = tuple(word for word in words if word in meant or word.lower() not in _STOP_WORDS) or tuple(words)
    least = 2 if len(said) < 2 else 3  # two letters begin too much to say anything beside other words
    ended = not typed.endswith(last) or len(last) < least or not last[-1].isalnum()
    prefix = "" if ended or last not in said else last
    with_signs = tuple(one for one in signed if one[0] in said)[:MOST_SIGNED]
    side_by_side = tuple(joined) if len(said) <= FEW else ()  # a question is none the clearer for it
    return Query(said, tuple(runs)[:MOST_PAIRS], prefix, phrases=tuple(phrases), signed=with_signs, joined=side_by_side)


def _searchable(typed: str) -> str:
    """Without what nothing that is searched holds."""
    return HALF.sub(" ", typed.replace("\0", " "))


def _signed(part: str) -> list[tuple[str, str]]:
    return [(match[1] or match[2], match[0]) for match in _SIGNED.finditer(part)]


def _terms(word: str) -> list[str]:
    """What a word without spaces is looked for as; what comes last may still be being typed."""
    plain = _POSSESSIVE.sub("", word)
    parts = [part for part in _JOINT.split(plain) if any(map(str.isalnum, part))] or [word]
    if len(parts) > 1 and _NAMED.search(plain):
        return [*(part for part in parts if len(part) >= _LONG_PART), plain]
    return parts


def names_of(query: Query) -> list[str]:
    """Words that name a thing, a version or an error: long enough, with a digit, no year and no part of such a name."""
    told = [word for word in query.words if len(word) >= _LONG_PART and _DIGIT.search(word)]
    named = [word for word in told if not _YEAR.fullmatch(word)]
    return [word for word in named if not any(word in other for other in named if other != word)]


def _joined(word: str) -> list[str]:
    """What hangs together in it, where that is not looked for as a whole anyway."""
    plain = _POSSESSIVE.sub("", word)
    return [] if _NAMED.search(plain) else _JOINED_WORDS.findall(plain)
