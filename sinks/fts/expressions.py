"""A query as expressions of FTS5. Everything typed is quoted: nothing of it is syntax."""

from collections.abc import Sequence

from chunksink.sinks.fts.query import Query
from chunksink.sinks.fts.word_forms import beginning_of, spellings


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
    return [*_exactly_begun(term), *map(quoted, beginning_of(term).guessed)]


def _exactly_begun(term: str) -> list[str]:
    return [f"{quoted(beginning_of(spelling).exact)} *" for spelling in spellings(term)]


def words(query: Query) -> str:
    """Any of the words."""
    return " OR ".join(map(word, query.words))


def in_text(expression: str) -> str:
    """The same, in the text itself."""
    return f"text: ({expression})"


def side_by_side(query: Query) -> str:
    """Words that were typed joined, next to each other in the same order."""
    return " OR ".join(map(word, query.joined))


def any_word(query: Query) -> str:
    """Any of the words, the last one also as the beginning of a longer one; empty where there is none."""
    return " OR ".join([words(query), *([beginning(query)] if query.prefix else [])])


def every_word(query: Query) -> str:
    """All of the words, the last one also as the beginning of a longer one."""
    return " AND ".join(word(one, begun=one == query.prefix) for one in query.words)


def beginning(query: Query) -> str:
    """Words that the last one is the beginning of, itself among them."""
    return word(query.prefix, begun=True)


def begun_alone(query: Query) -> str:
    """What these are asked for as, besides itself, which is among them only where its stem begins so too."""
    return " OR ".join(_begun(query.prefix))


def longer(query: Query) -> str:
    """The same without itself, which counts as a word."""
    return f"{beginning(query)} NOT {word(query.prefix)}"


def guessed(query: Query) -> str:
    """Of these what begins so only in another form, if at all; empty where there is none."""
    if not (guesses := beginning_of(query.prefix).guessed):
        return ""
    return f"({any_of(guesses)}) NOT ({' OR '.join([word(query.prefix), *_exactly_begun(query.prefix)])})"
