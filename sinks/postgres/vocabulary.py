"""The words of a build in a table of their own, where pg_trgm finds the ones that are similar to a misspelt word.

    vocabulary_ID    one row per word that a document of the build has or had

Without the extension pg_trgm there is no such table, and no word is corrected.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from itertools import islice

import psycopg
from psycopg import sql

from chunksink.sinks.fts.query import Query
from chunksink.sinks.postgres.connection import Connection, Statement, rows
from chunksink.sinks.postgres.schema import WEIGHTED, Place, configuration

_SHORTEST = 5
"""Shorter words are similar to too many."""
_MAX_WORDS = 8
_CANDIDATES = 20
_NEAR = 0.8
"""The least ratio of difflib: one wrong letter in five, or two swapped ones."""


def table(place: Place) -> sql.Identifier:
    return sql.Identifier(place.schema, f"vocabulary_{place.build_id}")


def create(connection: Connection, place: Place) -> None:
    """Create an empty table, in the caller's transaction, if this role can use pg_trgm."""
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            connection.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} (word text PRIMARY KEY)").format(table(place)))
            connection.execute(
                sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} USING gin (word gin_trgm_ops)").format(
                    sql.Identifier(f"vocabulary_{place.build_id}_similar"), table(place)
                )
            )
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):
        return


def exists(connection: Connection, place: Place) -> bool:
    [(found,)] = rows(connection, sql.SQL("SELECT to_regclass(%s) IS NOT NULL"), [table(place).as_string(connection)])
    return bool(found)


def add_staged(place: Place) -> Statement:
    """The statement that adds the words of the staged documents."""
    texts = sql.SQL(", ").join(map(sql.Identifier, WEIGHTED.values()))
    return sql.SQL(
        "INSERT INTO {} SELECT DISTINCT word FROM staged, unnest(string_to_array(concat_ws(' ', {}), ' ')) AS word "
        "WHERE length(word) BETWEEN {} AND 40 AND word ~ '^[[:alpha:]]+$' ON CONFLICT DO NOTHING"
    ).format(table(place), texts, sql.Literal(_SHORTEST - 1))


def remove_unused(connection: Connection, place: Place, language: str) -> None:
    """Remove the words that no document has any more."""
    connection.execute(
        sql.SQL(
            "DELETE FROM {words} WHERE NOT EXISTS (SELECT 1 FROM {build} AS one "
            "WHERE one.words @@ to_tsquery({config}::regconfig, word))"
        ).format(
            words=table(place), build=place.table, config=sql.Literal(configuration(place.schema, language).as_string())
        )
    )
    connection.execute(sql.SQL("VACUUM {}").format(table(place)))


def drop(connection: Connection, place: Place) -> None:
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table(place)))


def corrections(connection: Connection, place: Place, query: Query, occurs: Callable[[str], bool]) -> dict[str, str]:
    """By query word: a similar word, if the query word is missing. `occurs` decides whether a document has a word."""
    words = [word for word in query.words[:_MAX_WORDS] if len(word) >= _SHORTEST and word.isalpha()]
    if not words or not exists(connection, place):
        return {}
    found = {word: _nearest(connection, place, word, occurs) for word in words if not occurs(word)}
    return {word: near for word, near in found.items() if near}


def _nearest(connection: Connection, place: Place, word: str, occurs: Callable[[str], bool]) -> str:
    similar = sql.SQL("SELECT word FROM {} WHERE word %% %s ORDER BY similarity(word, %s) DESC, word LIMIT {}").format(
        table(place), sql.Literal(_CANDIDATES)
    )
    candidates: Iterable[str] = (other for (other,) in rows(connection, similar, [word, word]))
    near = get_close_matches(word.lower(), list(candidates), n=_CANDIDATES, cutoff=_NEAR)
    return next(islice(filter(occurs, near), 1), "")
