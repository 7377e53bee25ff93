"""One question to one state of a keyword build: what matches, how well, and what to show of it."""

import json
import sqlite3
from collections.abc import Sequence

from sinks.document import LISTS
from sinks.fts import query as query_
from sinks.fts import schema, short, snippets
from sinks.fts.query import Query
from sinks.reader import FacetValue, Filter, Hit, Piece

_KEYS = 500  # rows in one statement

Source = tuple[str, list[str]]
"""A statement that gives rows and their scores, and its values."""


class Search:
    """One question to one state of the index."""

    def __init__(self, connection: sqlite3.Connection, filters: Sequence[Filter]) -> None:
        self._connection = connection
        self._filtered = bool(filters)
        self._where, self._values = query_.where(filters)

    def everything(self, limit: int) -> list[Hit]:
        rows = self._connection.execute(
            f"SELECT d.id, d.parent_id FROM documents d WHERE {self._where} "
            "ORDER BY d.parent_id, d.chunk_index, d.id LIMIT ?",
            [*self._values, limit],
        )
        return [Hit(row["id"], row["parent_id"], 0.0) for row in rows]

    def best(self, query: Query, limit: int) -> list[Hit]:
        """First what holds all words, then what holds some of them; scores go down across both."""
        strict = self._strict(query, limit)
        loose: dict[int, float] = {}
        if len(strict) < limit:
            loose = self._loose(query, limit + len(strict))
        rest = sorted((row for row in loose if row not in strict), key=lambda row: (-loose[row], row))
        rest = rest[: limit - len(strict)]
        floor = loose[rest[0]] if rest else 0.0
        ranked = [(row, score + floor) for row, score in sorted(strict.items(), key=lambda item: (-item[1], item[0]))]
        ranked += [(row, loose[row]) for row in rest]
        return self._hits(query, ranked)

    def found(self, query: Query) -> tuple[str, list[str]]:
        """A condition on `documents` as d for all that `best` can come to, and its values."""
        parts, values = [], []
        if query.words:
            parts.append("SELECT rowid FROM documents_fts WHERE documents_fts MATCH ?")
            values.append(query_.any_word(query))
        if expression := query_.any_of(query_.attached(query)):
            parts.append("SELECT rowid FROM documents_trigrams WHERE documents_trigrams MATCH ?")
            values.append(expression)
        if runs := query_.shorts(query):
            parts.append(short.ROWS)
            values.append(json.dumps(runs))
        return (f"d.row IN ({' UNION '.join(parts)})" if parts else "0"), values

    def facet(self, field: str, found: tuple[str, list[str]], limit: int) -> list[FacetValue]:
        condition, values = found
        source, value = "documents d", f"d.{field}"
        if field in LISTS:
            source, value = f"documents d, json_each(d.{field}) label", "label.value"
        rows = self._connection.execute(
            f"SELECT {value} AS value, count(DISTINCT d.parent_id) AS families FROM {source} "
            f"WHERE {condition} AND {self._where} AND {value} IS NOT NULL "
            "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?",
            [*values, *self._values, limit],
        )
        boolean = field in schema.BOOLEANS
        return [FacetValue(bool(row["value"]) if boolean else row["value"], row["families"]) for row in rows]

    def _strict(self, query: Query, limit: int) -> dict[int, float]:
        words = query_.all_of(query.words)
        runs = query_.all_of([run for run in query.runs if len(run) > 2])
        few = [run for run in query.runs if len(run) <= 2]
        always = [_short(few, len(few))] if few else []
        apart = [_match(*each) for each in (("documents_fts", words), ("documents_trigrams", runs)) if each[1]]
        found = self._ranked([*apart, *always], limit, all_of=True)
        if not (words and query.runs):
            return found
        together = _match("documents_trigrams", f"{runs} AND {words}" if runs else words)
        return self._ranked([together, *always], limit, all_of=True) | found

    def _loose(self, query: Query, limit: int) -> dict[int, float]:
        words, attached = query_.any_word(query), query_.any_of(query_.attached(query))
        sources = [_match(*each) for each in (("documents_fts", words), ("documents_trigrams", attached)) if each[1]]
        if runs := query_.shorts(query):
            sources.append(_short(runs, 1))
        return self._ranked(sources, limit)

    def _ranked(self, sources: Sequence[Source], limit: int, *, all_of: bool = False) -> dict[int, float]:
        """The best rows of any of the sources, or of those that all have; their scores there are added up."""
        if not sources:
            return {}
        found = " UNION ALL ".join(f"SELECT * FROM ({statement})" for statement, _ in sources)
        if len(sources) > 1:
            least = len(sources) if all_of else 1
            found = f"SELECT row, sum(score) AS score FROM ({found}) GROUP BY row HAVING count(*) >= {least}"
        join = "JOIN documents d ON d.row = found.row" if self._filtered else ""
        rows = self._connection.execute(
            f"SELECT found.row, found.score FROM ({found}) found {join} WHERE {self._where} "
            "ORDER BY found.score DESC, found.row LIMIT ?",
            [*(value for _, values in sources for value in values), *self._values, limit],
        )
        return dict(tuple(row) for row in rows)

    def _hits(self, query: Query, ranked: list[tuple[int, float]]) -> list[Hit]:
        rows: dict[int, sqlite3.Row] = {}
        shown: dict[int, tuple[Piece, ...]] = {}
        for start in range(0, len(ranked), _KEYS):
            some = [row for row, _ in ranked[start : start + _KEYS]]
            statement = f"SELECT row, id, parent_id, text FROM documents WHERE row IN ({_marks(some)})"
            rows.update((row["row"], row) for row in self._connection.execute(statement, some))
            shown |= self._snippets(query, some)
        needles = [*query.runs, *query_.shorts(query), *query_.attached(query)]
        return [
            Hit(
                rows[row]["id"],
                rows[row]["parent_id"],
                score,
                shown.get(row) or snippets.around(rows[row]["text"], needles),
            )
            for row, score in ranked
        ]

    def _snippets(self, query: Query, rows: list[int]) -> dict[int, tuple[Piece, ...]]:
        """Snippets of the rows that hold one of the words; FTS5 knows which inflected forms it found."""
        if not query.words:
            return {}
        found = self._connection.execute(
            f"SELECT rowid, {snippets.CALL} FROM documents_fts WHERE documents_fts MATCH ? "
            f"AND rowid IN ({_marks(rows)})",
            [query_.any_word(query), *rows],
        )
        return {row[0]: snippets.pieces(row[1]) for row in found}


def _match(table: str, expression: str) -> Source:
    """FTS5's rank is BM25 with the schema's weights, negative."""
    return f"SELECT rowid AS row, -rank AS score FROM {table} WHERE {table} MATCH ?", [expression]


def _short(runs: Sequence[str], least: int) -> Source:
    return short.scores(least=least), [json.dumps(runs)]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
