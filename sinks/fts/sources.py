"""Where what is looked for stands, and how much each row has of it: a statement for each index that is asked."""

import json

from chunksink.sinks.fts import expressions, patterns, schema, short
from chunksink.sinks.fts.typed import FEW, MOST_TERMS, Query

BEGUN_WEIGHT = 0.5
"""A word that the last one is only the beginning of is a guess."""
JOINED_WEIGHT = 0.5
"""Of words that were typed joined (dry-run), where they stand side by side, beside what each of them gives."""
_LACKING = 0.85
"""What lacks one of a few words counts a little less than BM25 says; so does what has none of them in its text: a title
is that of every passage of its source."""
_WEIGHTS = ", ".join(map(str, schema.WEIGHTS.values()))
_HELD = "row IN (SELECT rowid FROM documents_fts WHERE documents_fts MATCH ?)"
# Every text is looked through, for whoever asks for an emoji and nothing else: all that one has of them counts.
SYMBOLS = (
    "SELECT held.row AS row, count(*) AS score FROM documents held, json_each(?) symbol "
    f"WHERE {' OR '.join(f'instr(held.{name}, symbol.value)' for name in schema.SEARCHED)} GROUP BY held.row"
)

Source = tuple[str, list[str]]
"""A statement that gives rows and their scores, and its values."""
Sources = dict[str, list[Source]]
"""By what is looked for: words, runs of scripts without spaces, or symbols."""


def sources_of(query: Query, begun_weight: float) -> Sources:
    """All of them; `begun_weight` is that of words that the last one is only the beginning of."""
    sources: Sources = {}
    if query.words:
        sources["words"] = [_words(query)]
        if query.begun:
            sources["words"].append(_said(query, expressions.longer(query), begun_weight))
        if query.joined:
            sources["words"].append(match("documents_fts", expressions.side_by_side(query), JOINED_WEIGHT))
        if attached := beside(query):
            sources["words"].append(attached)
    if query.runs:
        runs = short.runs(query)
        wanted = len(runs) if len(runs) <= FEW else 1
        sources["runs"] = [(short.scores(wanted=wanted, lacking=_LACKING), [json.dumps(runs)])]
        if whole := expressions.any_of([run for run in query.runs if len(run) > 2][:MOST_TERMS]):
            sources["runs"].append(match("documents_trigrams", whole))
    if query.symbols:
        sources["symbols"] = [(SYMBOLS, [json.dumps(query.symbols)])]
    return sources


def _words(query: Query) -> Source:
    statement, values = _said(query, expressions.words(query))
    if query.runs or not 1 < len(query.words) <= FEW:
        return statement, values
    counted = f"SELECT row, score * iif({_HELD}, 1, {_LACKING}) AS score FROM ({statement})"
    return counted, [expressions.every_word(query), *values]


def _said(query: Query, expression: str, weight: float = 1.0) -> Source:
    """What matches; of a few words a little less where no text says it."""
    statement, values = match("documents_fts", expression, weight)
    if query.runs or len(query.words) > FEW:
        return statement, values
    counted = f"SELECT row, score * iif({_HELD}, 1, {_LACKING}) AS score FROM ({statement})"
    return counted, [expressions.in_text(expression), *values]


def beside(query: Query) -> Source | None:
    """Words beside scripts without spaces, of rows in which none is a word of its own: it would count twice."""
    attached = expressions.any_of(patterns.attached(query))
    if not attached:
        return None
    statement, values = match("documents_trigrams", attached)
    apart = "rowid NOT IN (SELECT rowid FROM documents_fts WHERE documents_fts MATCH ?)"
    return (
        f"SELECT held.row AS row, beside.score AS score FROM ({statement} AND {apart}) beside "
        f"JOIN documents held ON held.row = beside.row WHERE {short.stands('held')}",
        [*values, expressions.any_word(query), json.dumps(patterns.of_attached(query))],
    )


def match(table: str, expression: str, weight: float = 1.0) -> Source:
    """FTS5's bm25() is negative. The weights are given here, so that a build made with others ranks alike."""
    score = f"-{weight} * bm25({table}, {_WEIGHTS})"
    return f"SELECT rowid AS row, {score} AS score FROM {table} WHERE {table} MATCH ?", [expression]
