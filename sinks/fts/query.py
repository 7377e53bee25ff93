"""What a person types, as FTS5 expressions; filters as SQL. Everything typed is quoted: nothing of it is syntax.

A query falls into words (for `documents_fts`) and runs of scripts without spaces (for `documents_trigrams`, and those
of one or two characters for `documents_places`). Words that hang together (boundary-layer) count one by one, for so do
the texts' words, and a little more side by side; one with digits or underscores (E-417, err_42) is also looked for as
it stands.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest

from sinks.document import LISTS
from sinks.fts.begun import begun as begun_
from sinks.fts.schema import BOOLEANS, COLUMN_TYPES
from sinks.fts.spellings import composed, spellings, widths
from sinks.reader import Filter

# A pasted page is a query too: of its words the rarest are looked for, of its runs those that come first.
MOST_TERMS = 48
MOST_PAIRS = 400
MOST_CHARACTERS = 10_000
MOST_SIGNED = 4
FEW = 3
"""Of so few words or runs all are meant."""

# Scripts whose words stand side by side (Thai, Lao, Tibetan, Myanmar, Khmer, Kana, Han), and Hangul, whose words carry
# their particles with them.
_SPACELESS = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3031-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
)
_RUN = re.compile(f"[{_SPACELESS}]+")
SPACED = rf"[^\W_{_SPACELESS}]"  # a letter or digit of all other scripts: what a word consists of
_TOKEN = re.compile(f"{SPACED}+|[{_SPACELESS}]+")
_TYPED = re.compile(r'(?<![0-9])"([^"]*)"|([^\s"]+)')  # else it is an inch mark
_NOWHERE = re.compile("[\x00\ud800-\udfff]")  # what nothing that is searched holds
BREAK = "\udfff"
"""A sign that no text holds."""
_JOINT = re.compile("[!-/:-@\\[-`{-~\u2010-\u2015]+")
_JOINED_WORDS = re.compile(r"[^\W\d_]+(?:(?:[-./\u2010-\u2015]|::)[^\W\d_]+)+")
_POSSESSIVE = re.compile("['\u2019]s$", re.IGNORECASE)
# C++, C#, .NET: a word is another one with such a sign. What stands before or after these signs has others.
_SIGNED = re.compile(rf"(?<![\w.])(?:\.(?!\d)({SPACED}+)|({SPACED}+)[+#]+)(?!{SPACED})")
_NAMED = re.compile(r"[\d_]")
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


def is_spaceless(text: str) -> bool:
    return not text.isascii() and _RUN.search(text) is not None


@dataclass(frozen=True)
class Query:
    """The words (a phrase is one of them) and the runs; `begun` is the last word where it may still be being typed.
    `symbols` (emoji and the like) only where there is nothing else: no index has them. `phrases` must all stand in what
    is found, as they were typed in quotes. `signed` are words that were typed with a sign (C++, .NET), each with it;
    `joined` are those of few words that hang together (dry-run); each is among the words too."""

    words: tuple[str, ...]
    runs: tuple[str, ...]
    begun: str = ""
    symbols: tuple[str, ...] = ()
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
    for match in _TYPED.finditer(_NOWHERE.sub(" ", typed[:MOST_CHARACTERS])):
        phrase, plain = match.groups()
        part = phrase if phrase is not None else plain
        runs.update(dict.fromkeys(form for run in _RUN.findall(part) for form in composed(run)))
        if phrase is not None and any(map(str.isalnum, phrase)):
            phrases[phrase] = None
        elif phrase is None:
            signed.update(dict.fromkeys(_signed(plain)))
        for rest in (rest.strip() for rest in _RUN.split(part) if any(map(str.isalnum, rest))):
            terms = [rest] if phrase is not None else _terms(rest)
            words.update(dict.fromkeys(terms))
            meant.update(terms if phrase is not None else ())
            last = terms[-1] if phrase is None else ""
            joined.update(dict.fromkeys(_joined(rest) if phrase is None else ()))
    if not words and not runs:
        symbols = dict.fromkeys(sign for sign in typed[:MOST_CHARACTERS] if unicodedata.category(sign) == "So")
        return Query((), (), symbols=tuple(symbols)[:MOST_TERMS])
    said = tuple(word for word in words if word in meant or word.lower() not in _STOP_WORDS) or tuple(words)
    least = 2 if len(said) < 2 else 3  # two letters begin too much to say anything beside other words
    ended = not typed.endswith(last) or len(last) < least or not last[-1].isalnum()
    begun = "" if ended or last not in said else last
    with_signs = tuple(one for one in signed if one[0] in said)[:MOST_SIGNED]
    side_by_side = tuple(joined) if len(said) <= FEW else ()  # a question is none the clearer for it
    return Query(said, tuple(runs)[:MOST_PAIRS], begun, phrases=tuple(phrases), signed=with_signs, joined=side_by_side)


def _signed(part: str) -> list[tuple[str, str]]:
    return [(match[1] or match[2], match[0]) for match in _SIGNED.finditer(part)]


def _terms(word: str) -> list[str]:
    """What a word without spaces is looked for as; what comes last may still be being typed."""
    plain = _POSSESSIVE.sub("", word)
    parts = [part for part in _JOINT.split(plain) if any(map(str.isalnum, part))] or [word]
    if len(parts) > 1 and _NAMED.search(plain):
        return [*(part for part in parts if len(part) >= _LONG_PART), plain]
    return parts


def _joined(word: str) -> list[str]:
    """What hangs together in it, where that is not looked for as a whole anyway."""
    plain = _POSSESSIVE.sub("", word)
    return [] if _NAMED.search(plain) else _JOINED_WORDS.findall(plain)


def quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def any_of(terms: Sequence[str]) -> str:
    return " OR ".join(map(quoted, terms))


def word(term: str, *, begun: bool = False) -> str:
    """A word or phrase; with `begun` also whatever begins so."""
    told = [quoted(spelling) for spelling in spellings(term)]
    if begun:
        told += _begun(term)
    return told[0] if len(told) == 1 else f"({' OR '.join(told)})"


def _begun(term: str) -> list[str]:
    return [*_exactly_begun(term), *map(quoted, begun_(term).guessed)]


def _exactly_begun(term: str) -> list[str]:
    return [f"{quoted(begun_(spelling).exact)} *" for spelling in spellings(term)]


def words(query: Query) -> str:
    """Any of the words."""
    return " OR ".join(map(word, query.words))


def side_by_side(query: Query) -> str:
    """Words that were typed joined, next to each other in the same order."""
    return " OR ".join(map(word, query.joined))


def any_word(query: Query) -> str:
    """Any of the words, the last one also as the beginning of a longer one; empty where there is none."""
    return " OR ".join([words(query), *([beginning(query)] if query.begun else [])])


def every_word(query: Query) -> str:
    """All of the words, the last one also as the beginning of a longer one."""
    return " AND ".join(word(one, begun=one == query.begun) for one in query.words)


def beginning(query: Query) -> str:
    """Words that the last one is the beginning of, itself among them."""
    return word(query.begun, begun=True)


def begun_alone(query: Query) -> str:
    """What these are asked for as, besides itself, which is among them only where its stem begins so too."""
    return " OR ".join(_begun(query.begun))


def longer(query: Query) -> str:
    """The same without itself, which counts as a word."""
    return f"{beginning(query)} NOT {word(query.begun)}"


def guessed(query: Query) -> str:
    """Of these what begins so only in another form, if at all; empty where there is none."""
    if not (guesses := begun_(query.begun).guessed):
        return ""
    return f"({any_of(guesses)}) NOT ({' OR '.join([word(query.begun), *_exactly_begun(query.begun)])})"


def shorts(query: Query) -> list[str]:
    """The runs that are no trigram; of a longer one every two neighbours, for where the whole of it is nowhere."""
    found = [pair for run in query.runs for pair in _pairs(run)]
    return list(dict.fromkeys(found))[:MOST_PAIRS]


def attached(query: Query) -> list[str]:
    """The words that may be found among trigrams.

    A Latin word beside Han characters has no space around it and is no word of its own for FTS5: 手机iPhone. Trigrams
    have it within longer words too (Spring for ring): what they find counts where its `pattern` is.
    """
    return [form for word in query.words if len(word) > 2 for form in widths(word)]


def pattern(term: str, *, begun: bool = False) -> str:
    """For a text in small letters: where the term stands in it, and not within a longer word, whatever signs are
    between its words. The last one may be only `begun`."""
    tokens = _TOKEN.findall(term.lower())
    told = [re.escape(token) for token in tokens]
    if not tokens:
        return re.escape(term.lower())
    if not is_spaceless(tokens[0]):  # looked back at from behind it: a pattern that begins with letters is quicker
        told[0] += f"(?<!{SPACED}{told[0]})"
    if not is_spaceless(tokens[-1]) and not begun:
        told[-1] += f"(?!{SPACED})"
    between = [rf"[\W_]{'*' if is_spaceless(one + other) else '+'}" for one, other in pairwise(tokens)]
    return "".join(chain(*zip_longest(told, between, fillvalue="")))


def patterns(query: Query) -> list[str]:
    """Of the words that may be found among trigrams."""
    return [pattern(word, begun=_is_begun(word, query)) for word in attached(query)]


def _is_begun(word: str, query: Query) -> bool:
    return word in widths(query.begun)


def apart(text: str, query: Query) -> str:
    """The text with `BREAK` in whatever looks like an attached word and is only a part of a longer one."""
    for word in attached(query):
        told = re.escape(word)
        after = "" if _is_begun(word, query) else f"|{told}(?={SPACED})"
        text = re.sub(f"(?<={SPACED}){told}{after}", _broken, text, flags=re.IGNORECASE)
    return text


def _broken(found: re.Match[str]) -> str:
    return found[0][0] + BREAK + found[0][1:]


def long_parts(term: str) -> list[str]:
    """Its parts that trigrams can be asked for."""
    return [token for token in _TOKEN.findall(term) if len(token) > 2]


def first_run(term: str) -> str:
    """The beginning of the first run, which is enough to look for it by; empty where there is none."""
    found = _RUN.search(term)
    return found[0][:2] if found else ""


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] if len(run) > 2 else [run]


def where(filters: Sequence[Filter]) -> tuple[str, list[str | int | float]]:
    """Conditions on `documents` as d, all of which must hold, and their values."""
    conditions: list[str] = ["1"]
    values: list[str | int | float] = []
    for condition in filters:
        column = f"d.{condition.field}"  # Filter takes projected fields only
        if condition.any_of is not None:
            type_ = bool if condition.field in BOOLEANS else COLUMN_TYPES[condition.field]
            fitting = [value for value in condition.any_of if type(value) is type_]  # SQLite would take 1 for "1"
            marks = ", ".join("?" * len(fitting))
            if condition.field in LISTS:
                conditions.append(f"EXISTS (SELECT 1 FROM json_each({column}) WHERE value IN ({marks}))")
            else:
                conditions.append(f"{column} IN ({marks})")
            values += fitting
            continue
        for bound, operator in ((condition.at_least, ">="), (condition.at_most, "<=")):
            if bound is not None:
                conditions.append(f"{column} {operator} ?")
                values.append(bound)
    return " AND ".join(conditions), values


def storable(texts: Sequence[str]) -> list[str]:
    """Those that a column can hold; for others Python raises."""
    return [text for text in texts if text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)]
