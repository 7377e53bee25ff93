"""What a person types, as FTS5 expressions; filters as SQL. Everything typed is quoted: nothing of it is syntax.

A query falls into words (for `documents_fts`) and runs of scripts without spaces (for `documents_trigrams`, and those
of one or two characters for `documents_places`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sinks.document import LISTS
from sinks.fts.schema import BOOLEANS, COLUMN_TYPES
from sinks.reader import Filter, Value

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
_INTEGERS = 2**63


def is_spaceless(text: str) -> bool:
    return not text.isascii() and _RUN.search(text) is not None


@dataclass(frozen=True)
class Query:
    """The words (a phrase is one of them) and the runs; `open_end` where the last word may still be being typed."""

    words: tuple[str, ...]
    runs: tuple[str, ...]
    open_end: bool

    def __bool__(self) -> bool:
        return bool(self.words or self.runs)


def parse(typed: str) -> Query:
    words: dict[str, None] = {}
    runs: dict[str, None] = {}
    phrase_last = False
    for match in _TYPED.finditer(_NOWHERE.sub(" ", typed[:MOST_CHARACTERS])):
        phrase, plain = match.groups()
        part = phrase if phrase is not None else plain
        runs.update(dict.fromkeys(_RUN.findall(part)))
        kept = [rest.strip() for rest in _RUN.split(part) if any(map(str.isalnum, rest))]
        words.update(dict.fromkeys(kept))
        phrase_last = phrase is not None
    last = next(reversed(words), "")
    open_end = bool(last) and typed.endswith(last) and last[-1].isalnum() and len(last) > 1 and not phrase_last
    return Query(tuple(words)[:MOST_TERMS], tuple(runs)[:MOST_TERMS], open_end and len(words) <= MOST_TERMS)


def quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def all_of(terms: Sequence[str]) -> str:
    return " AND ".join(map(quoted, terms))


def any_of(terms: Sequence[str]) -> str:
    return " OR ".join(map(quoted, terms))


def any_word(query: Query) -> str:
    """Any of the words, the last one also as the beginning of a longer one; empty where there is none."""
    expression = any_of(query.words)
    return f"{expression} OR {quoted(query.words[-1])} *" if query.open_end else expression


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
            # SQLite would take 1 for "1", and Python raises for what no column can hold.
            fitting = [value for value in condition.any_of if type(value) is type_ and _is_storable(value)]
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
                values.append(_comparable(bound))
    return " AND ".join(conditions), values


def storable(texts: Sequence[str]) -> list[str]:
    return [text for text in texts if _is_storable(text)]


def _is_storable(value: Value) -> bool:
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in value)
    return -_INTEGERS <= value < _INTEGERS


def _comparable(bound: float) -> float:
    """The bound; one beyond all integers of SQLite as a number that is so too."""
    if -_INTEGERS <= bound < _INTEGERS:
        return bound
    return 1e19 if bound > 0 else -1e19
