"""One query on one state of a keyword build: hits, scores, facets and snippets."""

import json
import math
import re
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from chunksink.sinks.fts import expressions, schema, snippets, statements, suggestions, text_patterns
from chunksink.sinks.fts.facets import count_families
from chunksink.sinks.fts.filters import as_sql, column_of
from chunksink.sinks.fts.query import FEW, MAX_TERMS, RUN, Query, names_of
from chunksink.sinks.fts.tenant import K1, tenant_of
from chunksink.sinks.fts.text_patterns import TextCheck
from chunksink.sinks.reader import FacetValue, Filter, Hit, Piece, Sort, Value

_READ_TEXTS = 500  # how many of the best hits are read, if the index cannot tell whether they match as typed
_NOT_AS_TYPED = 0.1  # the share of a word's score that a row keeps if it has the word only in another form
_FEW_ROWS = 20  # a name in at most this many rows is rare
_ONE_KIND_ONLY = 0.5  # factor for a row with only the words or only the runs; their BM25 scores are not comparable


class Search:
    def __init__(self, connection: schema.Connection, filters: Sequence[Filter]) -> None:
        self._connection = connection
        self._filters = filters
        self._tenant = tenant_of(connection, filters)
        self._where, self._values = as_sql(filters)

    def unranked(self, query: Query | None, sort: Sort | None, limit: int) -> list[Hit]:
        """The documents that have every word, or all without a query; ordered by a field if `sort` names one."""
        condition, values, order = self._where, self._values, ""
        if query is not None:
            in_phrases = {part.strip() for phrase in query.phrases for part in RUN.split(phrase)}
            terms = [*(word for word in query.words if word not in in_phrases), *query.runs, *query.phrases]
            if not terms:
                return []
            found, of_terms = statements.rows_with_all(terms, query.prefix, as_typed=query.phrases)
            condition, values = f"d.row IN ({found}) AND {condition}", [*of_terms, *values]
        if sort is not None:
            value = column_of(sort.field)
            order = f"{value} IS NULL, {value} COLLATE NOCASE {'DESC' if sort.descending else 'ASC'}, "
        rows = self._connection.execute(
            f"SELECT d.id, d.parent_id FROM documents d WHERE {condition} "
            f"ORDER BY {order}d.parent_id, d.chunk_index, d.id LIMIT ?",
            [*values, limit],
        )
        return [Hit(row["id"], row["parent_id"], 0.0) for row in rows]

    def sources(self, limit: int) -> list[str]:
        """The families of the documents that pass the filters."""
        select = f"SELECT DISTINCT d.parent_id FROM documents d WHERE {self._where} LIMIT ?"
        return [family for (family,) in self._connection.execute(select, [*self._values, limit])]

    def facets(self, query: Query | None, fields: Sequence[str], limit: int) -> dict[str, list[FacetValue]]:
        return count_families(self._connection, fields, self._matching(query), limit)

    def corrections(self, query: Query) -> dict[str, str]:
        return suggestions.suggestions(self._connection, query, self._filters)

    def finds(self, query: Query) -> bool:
        """Whether there is any hit."""
        found, values = self._matching(query)
        return bool(self._connection.execute(f"SELECT EXISTS({found})", values).fetchone()[0])

    def best(self, query: Query, limit: int) -> list[Hit]:
        """The best hits. The BM25 scores of words and of runs are added up. Every hit has all phrases."""
        query = self._rarest(query)
        prefix_weight = self._prefix_weight(query)
        text_checks = tuple(text_patterns.text_checks(query, prefix_weight))
        parts = statements.score_parts_of(query, prefix_weight, self._tenant)
        ranked = self._ranked(parts, query.phrases, max(limit, _READ_TEXTS) if text_checks else limit)
        return self._checked(ranked, text_checks)[:limit] if text_checks else list(ranked.values())

    def highest_score(self, query: Query) -> float | None:
        """The BM25 score that a document with all words would have.

        None for a query with runs, because their pairs of characters overlap. None also if a document has all words, or
        all rare names with digits (E-417): then the caller uses the score of the best hit.
        """
        query = self._rarest(query)
        if query.runs or not query.words or self._any_has_all(query):
            return None
        rows = self._about_rows()
        frequency = {word: self._rows_with(query, word) for word in query.words}
        named = tuple(word for word in names_of(query) if 0 < frequency[word] <= _FEW_ROWS)
        if named and self._any_has_all(replace(query, words=named)):
            return None
        words = sum(statements.idf(rows, number) for number in frequency.values())
        joined = sum(statements.idf(rows, self._count(expressions.word(one))) for one in query.joined)
        return (K1 + 1) * (words + statements.JOINED_WEIGHT * joined)

    def _any_has_all(self, query: Query) -> bool:
        condition, own = self._owned("documents_fts.rowid")
        exists = f"SELECT EXISTS(SELECT 1 FROM documents_fts WHERE documents_fts MATCH ? {condition})"
        if self._connection.execute(exists, [expressions.every_word(query), *own]).fetchone()[0]:
            return True
        if len(query.words) > FEW:
            return False
        rows, values = statements.rows_with_all(query.words, query.prefix)  # also words beside scripts without spaces
        condition, own = self._owned("found.row")
        exists = f"SELECT EXISTS(SELECT 1 FROM ({rows}) found WHERE 1 {condition})"
        return bool(self._connection.execute(exists, [*values, *own]).fetchone()[0])

    def _owned(self, row: str) -> tuple[str, list[Value]]:
        """A condition that limits a row to the tenant of the query, and its values. Empty without a tenant."""
        return (f"AND {self._tenant.owns(row)}", self._tenant.values) if self._tenant else ("", [])

    def _rarest(self, query: Query) -> Query:
        """The query with its rarest words, if it has too many. Words that occur nowhere are dropped first."""
        if len(query.words) <= MAX_TERMS:
            return query
        frequency = {word: self._rows_with(query, word) for word in query.words}
        kept = frozenset(sorted(query.words, key=lambda word: frequency[word] or math.inf)[:MAX_TERMS])
        words = tuple(word for word in query.words if word in kept)
        return replace(query, words=words, prefix=query.prefix if query.prefix in words else "")

    def _prefix_weight(self, query: Query) -> float:
        """The weight of longer words that begin with the last word of the query.

        The longer words are scored apart from the last word itself. They are rarer than all words with the prefix
        together, so their idf would be too high. The weight lowers it to the idf of all words with the prefix.
        """
        if not query.prefix:
            return statements.PREFIX_WEIGHT
        rows = self._about_rows()
        alone = statements.idf(rows, self._count(expressions.prefix_without_word(query)))
        together = statements.idf(rows, self._count(expressions.beginning(query)))
        return statements.PREFIX_WEIGHT * together / alone

    def _rows_with(self, query: Query, word: str) -> int:
        return self._count(expressions.word(word, as_prefix=word == query.prefix))

    def _count(self, expression: str) -> int:
        condition, own = self._owned("documents_fts.rowid")
        count = f"SELECT count(*) FROM documents_fts WHERE documents_fts MATCH ? {condition}"
        return int(self._connection.execute(count, [expression, *own]).fetchone()[0])

    def _about_rows(self) -> int:
        """The approximate number of rows: without a tenant, the highest row number, which needs no count."""
        if self._tenant:
            return self._tenant.lengths("documents_fts").rows
        return self._connection.execute("SELECT max(row) FROM documents").fetchone()[0] or 0

    def _matching(self, query: Query | None) -> tuple[str, list[Value]]:
        """A statement for the row ids of all hits, with its values. Ids may repeat."""
        if query is None:
            return f"SELECT d.row FROM documents d WHERE {self._where}", self._values
        query = self._rarest(query)
        parts: list[str] = []
        values: list[Value] = []
        if query.words:
            parts.append("SELECT rowid AS row FROM documents_fts WHERE documents_fts MATCH ?")
            values.append(expressions.any_word(query))
        if attached := statements.with_attached_words(query, self._tenant):
            parts.append(f"SELECT row FROM ({attached[0]})")
            values += attached[1]
        if runs := statements.short_runs(query):
            parts.append(statements.ROWS)
            values.append(statements.places(runs))
        found = " UNION ALL ".join(parts) or "SELECT row FROM documents WHERE 0"
        if query.phrases:
            rows, terms = statements.rows_with_all(query.phrases, as_typed=query.phrases)
            found, values = f"SELECT row FROM ({found}) WHERE row IN ({rows})", [*values, *terms]
        if self._filters:  # checked in `documents`, whose indexes SQLite can use
            found = f"SELECT d.row FROM documents d WHERE d.row IN ({found}) AND {self._where}"
            values = [*values, *self._values]
        return found, values

    def _ranked(self, score_parts: statements.ScoreParts, phrases: Sequence[str], limit: int) -> dict[int, Hit]:
        """The best rows with all phrases, by the sum of their scores in all parts."""
        parts = [(kind, *part) for kind, of_kind in score_parts.items() for part in of_kind]
        if not parts:
            return {}
        select = "SELECT row, score, '{}' AS kind FROM ({})" if len(score_parts) > 1 else "SELECT row, score FROM ({1})"
        found = " UNION ALL ".join(select.format(kind, part) for kind, part, _ in parts)
        if len(parts) > 1:
            factor = f"iif(count(DISTINCT kind) = 2, 1, {_ONE_KIND_ONLY})" if len(score_parts) > 1 else "1"
            found = f"SELECT row, sum(score) * {factor} AS score FROM ({found}) GROUP BY row"
        join = "JOIN documents d ON d.row = found.row" if self._filters else ""
        with_phrases, terms = statements.rows_with_all(phrases, as_typed=phrases)
        best = (
            f"SELECT found.row, found.score FROM ({found}) found {join} WHERE {self._where} "
            f"{f'AND found.row IN ({with_phrases})' if phrases else ''} ORDER BY found.score DESC, found.row LIMIT ?"
        )
        rows = self._connection.execute(
            f"SELECT best.row, d.id, d.parent_id, best.score FROM ({best}) best JOIN documents d ON d.row = best.row "
            "ORDER BY best.score DESC, best.row",
            [*(value for _, _, values in parts for value in values), *self._values, *(terms if phrases else ()), limit],
        )
        return {row: Hit(*hit) for row, *hit in rows}

    def _checked(self, ranked: Mapping[int, Hit], text_checks: Sequence[TextCheck]) -> list[Hit]:
        """Ranks again: if any row has a word as typed, rows with only another form lose most of the word's score."""
        scores = {row: hit.score for row, hit in ranked.items()}
        rows = json.dumps(list(ranked))
        best = set(islice(ranked, _READ_TEXTS))
        for check in text_checks:
            statement, values = statements.match("documents_fts", check.expression, self._tenant, check.weight)
            among = f"+row IN {schema.JSON_MEMBERS}"  # the + prevents a separate lookup for each row
            of_word = dict(
                self._connection.execute(f"SELECT row, score FROM ({statement}) WHERE {among}", [*values, rows])
            )
            as_typed = self._rows_matching(best, check.pattern)
            for row in of_word.keys() - as_typed if as_typed else ():
                scores[row] = max(_NOT_AS_TYPED * scores[row], scores[row] - (1 - _NOT_AS_TYPED) * of_word[row])
        order = sorted(scores, key=lambda row: (-scores[row], row))
        return [Hit(hit.id, hit.parent_id, scores[row]) for row in order if (hit := ranked[row])]

    def _rows_matching(self, rows: Collection[int], pattern: str) -> set[int]:
        select = f"SELECT d.row FROM documents d WHERE d.row IN {schema.JSON_MEMBERS} AND {statements.has_match('d')}"
        return {row for (row,) in self._connection.execute(select, [json.dumps(list(rows)), json.dumps([pattern])])}

    def snippets(self, query: Query, ids: Sequence[str]) -> dict[str, tuple[Piece, ...]]:
        """FTS5 marks words in all inflected forms. Runs of scripts without spaces are found here."""
        query = self._rarest(query)
        stored = schema.by_id(self._connection, "row, id, spaceless, text", ids)
        rows = [row for row in stored if row["text"] is not None]  # foreign rows may have none
        by_words = self._snippets(query, rows)
        shown = {row["id"]: _shown(row, by_words.get(row["row"]), query) for row in rows}
        return {id: pieces for id, pieces in shown.items() if any(piece.match for piece in pieces)}

    def _snippets(self, query: Query, rows: Sequence[sqlite3.Row]) -> dict[int, tuple[Piece, ...]]:
        """By row, for the rows whose text has one of the words."""
        if not query.words:
            return {}
        expression = expressions.any_word(query)
        long = {row["row"]: row["text"] for row in rows if snippets.is_long(row["text"])}
        found = self._connection.execute(
            f"SELECT rowid, {snippets.CALL} FROM documents_fts WHERE documents_fts MATCH ? "
            f"AND rowid IN {schema.JSON_MEMBERS}",
            [expression, json.dumps([row["row"] for row in rows if row["row"] not in long])],
        )
        shown = {row[0]: snippets.pieces(row[1]) for row in found}
        shown |= {row: snippets.of_long(text, expression) for row, text in long.items()}
        return {row: pieces for row, pieces in shown.items() if any(piece.match for piece in pieces)}


def _shown(row: sqlite3.Row, found: Sequence[Piece] | None, query: Query) -> tuple[Piece, ...]:
    """Marks runs, and words beside scripts without spaces, in addition to the words that FTS5 has `found`."""
    patterns = [re.escape(run) for run in (*query.runs, *statements.short_runs(query))]
    if row["spaceless"]:
        patterns += text_patterns.attached_patterns(query)
    if found:
        return snippets.with_matches(found, patterns)
    return snippets.around(row["text"], patterns)
