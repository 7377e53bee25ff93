"""Checks whether both indexes match the documents, and rebuilds them.

With a damaged index, searches miss documents, although `documents` is complete. FTS5 can compare the word index with
the documents, but not the trigram index, because each of its texts ends with a suffix that the documents lack. FTS5
only checks that the trigram index is consistent in itself, and this module checks that all rows together have as many
trigrams as their texts have characters.
"""

import sqlite3

from chunksink.sinks.fts import schema

_REBUILD_REQUESTED = 1  # PRAGMA application_id
_WORDS, _TRIGRAMS = schema.INDEXES
_COLUMNS = ", ".join(schema.SEARCHED)
_INDEXED = schema.indexed(_TRIGRAMS)
_CHARACTERS = " + ".join(f"coalesce(length({column}) - {len(schema.SUFFIX)}, 0)" for column in _INDEXED)

# Pairs of statements that must agree: the number of entries, and the sum of their row numbers.
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
"""The argument of FTS5's check; 1 compares with the documents."""


def broken_table(connection: sqlite3.Connection) -> str:
    """What is wrong with the documents and their B-tree indexes, as text; "" if nothing is. Only a new build helps,
    because every write reads these, and so does a rebuild of the search indexes."""
    found = str(connection.execute("PRAGMA integrity_check(documents)").fetchone()[0])
    return "" if found == "ok" else " ".join(found.split())


def damage(connection: sqlite3.Connection) -> str:
    """What is wrong with both indexes, as text; "" if nothing is. Call it in a transaction that excludes writers."""
    wrong = [] if _is_consistent(connection, _WORDS) else ["its word index does not match its documents"]
    if not _is_consistent(connection, _TRIGRAMS) or not _counts_agree(connection):  # counting needs consistency
        wrong.append("its trigram index does not match its documents")
    return " and ".join(wrong)


def request_rebuild(connection: sqlite3.Connection) -> None:
    """Make the next writer rebuild the indexes first."""
    connection.execute(f"PRAGMA application_id = {_REBUILD_REQUESTED}")


def rebuild_if_requested(connection: sqlite3.Connection) -> None:
    """Rebuild the indexes if `request_rebuild` was called. Call it in the transaction of the write."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != _REBUILD_REQUESTED:
        return
    connection.execute(f"INSERT INTO {_WORDS}({_WORDS}) VALUES ('rebuild')")
    connection.execute(f"INSERT INTO {_TRIGRAMS}({_TRIGRAMS}) VALUES ('delete-all')")
    connection.execute(
        f"INSERT INTO {_TRIGRAMS}(rowid, {_COLUMNS}) SELECT row, {', '.join(_INDEXED)} FROM documents WHERE spaceless"
    )
    connection.execute("PRAGMA application_id = 0")


def _is_consistent(connection: sqlite3.Connection, index: str) -> bool:
    try:
        connection.execute(f"INSERT INTO {index}({index}, rank) VALUES ('integrity-check', {_CHECKS[index]})")
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return False
    return True


def _counts_agree(connection: sqlite3.Connection) -> bool:
    return all(
        tuple(connection.execute(indexed).fetchone()) == tuple(connection.execute(expected).fetchone())
        for indexed, expected in _COUNTS
    )
