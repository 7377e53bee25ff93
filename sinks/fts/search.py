"""One question to one state of a keyword build: what matches, how well, and what to show of it."""

import sqlite3
from collections.abc import Sequence

from sinks.document import LISTS
from sinks.fts import query as query_
from sinks.fts import schema, snippets
from sinks.fts.query import Query
from sinks.reader import FacetValue, Filter, Hit, Piece

_MOST_EXPANSIONS = 40  # trigrams that a word of one or two characters may stand for
_NOTHING = '""'


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
        if expression := self._any_part(query):
            parts.append("SELECT rowid FROM documents_trigrams WHERE documents_trigrams MATCH ?")
            values.append(expression)
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
        runs = " AND ".join(f"({self._run(run)})" for run in query.runs)
        if not (words and runs):
            return self._matches("documents_fts", words, limit) | self._matches("documents_trigrams", runs, limit)
        apart = self._in_both(words, runs, limit)
        together = self._matches("documents_trigrams", f"{runs} AND {words}", limit)
        return together | apart

    def _loose(self, query: Query, limit: int) -> dict[int, float]:
        scores = self._matches("documents_fts", query_.any_word(query), limit)
        for row, score in self._matches("documents_trigrams", self._any_part(query), limit).items():
            scores[row] = scores.get(row, 0.0) + score
        return scores

    def _matches(self, table: str, expression: str, limit: int) -> dict[int, float]:
        """Rows and scores of the best matches in one index. FTS5's rank is BM25 with the schema's weights, negative."""
        if not expression:
            return {}
        join = f"JOIN documents d ON d.row = {table}.rowid" if self._filtered else ""
        rows = self._connection.execute(
            f"SELECT {table}.rowid, -{table}.rank FROM {table} {join} "
            f"WHERE {table} MATCH ? AND {self._where} ORDER BY {table}.rank LIMIT ?",
            [expression, *self._values, limit],
        )
        return dict(tuple(row) for row in rows)

    def _in_both(self, words: str, runs: str, limit: int) -> dict[int, float]:
        rows = self._connection.execute(
            "SELECT d.row, -(documents_fts.rank + documents_trigrams.rank) AS score FROM documents_fts "
            "JOIN documents_trigrams ON documents_trigrams.rowid = documents_fts.rowid "
            "JOIN documents d ON d.row = documents_fts.rowid "
            f"WHERE documents_fts MATCH ? AND documents_trigrams MATCH ? AND {self._where} ORDER BY score DESC LIMIT ?",
            [words, runs, *self._values, limit],
        )
        return dict(tuple(row) for row in rows)

    def _any_part(self, query: Query) -> str:
        expressions = [self._run(part) for part in query_.parts(query)]
        return " OR ".join(expression for expression in expressions if expression != _NOTHING)

    def _run(self, run: str) -> str:
        """A run as an expression on trigrams: a short one stands for the trigrams that begin with it."""
        if len(run) > 2:
            return query_.quoted(run)
        rows = self._connection.execute(
            "SELECT term FROM documents_terms WHERE term >= ? AND term < ? ORDER BY doc DESC LIMIT ?",
            [run, run[:-1] + chr(ord(run[-1]) + 1), _MOST_EXPANSIONS],
        )
        return query_.any_of([row[0] for row in rows]) or _NOTHING

    def _hits(self, query: Query, ranked: list[tuple[int, float]]) -> list[Hit]:
        if not ranked:
            return []
        marks = ", ".join("?" * len(ranked))
        rows = {
            row["row"]: row
            for row in self._connection.execute(
                f"SELECT row, id, parent_id, text FROM documents WHERE row IN ({marks})", [row for row, _ in ranked]
            )
        }
        shown = self._snippets(query, list(rows))
        needles = [*query.runs, *query_.parts(query)]
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
            f"AND rowid IN ({', '.join('?' * len(rows))})",
            [query_.any_word(query), *rows],
        )
        return {row[0]: snippets.pieces(row[1]) for row in found}
