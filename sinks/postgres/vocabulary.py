"""The words of a build in a table of their own, where pg_trgm finds the ones that are similar to a misspelt word.

    vocabulary_ID    one row per word of 4 to 40 letters that a document of the build has or had

Without the extension pg_trgm there is no such table, and no word is corrected.
"""

from collections.abc import Callable, Iterable, Sequence

import psycopg
from psycopg import sql

from chunksink.sinks.fts.query import Query
from chunksink.sinks.fts.suggestions import MAX_WORDS, MIN_LETTERS, close_matches
from chunksink.sinks.postgres.connection import Connection, rows
from chunksink.sinks.postgres.schema import BuildTable, configuration
from chunksink.sinks.postgres.words import folded

_MAX_LETTERS = 40


def table(build: BuildTable) -> sql.Identifier:
    return sql.Identifier(build.schema, f"vocabulary_{build.build_id}")


def create(connection: Connection, build: BuildTable) -> None:
    """Create an empty table, in the caller's transaction, if this role can use pg_trgm."""
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            connection.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} (word text PRIMARY KEY)").format(table(build)))
            connection.execute(
                sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} USING gin (word gin_trgm_ops)").format(
                    sql.Identifier(f"vocabulary_{build.build_id}_similar"), table(build)
                )
            )
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):
        return


def exists(connection: Connection, build: BuildTable) -> bool:
    [(found,)] = rows(connection, sql.SQL("SELECT to_regclass(%s) IS NOT NULL"), [table(build).as_string(connection)])
    return bool(found)


def add(connection: Connection, build: BuildTable, words: Iterable[str]) -> None:
    """Add the words that can be corrections."""
    usable = [word for word in words if MIN_LETTERS - 1 <= len(word) <= _MAX_LETTERS and word.isalpha()]
    statement = sql.SQL("INSERT INTO {} SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING").format(table(build))
    connection.execute(statement, [usable])


def remove_unused(connection: Connection, build: BuildTable, language: str) -> None:
    """Remove the words that no document has any more."""
    connection.execute(
        sql.SQL(
            "DELETE FROM {words} WHERE NOT EXISTS (SELECT 1 FROM {build} AS one "
            "WHERE one.words @@ to_tsquery({config}::regconfig, word))"
        ).format(
            words=table(build), build=build.table, config=sql.Literal(configuration(build.schema, language).as_string())
        )
    )
    connection.execute(sql.SQL("VACUUM {}").format(table(build)))


def drop(connection: Connection, build: BuildTable) -> None:
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table(build)))


def corrections(
    connection: Connection,
    build: BuildTable,
    query: Query,
    occurring: Callable[[Sequence[str]], Sequence[str]],
    spelling: Callable[[str], str],
) -> dict[str, str]:
    """By query word: a similar word, if the query word is missing.

    `occurring` selects words that a document has in any form. `spelling` is how a document spells a word; empty if none
    has it.
    """
    words = [word for word in query.words[:MAX_WORDS] if len(word) >= MIN_LETTERS and word.isalpha()]
    missing = set(words).difference(occurring(words))
    if not missing or not exists(connection, build):
        return {}
    similar = {word: _similar(connection, build, word) for word in words if word in missing}
    found = {word: next(filter(None, map(spelling, near)), "") for word, near in similar.items()}
    return {word: near for word, near in found.items() if near}


def _similar(connection: Connection, build: BuildTable, word: str) -> list[str]:
    """All similar words, the most similar first. Not only the best, because a tenant may have just one of them."""
    word = folded(word)
    similar = sql.SQL("SELECT word FROM {} WHERE word %% %s AND abs(length(word) - %s) <= 2").format(table(build))
    candidates = [other for (other,) in rows(connection, similar, [word, len(word)])]
    return close_matches(word, candidates, len(candidates) + 1)
