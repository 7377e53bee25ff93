"""One question to one state of a keyword build: what matches, how well, and what to show of it."""

import json
import math
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace

from sinks.document import LISTS
from sinks.fts import literal, schema, short, snippets
from sinks.fts import query as query_
from sinks.fts.literal import Claim
from sinks.fts.query import Query
from sinks.fts.short import K1, idf
from sinks.reader import FacetValue, Filter, Hit, Piece

_KEYS = 500  # rows in one statement
_LOOKED_AT = 500  # texts of the best, where the index cannot tell whether they have what was typed
_NOT_AS_TYPED = 0.1
_FEW = 3  # of so few words or runs all are meant: what lacks one counts a little less than BM25 says
_LACKING = 0.85
_HALF_OF_IT = 0.5  # words and runs have BM25 of different indexes, so that one of them must not win alone
_WEIGHTS = ", ".join(map(str, schema.WEIGHTS.values()))
# Every text is looked through, for whoever asks for an emoji and nothing else: all that one has of them counts.
_SYMBOLS = (
    "SELECT held.row AS row, count(*) AS score FROM documents held, json_each(?) symbol "
    f"WHERE {' OR '.join(f'instr(held.{name}, symbol.value)' for name in schema.SEARCHED)} GROUP BY held.row"
)

Source = tuple[str, list[str]]
"""A statement that gives rows and their scores, and its values."""
Sources = dict[str, list[Source]]
"""By what is looked for: words, runs of scripts without spaces, or symbols."""


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
        """By BM25 of the words and of the runs of scripts without spaces, added up; only what holds all phrases."""
        query = self._rarest(query)
        claims = tuple(literal.claims(query))
        ranked = self._ranked(_sources(query), query.phrases, max(limit, _LOOKED_AT) if claims else limit)
        return self._hits(self._proved(ranked, claims)[:limit])

    def most(self, query: Query) -> float | None:
        """What BM25 comes to for a document that is full of all the words; not known for runs, which overlap. Where one
        holds all of them, however often, there is nothing better to wait for."""
        query = self._rarest(query)
        if query.runs or not query.words or self._holds_all(query):
            return None
        # Rows are numbered upwards: about how many there are, without counting them.
        rows = self._connection.execute("SELECT max(row) FROM documents").fetchone()[0] or 0
        return sum((K1 + 1) * self._idf(query, word, rows) for word in query.words)

    def _holds_all(self, query: Query) -> bool:
        held = "SELECT EXISTS(SELECT 1 FROM documents_fts WHERE documents_fts MATCH ?)"
        if self._connection.execute(held, [query_.every_word(query)]).fetchone()[0]:
            return True
        if len(query.words) > _FEW:
            return False
        rows, values = short.holding(query.words, query.begun)  # beside scripts without spaces
        return bool(self._connection.execute(f"SELECT EXISTS({rows})", values).fetchone()[0])

    def _rarest(self, query: Query) -> Query:
        """Of many words those that say most; what is nowhere says nothing."""
        if len(query.words) <= query_.MOST_TERMS:
            return query
        held = {word: self._count(query, word) for word in query.words}
        kept = frozenset(sorted(query.words, key=lambda word: held[word] or math.inf)[: query_.MOST_TERMS])
        words = tuple(word for word in query.words if word in kept)
        return replace(query, words=words, begun=query.begun if query.begun in words else "")

    def _idf(self, query: Query, word: str, rows: int) -> float:
        return idf(rows, self._count(query, word))

    def _count(self, query: Query, word: str) -> int:
        term = query_.word(word, begun=word == query.begun)
        count = "SELECT count(*) FROM documents_fts WHERE documents_fts MATCH ?"
        return int(self._connection.execute(count, [term]).fetchone()[0])

    def found(self, query: Query) -> tuple[str, list[str]]:
        """A condition on `documents` as d for all that `best` can come to, and its values."""
        query = self._rarest(query)
        parts, values = [], []
        if query.words:
            parts.append("SELECT rowid FROM documents_fts WHERE documents_fts MATCH ?")
            values.append(query_.any_word(query))
        if beside := _beside(query):
            parts.append(f"SELECT row FROM ({beside[0]})")
            values += beside[1]
        if runs := query_.shorts(query):
            parts.append(short.ROWS)
            values.append(json.dumps(runs))
        if query.symbols:
            parts.append(f"SELECT row FROM ({_SYMBOLS})")
            values.append(json.dumps(query.symbols))
        condition = f"d.row IN ({' UNION '.join(parts)})" if parts else "0"
        if query.phrases:
            rows, held = short.holding(query.phrases, literally=True)
            condition, values = f"{condition} AND d.row IN ({rows})", [*values, *held]
        return condition, values

    def facets(self, fields: Sequence[str], found: tuple[str, list[str]], limit: int) -> dict[str, list[FacetValue]]:
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

    def _ranked(self, sources: Sources, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """The best rows of any of the sources, their scores there added up, that hold the phrases."""
        asked = [(kind, *source) for kind, of_kind in sources.items() for source in of_kind]
        if not asked:
            return []
        found = " UNION ALL ".join(f"SELECT row, score, '{kind}' AS kind FROM ({told})" for kind, told, _ in asked)
        if len(asked) > 1:
            whole = f"iif(count(DISTINCT kind) = {len(sources)}, 1, {_HALF_OF_IT})"
            found = f"SELECT row, sum(score) * {whole} AS score FROM ({found}) GROUP BY row"
        join = "JOIN documents d ON d.row = found.row" if self._filtered else ""
        holding, held = short.holding(phrases, literally=True)
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
            statement, values = _match("documents_fts", claim.expression, claim.weight)
            among = "AND +rowid IN (SELECT value FROM json_each(?))"  # else each of them is looked for by itself
            given = dict(self._connection.execute(f"{statement} {among}", [*values, rows]).fetchall())
            standing = self._standing(best, claim.pattern)
            for row in given.keys() - standing if standing else ():
                scores[row] = max(_NOT_AS_TYPED * scores[row], scores[row] - (1 - _NOT_AS_TYPED) * given[row])
        return sorted(scores.items(), key=lambda one: (-one[1], one[0]))

    def _standing(self, rows: Collection[int], pattern: str) -> set[int]:
        among = "held.row IN (SELECT value FROM json_each(?))"
        held = f"SELECT held.row FROM documents held WHERE {among} AND {short.stands('held')}"
        return {row for (row,) in self._connection.execute(held, [json.dumps(list(rows)), json.dumps([pattern])])}

    def _hits(self, ranked: list[tuple[int, float]]) -> list[Hit]:
        rows: dict[int, sqlite3.Row] = {}
        for start in range(0, len(ranked), _KEYS):
            some = [row for row, _ in ranked[start : start + _KEYS]]
            statement = f"SELECT row, id, parent_id FROM documents WHERE row IN ({_marks(some)})"
            rows.update((row["row"], row) for row in self._connection.execute(statement, some))
        return [Hit(rows[row]["id"], rows[row]["parent_id"], score) for row, score in ranked]

    def snippets(self, query: Query, ids: Sequence[str]) -> dict[str, tuple[Piece, ...]]:
        """FTS5 knows which inflected forms of words it found; runs of scripts without spaces are looked for here."""
        query = self._rarest(query)
        shown: dict[str, tuple[Piece, ...]] = {}
        for start in range(0, len(ids), _KEYS):
            some = list(ids[start : start + _KEYS])
            statement = f"SELECT row, id, spaceless, text FROM documents WHERE id IN ({_marks(some)})"
            rows = self._connection.execute(statement, some).fetchall()
            by_words = self._snippets(query, [row["row"] for row in rows])
            for row in rows:
                pieces = by_words.get(row["row"]) or _around(row, query)
                if any(piece.match for piece in pieces):
                    shown[row["id"]] = pieces
        return shown

    def _snippets(self, query: Query, rows: list[int]) -> dict[int, tuple[Piece, ...]]:
        """Of the rows that hold one of the words."""
        if not query.words:
            return {}
        found = self._connection.execute(
            f"SELECT rowid, {snippets.CALL} FROM documents_fts WHERE documents_fts MATCH ? "
            f"AND rowid IN ({_marks(rows)})",
            [query_.any_word(query), *rows],
        )
        return {row[0]: snippets.pieces(row[1]) for row in found}


def _counts(field: str) -> str:
    """The values of a field among the rows `found`, each with its families, the most frequent ones first."""
    source, value = "found", f"found.{field}"
    if field in LISTS:
        source, value = f"found, json_each(found.{field}) label", "label.value"
    return (
        f"SELECT '{field}', {value} AS counted, count(DISTINCT parent_id) AS families FROM {source} "
        f"WHERE {value} IS NOT NULL GROUP BY counted ORDER BY families DESC, counted"
    )


def _sources(query: Query) -> Sources:
    sources: Sources = {}
    if query.words:
        sources["words"] = [_words(query)]
        if query.begun:
            sources["words"].append(_match("documents_fts", query_.longer(query), literal.BEGUN_WEIGHT))
        if beside := _beside(query):
            sources["words"].append(beside)
    if query.runs:
        runs = query_.shorts(query)
        wanted = len(runs) if len(runs) <= _FEW else 1
        sources["runs"] = [(short.scores(wanted=wanted, lacking=_LACKING), [json.dumps(runs)])]
        if whole := query_.any_of([run for run in query.runs if len(run) > 2][: query_.MOST_TERMS]):
            sources["runs"].append(_match("documents_trigrams", whole))
    if query.symbols:
        sources["symbols"] = [(_SYMBOLS, [json.dumps(query.symbols)])]
    return sources


def _words(query: Query) -> Source:
    statement, values = _match("documents_fts", query_.words(query))
    if query.runs or not 1 < len(query.words) <= _FEW:
        return statement, values
    all_held = "row IN (SELECT rowid FROM documents_fts WHERE documents_fts MATCH ?)"
    counted = f"SELECT row, score * iif({all_held}, 1, {_LACKING}) AS score FROM ({statement})"
    return counted, [query_.every_word(query), *values]


def _beside(query: Query) -> Source | None:
    """Words beside scripts without spaces, of rows in which none is a word of its own: it would count twice."""
    attached = query_.any_of(query_.attached(query))
    if not attached:
        return None
    statement, values = _match("documents_trigrams", attached)
    apart = "rowid NOT IN (SELECT rowid FROM documents_fts WHERE documents_fts MATCH ?)"
    return (
        f"SELECT held.row AS row, beside.score AS score FROM ({statement} AND {apart}) beside "
        f"JOIN documents held ON held.row = beside.row WHERE {short.stands('held')}",
        [*values, query_.any_word(query), json.dumps(query_.patterns(query))],
    )


def _around(row: sqlite3.Row, query: Query) -> tuple[Piece, ...]:
    """Words are looked for beside scripts without spaces only; of what stands within longer ones nothing is marked."""
    needles = [*query.runs, *query.symbols, *query_.shorts(query)]
    if not row["spaceless"]:
        return snippets.around(row["text"], needles)
    pieces = snippets.around(query_.apart(row["text"], query), [*needles, *query_.attached(query)])
    return tuple(replace(piece, text=piece.text.replace(query_.BREAK, "")) for piece in pieces)


def _match(table: str, expression: str, weight: float = 1.0) -> Source:
    """FTS5's bm25() is negative. The weights are given here, so that a build made with others ranks alike."""
    score = f"-{weight} * bm25({table}, {_WEIGHTS})"
    return f"SELECT rowid AS row, {score} AS score FROM {table} WHERE {table} MATCH ?", [expression]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
