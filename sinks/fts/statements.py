"""SQL statements that find and score rows by words, and by runs of scripts without spaces.

A run of one or two characters has no trigram, so the positions of all trigrams that begin with it are counted. (MATCH
with all these trigrams would take quadratic time.) The trigram index also finds words beside a script without spaces,
and phrases in such a script, but not exactly. So these matches are checked in the texts of the rows.
"""

import json
import math
import re
import sqlite3
import sys
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from chunksink.sinks.fts import expressions, text_patterns
from chunksink.sinks.fts.query import FEW, MAX_PAIRS, MAX_TERMS, RUN, TOKEN, Query, is_spaceless
from chunksink.sinks.fts.schema import INDEXES, SEARCHED, WEIGHTS
from chunksink.sinks.fts.tenant import K1, SATURATED, Tenant, bm25_part
from chunksink.sinks.fts.word_forms import widths
from chunksink.sinks.reader import Value

_IDF, _HAS_MATCH, _PART = "chunksink_idf", "chunksink_has_match", "chunksink_bm25_part"

_WEIGHT = " ".join(f"WHEN '{name}' THEN {weight}" for name, weight in WEIGHTS.items())

# Each statement takes a JSON list with a `part` for each search term: the number of the term, an expression for an
# index or a range of trigrams, and for some statements patterns for the text.
_NUMBER, _EXPRESSION, _FIRST, _LAST, _PATTERNS = (
    f"json_extract(part.value, '{path}')" for path in ("$[0]", "$[1]", "$[1][0]", "$[1][1]", "$[2]")
)
_PLACES = f"json_each(?) part CROSS JOIN documents_places place ON place.term >= {_FIRST} AND place.term <= {_LAST}"
ROWS = f"SELECT DISTINCT place.doc AS row FROM {_PLACES}"
"""The rows that have any of the terms of `places`."""
_AFTER_RUN = (("", 2 * chr(sys.maxunicode)),)
_AFTER_WORD = (("", "0"), (":", "a"), ("{", "\u00c0"), ("\u0e00", 2 * chr(sys.maxunicode)))
"""What may follow a word: spaces, punctuation, and scripts without spaces. With letters and digits, which also follow
the beginnings of words, searches would be slow."""
_TEXT_MATCHES = f"{_HAS_MATCH}({_PATTERNS}, {', '.join(f'candidate.{name}' for name in SEARCHED)})"
_OF_WORDS = (
    f"SELECT {_NUMBER} AS part, documents_fts.rowid AS row FROM json_each(?) part "
    f"CROSS JOIN documents_fts WHERE documents_fts MATCH {_EXPRESSION}"
)
_OF_PUNCTUATED, _OF_TRIGRAMS = (
    f"SELECT {_NUMBER}, candidate.row FROM json_each(?) part CROSS JOIN {index} "
    f"CROSS JOIN documents candidate ON candidate.row = {index}.rowid "
    f"WHERE {index} MATCH {_EXPRESSION} AND {_TEXT_MATCHES}"
    for index in INDEXES
)
_OF_SHORTS = (
    f"SELECT {_NUMBER}, candidate.row FROM (SELECT DISTINCT part.value, place.doc FROM {_PLACES}) part "
    f"CROSS JOIN documents candidate ON candidate.row = part.doc WHERE {_TEXT_MATCHES}"
)

_PHRASES = re.compile(r'"(?:[^"]|"")*"(?: \*)?')

PREFIX_WEIGHT = 0.5
"""The weight of longer words that begin with the last word of the query. It is below 1, because the last word may be
complete."""
JOINED_WEIGHT = 0.5
"""The weight of adjacent parts of a joined word (dry-run), of compounds, and of the whole query as one phrase. These
score in addition to the single words."""
_INCOMPLETE = 0.85
"""In short queries, the factor for a row that lacks one of the words, or has none of them in its text. A match in the
title says little, because all documents of a source have the same title."""
_WEIGHTS = ", ".join(map(str, WEIGHTS.values()))
_ROW_MATCHES = "row IN (SELECT rowid FROM documents_fts WHERE documents_fts MATCH ?)"

ScorePart = tuple[str, list[Value]]
"""A statement for row ids and scores, and its values. The scores of a row in all parts are added up."""
ScoreParts = dict[str, list[ScorePart]]
"""By kind: `words`, or `runs` of scripts without spaces."""


def short_runs(query: Query) -> list[str]:
    """The runs of one or two characters, and the pairs of neighbours in longer runs, because a longer run may not occur
    as a whole."""
    pairs = [pair for run in query.runs for pair in _pairs(run)]
    return list(dict.fromkeys(pairs))[:MAX_PAIRS]


def _border_pairs(query: Query) -> list[str]:
    """The pairs of neighbours where a word is joined to a run."""
    pairs = (pair for word in query.mixed for pair in _pairs(word))
    return [pair for pair in dict.fromkeys(pairs) if is_spaceless(pair) and not RUN.fullmatch(pair)][:MAX_PAIRS]


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] if len(run) > 2 else [run]


def places(terms: Sequence[str]) -> str:
    """The ranges of the trigrams that begin with these terms of one or two characters, as JSON."""
    return json.dumps([(number, place) for number, term in enumerate(terms) for place in _ranges(term)])


def _ranges(term: str) -> list[tuple[str, str]]:
    return [(term + first, term + last) for first, last in (_AFTER_RUN if is_spaceless(term) else _AFTER_WORD)]


def scores(terms: Sequence[str], needed: int, tenant: Tenant | None) -> ScorePart:
    """Rows with any of these runs and words of one or two characters, scored by BM25 without its length norm: lengths
    are unavailable here. A row that lacks one of the first `needed` terms counts a little less."""
    table = "documents_trigrams"
    rows = str(tenant.lengths(table).rows) if tenant else f"(SELECT count(*) FROM {table}_docsize)"
    owned = f"WHERE {tenant.owns('place.doc')}" if tenant else ""
    statement = (
        f"WITH weights AS (SELECT {_NUMBER} AS part, place.doc AS row, "
        f"sum(CASE place.col {_WEIGHT} END) AS weight FROM {_PLACES} {owned} GROUP BY 1, 2), "
        f"spread AS (SELECT part, {_IDF}({rows}, count(*)) AS idf FROM weights GROUP BY 1) "
        f"SELECT row, sum(idf * weight * {K1 + 1} / (weight + {K1})) * "
        f"iif(sum(part < {needed}) = {needed}, 1, {_INCOMPLETE}) AS score "
        "FROM weights JOIN spread USING (part) GROUP BY row"
    )
    return statement, [places(terms), *(tenant.values if tenant else ())]


def has_match(row: str) -> str:
    """A condition on a row of `documents`: a searched column matches one of the patterns. Its `?` takes the
    patterns as a JSON list."""
    return f"{_HAS_MATCH}(?, {', '.join(f'{row}.{name}' for name in SEARCHED)})"


def rows_with_all(terms: Sequence[str], prefix: str = "", *, as_typed: Collection[str] = ()) -> tuple[str, list[str]]:
    """A statement for the rows that have all of these words and phrases, and its values. In the terms in `as_typed`,
    punctuation must match."""
    words, punctuated, trigrams, shorts = [], [], [], []
    for number, term in enumerate(terms):
        exact = term in as_typed and text_patterns.has_punctuation(term)
        is_prefix = term == prefix and term not in as_typed
        forms = [term] if exact else widths(term)
        own = [text_patterns.pattern(form, as_prefix=is_prefix) for form in forms]
        patterns = json.dumps([text_patterns.exact_pattern(term)] if exact else own)
        if not is_spaceless(term):
            expression = expressions.word(term, as_prefix=is_prefix)
            if exact:
                punctuated.append((number, expression, patterns))
            else:
                words.append((number, expression))
        for form in forms:
            tokens = text_patterns.punctuated_words(form) if exact else TOKEN.findall(form)
            if candidates := expressions.candidates(tokens):
                trigrams.append((number, candidates, patterns))
            elif found := RUN.search(form) or TOKEN.search(form):  # two characters are enough to find candidates
                shorts += [(number, place, patterns) for place in _ranges(found[0][:2].lower())]
    of_all = " UNION ".join((_OF_WORDS, _OF_PUNCTUATED, _OF_TRIGRAMS, _OF_SHORTS))
    rows = f"SELECT row FROM ({of_all}) GROUP BY row HAVING count(*) = {len(terms)}"
    return rows, [json.dumps(one) for one in (words, punctuated, trigrams, shorts)]


def prepare(connection: sqlite3.Connection) -> None:
    """Register the SQL functions of this module. (Not every SQLite has a logarithm.)"""
    connection.create_function(_IDF, 2, idf, deterministic=True)
    connection.create_function(_HAS_MATCH, 1 + len(SEARCHED), _has_match, deterministic=True)
    connection.create_function(_PART, 5, bm25_part, deterministic=True)


def _has_match(patterns: str, *columns: str | None) -> bool:
    compiled = _compiled(patterns)
    return any(one.search(text) for column in columns if column and (text := column.lower()) for one in compiled)


@lru_cache(maxsize=64)
def _compiled(patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, json.loads(patterns)))


def idf(rows: int, matching: int) -> float:
    """The formula of FTS5's bm25()."""
    return max(1e-6, math.log((max(rows, matching) - matching + 0.5) / (matching + 0.5)))


def score_parts_of(query: Query, prefix_weight: float, tenant: Tenant | None) -> ScoreParts:
    """All score parts of a query. `prefix_weight` is for longer words that begin with the query's last word."""
    parts: ScoreParts = {}
    if query.words:
        parts["words"] = [_words(query, tenant)]
        if query.prefix:
            parts["words"].append(_preferring_text(query, expressions.longer(query), tenant, prefix_weight))
        for terms in filter(any, (query.joined, query.compounds, [query.verbatim])):
            parts["words"].append(match("documents_fts", expressions.words(terms), tenant, JOINED_WEIGHT))
        if attached := with_attached_words(query, tenant):
            parts["words"].append(attached)
    if query.runs:
        short = short_runs(query)
        needed = len(short) if len(short) <= FEW else 0
        parts["runs"] = [scores([*short, *_border_pairs(query)], needed, tenant)]
        if whole := expressions.any_of([run for run in query.runs if len(run) > 2][:MAX_TERMS]):
            parts["runs"].append(match("documents_trigrams", whole, tenant))
        if mixed := [word for word in query.mixed if len(word) > 2]:  # as trigrams, 1月3日 is also in 11月3日
            found = match("documents_trigrams", expressions.any_of(mixed), tenant)
            parts["runs"].append(_with_match(found, map(text_patterns.pattern, mixed)))
    return parts


def _words(query: Query, tenant: Tenant | None) -> ScorePart:
    statement, values = _preferring_text(query, expressions.words(query.words), tenant)
    if query.runs or not 1 < len(query.words) <= FEW:
        return statement, values
    lowered = f"SELECT row, score * iif({_ROW_MATCHES}, 1, {_INCOMPLETE}) AS score FROM ({statement})"
    return lowered, [expressions.every_word(query), *values]


def _preferring_text(query: Query, expression: str, tenant: Tenant | None, weight: float = 1.0) -> ScorePart:
    """Matching rows. For a short query, rows without a match in their text count a little less."""
    statement, values = match("documents_fts", expression, tenant, weight)
    if query.runs or len(query.words) > FEW:
        return statement, values
    # Most rows match in their text, so the few others are looked up.
    only_elsewhere = f"(- text: ({expression})) NOT (text: ({expression}))"
    lowered = f"SELECT row, score * iif({_ROW_MATCHES}, {_INCOMPLETE}, 1) AS score FROM ({statement})"
    return lowered, [only_elsewhere, *values]


def with_attached_words(query: Query, tenant: Tenant | None) -> ScorePart | None:
    """Rows with a word beside a script without spaces, unless the word index finds them: they would count twice."""
    attached = text_patterns.attached(query)
    parts = []
    if long := [word for word in attached if len(word) > 2]:
        candidates = (expressions.candidates(TOKEN.findall(word)) or expressions.quoted(word) for word in long)
        parts.append(match("documents_trigrams", " OR ".join(f"({one})" for one in candidates), tenant))
    if short := [word.lower() for word in attached if len(word) <= 2]:
        parts.append(scores(short, 0, tenant))
    if not parts:
        return None
    found = " UNION ALL ".join(f"SELECT row, score FROM ({statement})" for statement, _ in parts)
    values = [value for _, of_part in parts for value in of_part]
    beside = f"SELECT row, score FROM ({found}) WHERE NOT {_ROW_MATCHES}", [*values, expressions.any_word(query)]
    return _with_match(beside, text_patterns.attached_patterns(query))


def _with_match(part: ScorePart, patterns: Iterable[str]) -> ScorePart:
    """Only the rows in which one of the patterns matches."""
    statement, values = part
    joined = f"({statement}) found JOIN documents d ON d.row = found.row"
    matching = f"SELECT found.row AS row, found.score AS score FROM {joined} WHERE {has_match('d')}"
    return matching, [*values, json.dumps(list(patterns))]


def match(table: str, expression: str, tenant: Tenant | None, weight: float = 1.0) -> ScorePart:
    """Rows that match, scored by BM25. FTS5's bm25() is negative. It gets our weights, in case the build has others."""
    if tenant is None:
        score = f"-{weight} * bm25({table}, {_WEIGHTS})"
        return f"SELECT rowid AS row, {score} AS score FROM {table} WHERE {table} MATCH ?", [expression]
    own = tenant.lengths(table)
    part = f"{_PART}(bm25({table}, {_WEIGHTS}), bm25({table}, {SATURATED}), size.sz, {own.overall!r}, {own.average!r})"
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
