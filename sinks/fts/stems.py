"""Words as the index has them: small letters without accents, and what is left of a word without its endings."""

import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence

from chunksink.sinks.fts.schema import TOKENIZER

DISGUISES = ("", "ness", "e", "l")
"""What the stemmer takes off again: with one of them most stems are words whose stem they are."""


def stems_of(words: Sequence[str]) -> dict[str, str]:
    """As FTS5 has them, of an index in memory that holds nothing else; empty for what is no word."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.execute(f"CREATE VIRTUAL TABLE words USING fts5(word, content='', tokenize='{TOKENIZER}')")
        connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab(words, instance)")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO words(rowid, word) VALUES (?, ?)", enumerate(words))
        held = dict(connection.execute("SELECT doc, term FROM stems").fetchall())
        return {word: held.get(row, "") for row, word in enumerate(words)}
    finally:
        connection.close()


def folded(word: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(sign))


def words_of(stems: Iterable[str]) -> list[str]:
    """For each of these stems a word that has it, where there is a disguise."""
    stem_of = stems_of([stem + disguise for stem in stems for disguise in DISGUISES])
    found: dict[str, str] = {}
    for word, stem in stem_of.items():
        if word.removeprefix(stem) in DISGUISES:
            found.setdefault(stem, word)
    return list(found.values())
