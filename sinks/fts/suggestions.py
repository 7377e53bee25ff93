"""Spelling suggestions for query words that are missing from all documents that pass the filters."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from itertools import islice
from os.path import commonprefix

from chunksink.sinks.fts import expressions, schema, snippets
from chunksink.sinks.fts.filters import as_sql
from chunksink.sinks.fts.query import Query
from chunksink.sinks.fts.tenant import Tenant, tenant_of
from chunksink.sinks.fts.word_forms import folded, words_of
from chunksink.sinks.reader import Filter

MIN_LETTERS = 5
"""Shorter words are similar to too many others."""
MAX_WORDS = 8
_LONG = 12
_NEAR_STEM = 0.7
_TRIES = 10
_UMLAUTS = (("ae", "ä"), ("oe", "ö"), ("ue", "ü"))
_FORMS = 20
"""How many documents are read for the spelling of a word."""
# Only words with the same first letter: typos there are rare. For 80,000 texts it still takes 20 to 30 ms.
_VOCABULARY = "SELECT term FROM documents_vocabulary WHERE term >= ? AND term < ? AND length(term) BETWEEN 3 AND ?"


def prepare(connection: sqlite3.Connection) -> None:
    for table, kind in (("documents_vocabulary", "row"), ("documents_terms", "instance")):
        connection.execute(f"CREATE VIRTUAL TABLE temp.{table} USING fts5vocab(main, documents_fts, {kind})")


def suggestions(connection: schema.Connection, query: Query, filters: Sequence[Filter]) -> dict[str, str]:
    """By query word: a similar word, if the query word is missing from all documents that pass the filters."""
    words = [word for word in query.words[:MAX_WORDS] if len(folded(word)) >= MIN_LETTERS and word.isalpha()]
    expression_of = {word: expressions.word(word, as_prefix=word == query.prefix) for word in words}
    missing = [word for word in words if not any(_forms(connection, expression_of[word], filters))]
    found = {word: _nearest(connection, word, filters) for word in missing}
    return {word: near for word, near in found.items() if near}


def _nearest(connection: schema.Connection, word: str, filters: Sequence[Filter]) -> str:
    typed = umlauted = word.lower()
    for digraph, umlaut in _UMLAUTS:  # Koeln is Köln
        umlauted = umlauted.replace(digraph, umlaut)
    if umlauted != typed and any(_forms(connection, expressions.word(umlauted), filters)):
        return umlauted
    forms: set[str] = set()
    for one in words_of(_near_stems(connection, folded(typed), tenant_of(connection, filters))):
        forms.update(form.lower() for form in _forms(connection, expressions.quoted(one), filters))
    return next(iter(close_matches(typed, forms - {typed}, 1)), "")


def close_matches(word: str, candidates: Iterable[str], most: int) -> list[str]:
    """The candidates that differ only by typing errors, the closest first: one wrong, missing, added or swapped letter,
    or two in words of twelve letters or more. So *marketing* does not become *marking*."""
    errors = 2 if len(word) >= _LONG else 1
    similar = [one for one in candidates if _differ_at_most(errors, folded(word), folded(one))]
    return get_close_matches(word, similar, n=most, cutoff=0.0)


def _differ_at_most(errors: int, one: str, other: str) -> bool:
    same = len(commonprefix((one, other)))  # noqa: RUF071 (not paths)
    one, other = one[same:], other[same:]
    if not (errors and one and other):
        return len(one) + len(other) <= errors
    rests = [(one[1:], other[1:]), (one[1:], other), (one, other[1:])]
    if one[:2] == other[:2][::-1]:  # swapped
        rests.append((one[2:], other[2:]))
    return any(_differ_at_most(errors - 1, *rest) for rest in rests)


def _near_stems(connection: sqlite3.Connection, typed: str, tenant: Tenant | None) -> list[str]:
    """Stems that resemble a beginning of the word. A stem of n letters is compared with the first n letters of the
    word. The stem of the whole word would not help: with a typo in its ending, the stemmer does not remove the ending.

    For a tenant, only stems that occur in its documents.
    """
    head = typed[0]
    of_length: dict[int, list[str]] = {}
    for (term,) in connection.execute(_VOCABULARY, [head, chr(ord(head) + 1), len(typed) + 1]):
        of_length.setdefault(len(term), []).append(term)
    near = [
        (SequenceMatcher(None, typed[:length], term).ratio(), term)
        for length, terms in of_length.items()
        for term in get_close_matches(typed[:length], terms, n=len(terms) if tenant else _TRIES, cutoff=_NEAR_STEM)
    ]
    ranked = (term for _, term in sorted(near, reverse=True))
    return list(islice((term for term in ranked if tenant is None or _has_term(connection, tenant, term)), _TRIES))


def _has_term(connection: sqlite3.Connection, tenant: Tenant, term: str) -> bool:
    exists = f"SELECT EXISTS(SELECT 1 FROM documents_terms one WHERE one.term = ? AND {tenant.owns('one.doc')})"
    return bool(connection.execute(exists, [term, *tenant.values]).fetchone()[0])


def _forms(connection: sqlite3.Connection, expression: str, filters: Sequence[Filter]) -> Iterator[str]:
    """How documents that pass the filters spell the matches of the expression. Read only as far as needed."""
    where, values = as_sql(filters)
    rows = connection.execute(
        "SELECT snippet(documents_fts, -1, char(2), char(3), '', 1) FROM documents_fts "
        f"JOIN documents d ON d.row = documents_fts.rowid WHERE documents_fts MATCH ? AND {where} LIMIT {_FORMS}",
        [expression, *values],
    )
    return (piece.text for (marked,) in rows for piece in snippets.pieces(marked) if piece.match)
