"""Statements of SQL that find rows and score them: by words, trigrams, shorter runs, and filters.

Runs of one or two characters are no trigram: every place of the trigrams that begin with them is counted. To ask for
all these trigrams by MATCH takes time with the square of their number, and to ask for the most frequent ones loses what
is rare. Words beside a script without spaces, and phrases with one, are looked for in the texts of the rows that have
their trigrams.
"""

import json
import math
import re
import sqlite3
from collections.abc import Sequence
from functools import lru_cache

from chunksink.sinks.fts import expressions, text_patterns
from chunksink.sinks.fts.query import FEW, MOST_PAIRS, MOST_TERMS, RUN, TOKEN, Query, is_spaceless
from chunksink.sinks.fts.schema import SEARCHED, WEIGHTS
from chunksink.sinks.fts.tenant import K1, SATURATED, Tenant, bm25_part
from chunksink.sinks.reader import Value

_IDF, _STANDS, _PART = "chunksink_idf", "chunksink_stands", "chunksink_bm25_part"

_WEIGHT = " ".join(f"WHEN '{name}' THEN {weight}" for name, weight in WEIGHTS.items())
_PLACES = (
    "json_each(?) part CROSS JOIN documents_places place "
    "ON place.term >= part.value AND place.term <= part.value || char(1114111, 1114111)"
)

ROWS = f"SELECT place.doc FROM {_PLACES}"
"""The rows that hold any of the runs, which come as a JSON list."""

# Of each part its number, what an index is asked for, and where that is not enough a pattern.
_NUMBER, _ASKED, _PATTERNS = (f"json_extract(part.value, '$[{place}]')" for place in range(3))
_STANDING = f"{_STANDS}({_PATTERNS}, {', '.join(f'held.{name}' for name in SEARCHED)})"
_OF_WORDS = (
    f"SELECT {_NUMBER} AS part, documents_fts.rowid AS row FROM json_each(?) part "
    f"CROSS JOIN documents_fts WHERE documents_fts MATCH {_ASKED}"
)
_OF_SIGNS = (
    f"SELECT {_NUMBER}, held.row FROM json_each(?) part CROSS JOIN documents_fts "
    "CROSS JOIN documents held ON held.row = documents_fts.rowid "
    f"WHERE documents_fts MATCH {_ASKED} AND {_STANDING}"
)
_OF_TRIGRAMS = (
    f"SELECT {_NUMBER}, held.row FROM json_each(?) part CROSS JOIN documents_trigrams "
    "CROSS JOIN documents held ON held.row = documents_trigrams.rowid "
    f"WHERE documents_trigrams MATCH {_ASKED} AND {_STANDING}"
)
_OF_SHORTS = (
    f"SELECT {_NUMBER}, held.row FROM json_each(?) part CROSS JOIN documents_places place "
    f"ON place.term >= {_ASKED} AND place.term <= {_ASKED} || char(1114111, 1114111) "
    f"CROSS JOIN documents held ON held.row = place.doc WHERE {_STANDING}"
)

_PHRASES = re.compile(r'"(?:[^"]|"")*"(?: \*)?')

BEGUN_WEIGHT = 0.5
"""A word that the last one is only the beginning of is a guess."""
JOINED_WEIGHT = 0.5
"""Of words that were typed joined (dry-run), where they stand side by side, beside what each of them gives."""
_LACKING = 0.85
"""What lacks one of a few words counts a little less than BM25 says; so does what has none of them in its text: a title
is that of every passage of its source."""
_WEIGHTS = ", ".join(map(str, WEIGHTS.values()))
_HELD = "row IN (SELECT rowid FROM documents_fts WHERE documents_fts MATCH ?)"

Source = tuple[str, list[Value]]
"""A statement that gives rows and their scores, and its values."""
Sources = dict[str, list[Source]]
"""By what is looked for: words, or runs of scripts without spaces."""


def short_runs(query: Query) -> list[str]:
    """The runs that are no trigram; of a longer one every two neighbours, for where the whole of it is nowhere."""
    found = [pair for run in query.runs for pair in _pairs(run)]
    return list(dict.fromkeys(found))[:MOST_PAIRS]


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] if len(run) > 2 else [run]


def scores(runs: Sequence[str], tenant: Tenant | None, *, wanted: int = 1, lacking: float = 1.0) -> Source:
    """Rows and scores as BM25 has them, of those that hold any of the runs; where fewer than `wanted` are held, only so
    much of it. The lengths of the columns are not to be had here, so they do not count."""
    table = "documents_trigrams"
    rows = str(tenant.lengths(table).rows) if tenant else f"(SELECT count(*) FROM {table}_docsize)"
    owned = f"WHERE {tenant.owns('place.doc')}" if tenant else ""
    statement = (
        "WITH held AS (SELECT part.key AS part, place.doc AS row, "
        f"sum(CASE place.col {_WEIGHT} END) AS weight FROM {_PLACES} {owned} GROUP BY 1, 2), "
        f"spread AS (SELECT part, {_IDF}({rows}, count(*)) AS idf FROM held GROUP BY 1) "
        f"SELECT row, sum(idf * weight * {K1 + 1} / (weight + {K1})) * iif(count(*) >= {wanted}, 1, {lacking}) "
        "AS score FROM held JOIN spread USING (part) GROUP BY row"
    )
    return statement, [json.dumps(list(runs)), *(tenant.values if tenant else ())]


def stands(row: str) -> str:
    """A condition on a row of `documents`: whether any of some patterns (a JSON list) is in what is searched of it."""
    return f"{_STANDS}(?, {', '.join(f'{row}.{name}' for name in SEARCHED)})"


def holding(terms: Sequence[str], begun: str = "", *, literally: bool = False) -> tuple[str, list[str]]:
    """A statement that gives the rows in which all of these words and phrases stand, and its values; with `literally`
    those with signs just so."""
    words, signs, among, shorts = [], [], [], []
    for number, term in enumerate(terms):
        exact = literally and text_patterns.has_signs(term)
        begins = term == begun
        standing = json.dumps(
            [text_patterns.exact_pattern(term) if exact else text_patterns.pattern(term, begun=begins)]
        )
        if not is_spaceless(term):
            told = expressions.word(term, begun=begins)
            if exact:
                signs.append((number, told, standing))
            else:
                words.append((number, told))
        parts = [part for part in (text_patterns.signed_words(term) if exact else TOKEN.findall(term)) if len(part) > 2]
        if parts:
            among.append((number, " AND ".join(map(expressions.quoted, parts)), standing))
        elif run := _first_run(term):
            shorts.append((number, run, standing))
    found = " UNION ".join((_OF_WORDS, _OF_SIGNS, _OF_TRIGRAMS, _OF_SHORTS))
    rows = f"SELECT row FROM ({found}) GROUP BY row HAVING count(*) = {len(terms)}"
    return rows, [json.dumps(one) for one in (words, signs, among, shorts)]


def _first_run(term: str) -> str:
    """The beginning of the first run, which is enough to look for it by; empty where there is none."""
    found = RUN.search(term)
    return found[0][:2] if found else ""


def prepare(connection: sqlite3.Connection) -> None:
    """Teaches the connection what statements from here need: not every SQLite has a logarithm."""
    connection.create_function(_IDF, 2, idf, deterministic=True)
    connection.create_function(_STANDS, 1 + len(SEARCHED), _stands, deterministic=True)
    connection.create_function(_PART, 5, bm25_part, deterministic=True)


def _stands(patterns: str, *columns: str | None) -> bool:
    looked_for = _compiled(patterns)
    return any(one.search(text) for column in columns if column and (text := column.lower()) for one in looked_for)


@lru_cache(maxsize=64)
def _compiled(patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, json.loads(patterns)))


def idf(rows: int, holding: int) -> float:
    """As FTS5's bm25() has it."""
    return max(1e-6, math.log((max(rows, holding) - holding + 0.5) / (holding + 0.5)))


def sources_of(query: Query, begun_weight: float, tenant: Tenant | None) -> Sources:
    """All of them; `begun_weight` is that of words that the last one is only the beginning of."""
    sources: Sources = {}
    if query.words:
        sources["words"] = [_words(query, tenant)]
        if query.prefix:
            sources["words"].append(_said(query, expressions.longer(query), tenant, begun_weight))
        if query.joined:
            side_by_side = expressions.side_by_side(query)
            sources["words"].append(match("documents_fts", side_by_side, tenant, JOINED_WEIGHT))
        if attached := beside(query, tenant):
            sources["words"].append(attached)
    if query.runs:
        short = short_runs(query)
        wanted = len(short) if len(short) <= FEW else 1
        sources["runs"] = [scores(short, tenant, wanted=wanted, lacking=_LACKING)]
        if whole := expressions.any_of([run for run in query.runs if len(run) > 2][:MOST_TERMS]):
            sources["runs"].append(match("documents_trigrams", whole, tenant))
    return sources


def _words(query: Query, tenant: Tenant | None) -> Source:
    statement, values = _said(query, expressions.words(query), tenant)
    if query.runs or not 1 < len(query.words) <= FEW:
        return statement, values
    counted = f"SELECT row, score * iif({_HELD}, 1, {_LACKING}) AS score FROM ({statement})"
    return counted, [expressions.every_word(query), *values]


def _said(query: Query, expression: str, tenant: Tenant | None, weight: float = 1.0) -> Source:
    """What matches; of a few words a little less where no text says it."""
    statement, values = match("documents_fts", expression, tenant, weight)
    if query.runs or len(query.words) > FEW:
        return statement, values
    counted = f"SELECT row, score * iif({_HELD}, 1, {_LACKING}) AS score FROM ({statement})"
    return counted, [expressions.in_text(expression), *values]


def beside(query: Query, tenant: Tenant | None) -> Source | None:
    """Words beside scripts without spaces, of rows in which none is a word of its own: it would count twice."""
    attached = expressions.any_of(text_patterns.attached(query))
    if not attached:
        return None
    statement, values = match("documents_trigrams", attached, tenant)
    return (
        f"SELECT held.row AS row, beside.score AS score FROM ({statement}) beside "
        f"JOIN documents held ON held.row = beside.row WHERE NOT beside.{_HELD} AND {stands('held')}",
        [*values, expressions.any_word(query), json.dumps(text_patterns.of_attached(query))],
    )


def match(table: str, expression: str, tenant: Tenant | None, weight: float = 1.0) -> Source:
    """FTS5's bm25() is negative. The weights are given here, so that a build made with others ranks alike."""
    if tenant is None:
        score = f"-{weight} * bm25({table}, {_WEIGHTS})"
        return f"SELECT rowid AS row, {score} AS score FROM {table} WHERE {table} MATCH ?", [expression]
    own = tenant.lengths(table)
    part = f"{_PART}(bm25({table}, {_WEIGHTS}), bm25({table}, {SATURATED}), size.sz, {own.of_all!r}, {own.average!r})"
    parts = (
        f"SELECT phrase.key AS phrase, {table}.rowid AS row, "
        f"CASE WHEN +{table}.rowid IN (SELECT rowid FROM {table} WHERE {table} MATCH ?) THEN {part} END AS part "
        f"FROM json_each(?) phrase CROSS JOIN {table} CROSS JOIN {table}_docsize size ON size.id = {table}.rowid "
        f"WHERE {table} MATCH phrase.value AND {tenant.owns(f'{table}.rowid')}"
    )
    idf_of_phrase = f"{_IDF}({own.rows}, count(*) OVER (PARTITION BY phrase))"
    statement = (
        f"SELECT row, {weight} * sum(part) AS score FROM (SELECT row, part * {idf_of_phrase} AS part FROM ({parts})) "
        "WHERE part IS NOT NULL GROUP BY row"
    )
    return statement, [expression, json.dumps(_PHRASES.findall(expression)), *tenant.values]
