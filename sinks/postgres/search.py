"""One query on a build: hits, facets and snippets. During a sync, its statements may see different states.

PostgreSQL's ranks do not depend on how rare a word is. So the rank of each word is multiplied by its inverse frequency,
among the documents of the tenant if the filters name one.
"""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import compress

from psycopg import sql

from chunksink.sinks.fts import snippets
from chunksink.sinks.fts.query import Query
from chunksink.sinks.fts.text_patterns import exact_pattern, has_punctuation, pattern
from chunksink.sinks.postgres import vocabulary, words
from chunksink.sinks.postgres.connection import Connection, rows
from chunksink.sinks.postgres.filters import EVERYTHING, NOTHING, Condition, condition, members, order
from chunksink.sinks.postgres.schema import BuildTable, configuration, is_storable
from chunksink.sinks.reader import FacetValue, Filter, Hit, Piece, Sort

_BY_LENGTH = 1
"""PostgreSQL's code for dividing a rank by 1 + the logarithm of the document's length."""
_MAX_RANK = 5.0
"""A word is common if it weighs less than the rarest word's weight divided by this number. The rank of a word
rarely differs by more than this factor from document to document. So a document with only common words hardly ever
ranks above one with the rarest word. Documents with only common words are ranked if the others are too few."""
_MAX_COUNTED = 5000
"""Documents with a word are counted up to this number, because counting is slow. Larger numbers are estimated."""
_READ_FOR_SPELLING = 100
"""Documents that are read for the spelling of a word."""
_SEARCHED = sql.SQL(", ").join(sql.Identifier(name) for names in words.SEARCHED.values() for name in names)


class Search:
    def __init__(self, connection: Connection, build: BuildTable, language: str, filters: Sequence[Filter]) -> None:
        self._connection, self._build, self._table = connection, build, build.table
        self._config = sql.Literal(configuration(build.schema, language).as_string())
        self._filters = condition(filters)
        self._tenant = condition([one for one in filters if one.field == "tenant_key"])

    def unranked(self, query: Query | None, sort: Sort | None, limit: int) -> list[Hit]:
        """The documents that have every word, or all without a query; ordered by a field if `sort` names one."""
        found = self._filters
        if query is not None:
            expression = words.every(query)
            found = self._matches(expression).and_(found).and_(self._phrases(query)) if expression else NOTHING
        by = sql.SQL("{}, ").format(order(sort)) if sort is not None else sql.SQL("")
        statement = sql.SQL(
            "SELECT id, parent_id FROM {} WHERE {} ORDER BY {}parent_id, chunk_index, id LIMIT %s"
        ).format(self._table, found.text, by)
        return [Hit(id, parent_id, 0.0) for id, parent_id in rows(self._connection, statement, [*found.values, limit])]

    def best(self, query: Query, limit: int) -> list[Hit]:
        terms = words.terms(query)
        if not terms:
            return []
        weights = self._weights(terms)
        rare = [term for term in terms if weights[term] * _MAX_RANK >= max(weights.values())]
        hits = self._ranked(query, rare, weights, limit) if len(rare) < len(terms) else []
        return hits if len(hits) == limit else self._ranked(query, list(terms), weights, limit)

    def _ranked(self, query: Query, found_by: Sequence[str], weights: dict[str, float], limit: int) -> list[Hit]:
        """The best documents that have one of the terms `found_by`, ranked by all terms."""
        found = self._found(query, found_by)
        rank = f"%s * ts_rank(%s::float4[], words, to_tsquery({{config}}::regconfig, %s), {_BY_LENGTH})"
        score = sql.SQL(" + ".join([rank] * len(weights))).format(config=self._config)
        statement = sql.SQL(
            "SELECT id, parent_id, {} AS score FROM {} WHERE {} ORDER BY score DESC, id LIMIT %s"
        ).format(score, self._table, found.text)
        of_terms = [value for term in weights for value in (weights[term], list(words.WEIGHTS), term)]
        return [Hit(*row) for row in rows(self._connection, statement, [*of_terms, *found.values, limit])]

    def _found(self, query: Query, terms: Sequence[str]) -> Condition:
        """Documents that have one of the terms, and all phrases."""
        return self._matches(" | ".join(f"({term})" for term in terms)).and_(self._filters).and_(self._phrases(query))

    def corrections(self, query: Query) -> dict[str, str]:
        return vocabulary.corrections(self._connection, self._build, query, self._occurring, self._spelling)

    def finds(self, query: Query) -> bool:
        found = self._found(query, list(words.terms(query)))
        [(exists,)] = rows(
            self._connection,
            sql.SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE {})").format(self._table, found.text),
            found.values,
        )
        return bool(exists)

    def _occurring(self, some: Sequence[str]) -> list[str]:
        """The words that occur, in any form, in a document that passes the filters."""
        if not some:
            return []
        found = [self._matches(words.adjacent(word)).and_(self._filters) for word in some]
        exists = [sql.SQL("EXISTS (SELECT 1 FROM {} WHERE {})").format(self._table, one.text) for one in found]
        statement = sql.SQL("SELECT {}").format(sql.SQL(", ").join(exists))
        [occurs] = rows(self._connection, statement, [value for one in found for value in one.values])
        return list(compress(some, occurs))

    def _spelling(self, word: str) -> str:
        """How a document that passes the filters spells this word, which has no accents. Empty if none has the word."""
        found = self._matches(words.adjacent(word)).and_(self._filters)
        statement = sql.SQL("SELECT {} FROM {} WHERE {} ORDER BY id LIMIT {}").format(
            _SEARCHED, self._table, found.text, sql.Literal(_READ_FOR_SPELLING)
        )
        texts = (text for row in rows(self._connection, statement, found.values) for text in words.texts(row))
        pieces = (piece for text in texts for piece in snippets.around(text, [pattern(word)], words.folded))
        return next((piece.text.lower() for piece in pieces if piece.match), "")

    def highest_score(self, query: Query) -> None:
        """Unknown: ranks depend on the lengths of documents."""

    def facets(self, query: Query | None, fields: Sequence[str], limit: int) -> dict[str, list[FacetValue]]:
        found = self._filters
        if query is not None:
            terms = words.terms(query)
            found = self._found(query, list(terms)) if terms else NOTHING
        return {field: self._facet(field, found, limit) for field in fields}

    def _facet(self, field: str, found: Condition, limit: int) -> list[FacetValue]:
        statement = sql.SQL(
            "SELECT value, count(DISTINCT parent_id) FROM {} CROSS JOIN LATERAL {} AS member(value) "
            "WHERE {} AND to_jsonb(value) <> 'null' GROUP BY value ORDER BY 2 DESC, 1 LIMIT %s"
        ).format(self._table, members(field), found.text)
        return [FacetValue(*row) for row in rows(self._connection, statement, [*found.values, limit])]

    def sources(self, limit: int) -> list[str]:
        statement = sql.SQL("SELECT DISTINCT parent_id FROM {} WHERE {} LIMIT %s")
        found = rows(
            self._connection, statement.format(self._table, self._filters.text), [*self._filters.values, limit]
        )
        return [parent_id for (parent_id,) in found]

    def snippets(self, query: Query, ids: Sequence[str]) -> dict[str, tuple[Piece, ...]]:
        """The text around the first match of the longest word that matches."""
        texts = rows(
            self._connection,
            sql.SQL("SELECT id, text FROM {} WHERE id = ANY(%s)").format(self._table),
            [list(filter(is_storable, ids))],
        )
        patterns = self._patterns(query)
        shown = {id: snippets.around(text, patterns, words.folded) for id, text in texts} if patterns else {}
        return {id: pieces for id, pieces in shown.items() if any(piece.match for piece in pieces)}

    def _patterns(self, query: Query) -> list[str]:
        """Patterns for a folded text: words that begin with the stem of a typed word, the typed words, and runs."""
        typed = [part for word in query.words for part in words.split(word)]
        statement = sql.SQL("SELECT unnest(tsvector_to_array(to_tsvector({}::regconfig, %s)))").format(self._config)
        stems = [stem for (stem,) in rows(self._connection, statement, [" ".join(typed)])]
        plain = [rf"\b{re.escape(stem)}\w*" for stem in stems if len(stem) > 1]
        runs = [re.escape(words.folded(run)) for run in query.runs]
        return [*plain, *(rf"\b{re.escape(word)}\b" for word in typed), *runs]

    def _matches(self, expression: str) -> Condition:
        return Condition(sql.SQL("words @@ to_tsquery({}::regconfig, %s)").format(self._config), [expression])

    def _phrases(self, query: Query) -> Condition:
        """Documents that have all phrases exactly as typed. The index finds candidates, whose texts are compared."""
        if not query.phrases:
            return EVERYTHING
        candidates = self._filters
        for phrase in query.phrases:
            candidates = candidates.and_(self._matches(words.together(phrase)))
        phrases = map(words.folded, query.phrases)
        patterns = [re.compile(exact_pattern(one) if has_punctuation(one) else pattern(one)) for one in phrases]
        statement = sql.SQL("SELECT id, {} FROM {} WHERE {}").format(_SEARCHED, self._table, candidates.text)
        exact = []
        for id, *values in rows(self._connection, statement, candidates.values):
            texts = [words.folded(text) for text in words.texts(values)]
            if all(any(one.search(text) for text in texts) for one in patterns):
                exact.append(id)
        return Condition(sql.SQL("id = ANY(%s)"), [exact])

    def _weights(self, terms: dict[str, float]) -> dict[str, float]:
        """By term: its inverse frequency, as in BM25, times its factor."""
        # The planner's statistics are of all tenants.
        numbers = {} if self._tenant.values else self._estimated_counts(terms)
        counted = [term for term in terms if term not in numbers]
        total, *counts = self._counts(counted)
        total = max(total, *counts, *numbers.values())
        numbers |= {
            term: number if number < _MAX_COUNTED else math.sqrt(number * total)
            for term, number in zip(counted, counts, strict=True)
        }
        return {
            term: factor * math.log(1 + (total - numbers[term] + 0.5) / (numbers[term] + 0.5))
            for term, factor in terms.items()
        }

    def _estimated_counts(self, terms: Iterable[str]) -> dict[str, float]:
        """How many documents have the terms that are among the most common words, by the planner's statistics.

        Empty if there is no estimate of the number of rows. After a table was emptied, its word statistics are old.
        """
        statement = sql.SQL(
            "SELECT term, share * total FROM pg_stats, ({}) AS estimated(total), "
            "unnest(most_common_elems::text::text[], most_common_elem_freqs) AS common(word, share) "
            "JOIN unnest(%s::text[]) AS term ON to_tsquery({}::regconfig, term)::text = '''' || word || '''' "
            "WHERE schemaname = %s AND tablename = %s AND attname = 'words' AND total IS NOT NULL"
        ).format(self._estimated_rows, self._config)
        return dict(rows(self._connection, statement, [list(terms), self._build.schema, self._build.name]))

    def _counts(self, terms: Sequence[str]) -> tuple[float, ...]:
        """The number of documents of the tenant, or of all, and how many have each term, at most `_MAX_COUNTED`."""
        every = sql.SQL("SELECT count(*)::float8 FROM {} WHERE {}").format(self._table, self._tenant.text)
        if not self._tenant.values:
            every = sql.SQL("SELECT coalesce(({}), ({}))").format(self._estimated_rows, every)
        some = f"(SELECT count(*) FROM (SELECT 1 FROM {{}} WHERE {{}} LIMIT {_MAX_COUNTED}) AS matching)"
        found = [self._matches(term).and_(self._tenant) for term in terms]
        counts = [sql.SQL(some).format(self._table, one.text) for one in found]
        statement = sql.SQL("SELECT {}").format(sql.SQL(", ").join([sql.SQL("({})").format(every), *counts]))
        values = [value for one in (self._tenant, *found) for value in one.values]
        return rows(self._connection, statement, values)[0]

    @property
    def _estimated_rows(self) -> sql.Composable:
        """The planner's estimate; null for a table that was not analysed yet, or was empty when last vacuumed."""
        return sql.SQL(
            "SELECT nullif(reltuples, -1)::float8 / nullif(relpages, 0) * pg_relation_size(oid) "
            "/ current_setting('block_size')::int FROM pg_class WHERE oid = {}::regclass"
        ).format(sql.Literal(self._table.as_string()))
