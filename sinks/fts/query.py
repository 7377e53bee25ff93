"""What a person types, as FTS5 expressions; filters as SQL. Everything typed is quoted: nothing of it is syntax.

A query falls into words (for `documents_fts`) and runs of scripts without spaces (for `documents_trigrams`, and those
of one or two characters for `documents_places`). Words that hang together (boundary-layer) count one by one, for so do
the texts' words; one with digits or underscores (E-417, err_42) is also looked for as it stands.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from sinks.document import LISTS
from sinks.fts.schema import BOOLEANS, COLUMN_TYPES
from sinks.reader import Filter

MOST_TERMS = 48  # a pasted page is a query too; what comes after these says little
MOST_CHARACTERS = 4000

# Scripts whose words stand side by side (Thai, Lao, Tibetan, Myanmar, Khmer, Kana, Han), and Hangul, whose words carry
# their particles with them.
_SPACELESS = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3031-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
)
_RUN = re.compile(f"[{_SPACELESS}]+")
_TYPED = re.compile(r'"([^"]*)"|([^\s"]+)')
_NOWHERE = re.compile("[\x00\ud800-\udfff]")  # what nothing that is searched holds
_JOINT = re.compile("[!-/:-@\\[-`{-~\u2010-\u2015]+")
_POSSESSIVE = re.compile("['\u2019]s$", re.IGNORECASE)
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
    `symbols` (emoji and the like) only where there is nothing else: no index has them."""

    words: tuple[str, ...]
    runs: tuple[str, ...]
    begun: str = ""
    symbols: tuple[str, ...] = ()


def parse(typed: str) -> Query:
    """Stop words are left out where other words are left."""
    words: dict[str, None] = {}
    runs: dict[str, None] = {}
    last = ""
    for match in _TYPED.finditer(_NOWHERE.sub(" ", typed[:MOST_CHARACTERS])):
        phrase, plain = match.groups()
        part = phrase if phrase is not None else plain
        runs.update(dict.fromkeys(_RUN.findall(part)))
        for rest in (rest.strip() for rest in _RUN.split(part) if any(map(str.isalnum, rest))):
            terms = [rest] if phrase is not None else _terms(rest)
            words.update(dict.fromkeys(terms))
            last = terms[-1] if phrase is None else ""
    if not words and not runs:
        symbols = dict.fromkeys(sign for sign in typed[:MOST_CHARACTERS] if unicodedata.category(sign) == "So")
        return Query((), (), symbols=tuple(symbols)[:MOST_TERMS])
    said = tuple(word for word in words if word.lower() not in _STOP_WORDS) or tuple(words)
    said = said[:MOST_TERMS]
    least = 2 if len(said) < 2 else 3  # two letters begin too much to say anything beside other words
    ended = not typed.endswith(last) or len(last) < least or not last[-1].isalnum()
    return Query(said, tuple(runs)[:MOST_TERMS], "" if ended or last not in said else last)


def _terms(word: str) -> list[str]:
    """What a word without spaces is looked for as; what comes last may still be being typed."""
    plain = _POSSESSIVE.sub("", word)
    parts = [part for part in _JOINT.split(plain) if any(map(str.isalnum, part))] or [word]
    if len(parts) > 1 and _NAMED.search(plain):
        return [*(part for part in parts if len(part) >= _LONG_PART), plain]
    return parts


def quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def any_of(terms: Sequence[str]) -> str:
    return " OR ".join(map(quoted, terms))


def any_word(query: Query) -> str:
    """Any of the words, the last one also as the beginning of a longer one; empty where there is none."""
    return " OR ".join([any_of(query.words), *([beginning(query)] if query.begun else [])])


def every_word(query: Query) -> str:
    """All of the words, the last one also as the beginning of a longer one."""
    return " AND ".join(beginning(query) if word == query.begun else quoted(word) for word in query.words)


def beginning(query: Query) -> str:
    """Words that the last one is the beginning of, itself among them."""
    return f"{quoted(query.begun)} *"


def longer(query: Query) -> str:
    """The same without itself, which counts as a word."""
    return f"{beginning(query)} NOT {quoted(query.begun)}"


def shorts(query: Query) -> list[str]:
    """The runs that are no trigram; of a longer one every two neighbours, for where the whole of it is nowhere."""
    found = [pair for run in query.runs for pair in _pairs(run)]
    return list(dict.fromkeys(found))[:MOST_TERMS]


def attached(query: Query) -> list[str]:
    """The words that may be found among trigrams.

    A Latin word beside Han characters has no space around it and is no word of its own for FTS5: 手机iPhone.
    """
    return [word for word in query.words if len(word) > 2]


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
