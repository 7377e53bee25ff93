"""Whether both indexes hold what the documents say, and nothing else; and making them anew from these.

Nobody sees in `documents` that an index lost something: searching just finds less. FTS5 compares the words with the
documents itself. It cannot do so with the trigrams, which are those of the columns with something after each: of them
it looks whether they hang together, and here it is counted whether every row has as many as its text has characters.
"""

import sqlite3
from collections.abc import Iterator

from chunksink.sinks.fts import schema

_DUE = 1  # PRAGMA application_id
_WORDS, _TRIGRAMS = schema.INDEXES
_COLUMNS = ", ".join(schema.SEARCHED)
_INDEXED = schema.indexed(_TRIGRAMS, "documents")
_CHARACTERS = " + ".join(f"coalesce(length({told}) - {len(schema.AFTER)}, 0)" for told in _INDEXED)

# How many, and in which rows: of both the same, or something is missing, too much or in another row.
_COUNTS = (
    (
        f"SELECT count(*), coalesce(sum(id), 0) FROM {_TRIGRAMS}_docsize",
        "SELECT count(*), coalesce(sum(row), 0) FROM documents WHERE spaceless",
    ),
    (
        "SELECT count(*), coalesce(sum(doc), 0) FROM documents_places",
        "SELECT coalesce(sum(characters), 0), coalesce(sum(row * characters), 0) "
        f"FROM (SELECT row, {_CHARACTERS} AS characters FROM documents WHERE spaceless)",
    ),
)
_CHECKS = {_WORDS: 1, _TRIGRAMS: 0}
"""1 compares with the documents."""


def damage(connection: sqlite3.Connection) -> str:
    """What is wrong with them, in words; "" where nothing is. Within a transaction, so that nobody writes meanwhile."""
    return " and ".join(_wrong(connection))


def note(connection: sqlite3.Connection) -> None:
    """They are to be made anew before anything else is written, whoever does so."""
    connection.execute(f"PRAGMA application_id = {_DUE}")


def rebuild_if_noted(connection: sqlite3.Connection) -> None:
    """Makes them anew where that has been noted; within the transaction that writes."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != _DUE:
        return
    connection.execute(f"INSERT INTO {_WORDS}({_WORDS}) VALUES ('rebuild')")
    connection.execute(f"INSERT INTO {_TRIGRAMS}({_TRIGRAMS}) VALUES ('delete-all')")
    connection.execute(
        f"INSERT INTO {_TRIGRAMS}(rowid, {_COLUMNS}) SELECT row, {', '.join(_INDEXED)} FROM documents WHERE spaceless"
    )
    connection.execute("PRAGMA application_id = 0")


def _wrong(connection: sqlite3.Connection) -> Iterator[str]:
    if not _holds_together(connection, _WORDS):
        yield "its index of words is not that of its documents"
    if not _holds_together(connection, _TRIGRAMS) or not _counts_agree(connection):
        yield "its index of trigrams is not that of its documents"


def _holds_together(connection: sqlite3.Connection, index: str) -> bool:
    try:
        connection.execute(f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', {_CHECKS[index]})")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return False
    return True


def _counts_agree(connection: sqlite3.Connection) -> bool:
    return all(
        tuple(connection.execute(held).fetchone()) == tuple(connection.execute(due).fetchone()) for held, due in _COUNTS
    )
