"""Runs of one or two characters, which are no trigram: every place of the trigrams that begin with them is counted.

To ask for all these trigrams by MATCH takes time with the square of their number, and to ask for the most frequent ones
loses what is rare.
"""

import math
import sqlite3

from sinks.fts.schema import WEIGHTS

_IDF = "chunksink_idf"
K1 = 1.2  # that of FTS5's bm25(); the lengths of the columns are not to be had here, so they do not count

_WEIGHT = " ".join(f"WHEN '{name}' THEN {weight}" for name, weight in WEIGHTS.items())
_PLACES = (
    "json_each(?) part CROSS JOIN documents_places place "
    "ON place.term >= part.value AND place.term <= part.value || char(1114111, 1114111)"
)

ROWS = f"SELECT place.doc FROM {_PLACES}"
"""The rows that hold any of the runs, which come as a JSON list."""

_SCORES = (
    "WITH held AS (SELECT part.key AS part, place.doc AS row, "
    f"sum(CASE place.col {_WEIGHT} END) AS weight FROM {_PLACES} GROUP BY 1, 2), "
    f"spread AS (SELECT part, {_IDF}((SELECT count(*) FROM documents_trigrams_docsize), count(*)) AS idf "
    "FROM held GROUP BY 1) "
    f"SELECT row, sum(idf * weight * {K1 + 1} / (weight + {K1}))"
)


def scores(*, wanted: int = 1, lacking: float = 1.0) -> str:
    """Rows and scores as BM25 has them, of those that hold any of the runs, which come as a JSON list; where fewer
    than `wanted` are held, only so much of it."""
    return (
        f"{_SCORES} * iif(count(*) >= {wanted}, 1, {lacking}) AS score FROM held JOIN spread USING (part) GROUP BY row"
    )


def prepare(connection: sqlite3.Connection) -> None:
    """Teaches the connection what `scores` needs: not every SQLite has a logarithm."""
    connection.create_function(_IDF, 2, idf, deterministic=True)


def idf(rows: int, holding: int) -> float:
    """As FTS5's bm25() has it."""
    return max(1e-6, math.log((max(rows, holding) - holding + 0.5) / (holding + 0.5)))
