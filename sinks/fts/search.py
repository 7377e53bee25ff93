"""One question to one state of a keyword build: what matches, how well, and what to show of it."""

import json
import math
import re
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace

from chunksink.sinks.document import LISTS
from chunksink.sinks.fts import expressions, schema, snippets, statements, text_patterns
from chunksink.sinks.fts.filters import as_sql
from chunksink.sinks.fts.query import FEW, MOST_TERMS, Query, names_of
from chunksink.sinks.fts.tenant import K1, tenant_of
from chunksink.sinks.fts.text_patterns import Claim
from chunksink.sinks.reader import FacetValue, Filter, Hit, Piece, Value

_LOOKED_AT = 500  # texts of the best, where the index cannot tell whether they have what was typed
_NOT_AS_TYPED = 0.1
_FEW_ROWS = 20  # hold what tells one thing from all others
_HALF_OF_IT = 0.5  # words and runs have BM25 of different indexes, so that one of them must not win alone


class Search:
    """One question to one state of the index."""

    def __init__(self, connection: schema.Connection, filters: Sequence[Filter]) -> None:
        self._connection = connection
        self._filtered = bool(filters)
        self._tenant = tenant_of(connection, filters)
        self._where, self._values = as_sql(filters)

    def everything(self, limit: int) -> list[Hit]:
        rows = self._connection.execute(
            f"SELECT d.id, d.parent_id FROM documents d WHERE {self._where} "
            "ORDER BY d.parent_id, d.chunk_index, d.id LIMIT ?",
            [*self._values, limit],
        )
        return [Hit(row["id"], row["parent_id"], 0.0) for row in rows]

    def best(self, query: Query, limit: int) -> list[Hit]:
        """By BM25 of the words and of the runs of scripts without spaces, added up; only what holds all phrases."""
        query = self._rarest(query)
        begun_weight = self._begun_weight(query)
        claims = tuple(text_patterns.claims(query, begun_weight))
        sources = statements.sources_of(query, begun_weight, self._tenant)
        ranked = self._ranked(sources, query.phrases, max(limit, _LOOKED_AT) if claims else limit)
        return self._hits(self._proved(ranked, claims)[:limit])

    def most(self, query: Query) -> float | None:
        """What BM25 comes to for a document that is full of all the words; not known for runs, which overlap. Where one
        holds all of them, however often, or all the rare names with digits among them (E-417), there is nothing better
        to wait for."""
        query = self._rarest(query)
        if query.runs or not query.words or self._holds_all(query):
            return None
        rows = self._about_rows()
        held = {word: self._held_by(query, word) for word in query.words}
        named = tuple(word for word in names_of(query) if 0 < held[word] <= _FEW_ROWS)
        if named and self._holds_all(replace(query, words=named)):
            return None
        words = sum(statements.idf(rows, number) for number in held.values())
        joined = sum(statements.idf(rows, self._count(expressions.word(one))) for one in query.joined)
        return (K1 + 1) * (words + statements.JOINED_WEIGHT * joined)

    def _holds_all(self, query: Query) -> bool:
        owned, own = self._owned("documents_fts.rowid")
        held = f"SELECT EXISTS(SELECT 1 FROM documents_fts WHERE documents_fts MATCH ? {owned})"
        if self._connection.execute(held, [expressions.every_word(query), *own]).fetchone()[0]:
            return True
        if len(query.words) > FEW:
            return False
        rows, values = statements.holding(query.words, query.prefix)  # beside scripts without spaces
        owned, own = self._owned("found.row")
        held = f"SELECT EXISTS(SELECT 1 FROM ({rows}) found WHERE 1 {owned})"
        return bool(self._connection.execute(held, [*values, *own]).fetchone()[0])

    def _owned(self, row: str) -> tuple[str, list[Value]]:
        """What is added to the conditions on a row where only a tenant's own ones count, and its values."""
        return (f"AND {self._tenant.owns(row)}", self._tenant.values) if self._tenant else ("", [])

    def _rarest(self, query: Query) -> Query:
        """Of many words those that say most; what is nowhere says nothing."""
        if len(query.words) <= MOST_TERMS:
            return query
        held = {word: self._held_by(query, word) for word in query.words}
        kept = frozenset(sorted(query.words, key=lambda word: held[word] or math.inf)[:MOST_TERMS])
        words = tuple(word for word in query.words if word in kept)
        return replace(query, words=words, prefix=query.prefix if query.prefix in words else "")

    def _begun_weight(self, query: Query) -> float:
        """Words that begin with a word but not with its stem are rarer than it and would count for more: they give what
        they and it together would."""
        if not query.prefix:
            return statements.BEGUN_WEIGHT
        rows = self._about_rows()
        alone = statements.idf(rows, self._count(expressions.begun_alone(query)))
        together = statements.idf(rows, self._count(expressions.beginning(query)))
        return statements.BEGUN_WEIGHT * together / alone

    def _held_by(self, query: Query, word: str) -> int:
        return self._count(expressions.word(word, begun=word == query.prefix))

    def _count(self, expression: str) -> int:
        owned, own = self._owned("documents_fts.rowid")
        count = f"SELECT count(*) FROM documents_fts WHERE documents_fts MATCH ? {owned}"
        return int(self._connection.execute(count, [expression, *own]).fetchone()[0])

    def _about_rows(self) -> int:
        """Rows are numbered upwards: about how many there are, without counting them."""
        if self._tenant:
            return self._tenant.lengths("documents_fts").rows
        return self._connection.execute("SELECT max(row) FROM documents").fetchone()[0] or 0

    def found(self, query: Query) -> tuple[str, list[Value]]:
        """A condition on `documents` as d for all that `best` can come to, and its values."""
        query = self._rarest(query)
        parts: list[str] = []
        values: list[Value] = []
        if query.words:
            parts.append("SELECT rowid FROM documents_fts WHERE documents_fts MATCH ?")
            values.append(expressions.any_word(query))
        if attached := statements.beside(query, self._tenant):
            parts.append(f"SELECT row FROM ({attached[0]})")
            values += attached[1]
        if runs := statements.short_runs(query):
            parts.append(statements.ROWS)
            values.append(json.dumps(runs))
        condition = f"d.row IN ({' UNION '.join(parts)})" if parts else "0"
        if query.phrases:
            rows, held = statements.holding(query.phrases, literally=True)
            condition, values = f"{condition} AND d.row IN ({rows})", [*values, *held]
        return condition, values

    def facets(self, fields: Sequence[str], found: tuple[str, list[Value]], limit: int) -> dict[str, list[FacetValue]]:
        """All fields of a row are counted when it is read: where it stands costs more than what it holds."""
        condition, values = found
        counted: dict[str, list[FacetValue]] = {field: [] for field in fields}
        if not counted:
            return counted
        columns = ", ".join(f"d.{field} AS {field}" for field in dict.fromkeys([*counted, "parent_id"]))
        counts = " UNION ALL ".join(f"SELECT * FROM ({_counts(field)} LIMIT ?)" for field in counted)
        matching = f"SELECT {columns} FROM documents d WHERE {condition} AND {self._where}"
        rows = self._connection.execute(
            f"WITH found AS MATERIALIZED ({matching}) {counts}",
            [*values, *self._values, *[limit] * len(counted)],
        )
        for field, value, families in rows:
            counted[field].append(FacetValue(bool(value) if field in schema.BOOLEANS else value, families))
        return counted

    def _ranked(self, sources: statements.Sources, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """The best rows of any of the sources, their scores there added up, that hold the phrases."""
        asked = [(kind, *source) for kind, of_kind in sources.items() for source in of_kind]
        if not asked:
            return []
        found = " UNION ALL ".join(f"SELECT row, score, '{kind}' AS kind FROM ({told})" for kind, told, _ in asked)
        if len(asked) > 1:
            whole = f"iif(count(DISTINCT kind) = {len(sources)}, 1, {_HALF_OF_IT})"
            found = f"SELECT row, sum(score) * {whole} AS score FROM ({found}) GROUP BY row"
        join = "JOIN documents d ON d.row = found.row" if self._filtered else ""
        holding, held = statements.holding(phrases, literally=True)
        rows = self._connection.execute(
            f"SELECT found.row, found.score FROM ({found}) found {join} WHERE {self._where} "
            f"{f'AND found.row IN ({holding})' if phrases else ''} ORDER BY found.score DESC, found.row LIMIT ?",
            [*(value for _, _, values in asked for value in values), *self._values, *(held if phrases else ()), limit],
        )
        return [(row["row"], row["score"]) for row in rows]

    def _proved(self, ranked: list[tuple[int, float]], claims: Sequence[Claim]) -> list[tuple[int, float]]:
        """Ranked again: what has a word otherwise than it was typed gets little for it, where anything has it so."""
        scores = dict(ranked)
        rows = json.dumps([row for row, _ in ranked])
        best = {row for row, _ in ranked[:_LOOKED_AT]}
        for claim in claims:
            statement, values = statements.match("documents_fts", claim.expression, self._tenant, claim.weight)
            among = f"+row IN {schema.LISTED}"  # else each of them is looked for by itself
            given = dict(
                self._connection.execute(f"SELECT row, score FROM ({statement}) WHERE {among}", [*values, rows])
            )
            standing = self._standing(best, claim.pattern)
            for row in given.keys() - standing if standing else ():
                scores[row] = max(_NOT_AS_TYPED * scores[row], scores[row] - (1 - _NOT_AS_TYPED) * given[row])
        return sorted(scores.items(), key=lambda one: (-one[1], one[0]))

    def _standing(self, rows: Collection[int], pattern: str) -> set[int]:
        held = f"SELECT held.row FROM documents held WHERE held.row IN {schema.LISTED} AND {statements.stands('held')}"
        return {row for (row,) in self._connection.execute(held, [json.dumps(list(rows)), json.dumps([pattern])])}

    def _hits(self, ranked: list[tuple[int, float]]) -> list[Hit]:
        statement = f"SELECT row, id, parent_id FROM documents WHERE row IN {schema.LISTED}"
        found = self._connection.execute(statement, [json.dumps([row for row, _ in ranked])])
        rows = {row["row"]: row for row in found}
        return [Hit(rows[row]["id"], rows[row]["parent_id"], score) for row, score in ranked]

    def snippets(self, query: Query, ids: Sequence[str]) -> dict[str, tuple[Piece, ...]]:
        """FTS5 knows which inflected forms of words it found; runs of scripts without spaces are looked for here."""
        query = self._rarest(query)
        rows = schema.by_id(self._connection, "row, id, spaceless, text", ids).fetchall()
        by_words = self._snippets(query, rows)
        shown = {row["id"]: by_words.get(row["row"]) or _around(row, query) for row in rows}
        return {id: pieces for id, pieces in shown.items() if any(piece.match for piece in pieces)}

    def _snippets(self, query: Query, rows: Sequence[sqlite3.Row]) -> dict[int, tuple[Piece, ...]]:
        """Of the rows that hold one of the words."""
        if not query.words:
            return {}
        expression = expressions.any_word(query)
        long = {row["row"]: row["text"] for row in rows if snippets.is_long(row["text"])}
        found = self._connection.execute(
            f"SELECT rowid, {snippets.CALL} FROM documents_fts WHERE documents_fts MATCH ? "
            f"AND rowid IN {schema.LISTED}",
            [expression, json.dumps([row["row"] for row in rows if row["row"] not in long])],
        )
        shown = {row[0]: snippets.pieces(row[1]) for row in found}
        return shown | {row: snippets.of_long(text, expression) for row, text in long.items()}


def _counts(field: str) -> str:
    """The values of a field among the rows `found`, each with its families, the most frequent ones first."""
    source, value = "found", f"found.{field}"
    if field in LISTS:
        source, value = f"found, json_each(found.{field}) label", "label.value"
    return (
        f"SELECT '{field}', {value} AS counted, count(DISTINCT parent_id) AS families FROM {source} "
        f"WHERE {value} IS NOT NULL GROUP BY counted ORDER BY families DESC, counted"
    )


def _around(row: sqlite3.Row, query: Query) -> tuple[Piece, ...]:
    """Words are looked for beside scripts without spaces only, and not within longer ones."""
    patterns = [re.escape(run) for run in (*query.runs, *statements.short_runs(query))]
    if row["spaceless"]:
        patterns += text_patterns.of_attached(query)
    return snippets.around(row["text"], patterns)
