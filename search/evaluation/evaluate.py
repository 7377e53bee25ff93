"""Runs all judged queries and computes nDCG, recall and MRR as trec_eval does. The gain in nDCG is the degree of
relevance.

A document without a judgement, or judged below 1, is not relevant. Confidence intervals come from a bootstrap over the
queries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chunksink.search.evaluation.reading import InvalidEvaluation, Judgements, Queries

_RESAMPLES = 2000
_SEED = 20_260_101
_PART = 100  # resamples at a time, to limit memory

Gains = Mapping[str, int]
Metric = Callable[[Sequence[str], Gains], float]


def ndcg(ranked: Sequence[str], gains: Gains) -> float:
    found = [max(0, gains.get(name, 0)) for name in ranked[:10]]
    best = sorted((gain for gain in gains.values() if gain > 0), reverse=True)[:10]
    return _discounted(found) / _discounted(best) if best else 0.0


def recall(ranked: Sequence[str], gains: Gains) -> float:
    relevant = {name for name, gain in gains.items() if gain > 0}
    return len(relevant.intersection(ranked[:DEPTH])) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranked: Sequence[str], gains: Gains) -> float:
    places = (place for place, name in enumerate(ranked[:10], start=1) if gains.get(name, 0) > 0)
    return 1 / next(places, float("inf"))


METRICS: Mapping[str, Metric] = {"nDCG@10": ndcg, "recall@100": recall, "MRR@10": reciprocal_rank}
DEPTH = 100
"""How many documents of a ranking are evaluated."""


def _discounted(gains: Sequence[int]) -> float:
    return float(np.sum(np.array(gains, dtype=float) / np.log2(np.arange(2, len(gains) + 2))))


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float


def interval(values: Sequence[float]) -> Interval:
    """A bootstrap with a fixed seed: the same values have the same interval."""
    sample = np.array(values, dtype=float)
    generator = np.random.default_rng(_SEED)
    means = np.concatenate(
        [
            sample[generator.integers(0, len(sample), (_PART, len(sample)))].mean(axis=1)
            for _ in range(_RESAMPLES // _PART)
        ]
    )
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(sample.mean()), float(low), float(high))


@dataclass(frozen=True)
class JudgedQueries:
    """The queries that have a relevant document. The others are only counted."""

    queries: Queries
    judgements: Judgements
    not_judged: int
    """Queries for which no document was judged relevant."""
    without_text: int
    """Judged queries that are missing from the file of queries."""


def choose(queries: Queries, judgements: Judgements, limit: int | None = None) -> JudgedQueries:
    """The first `limit` queries that can be measured, or all."""
    relevant = {query for query, gains in judgements.items() if any(gain > 0 for gain in gains.values())}
    chosen = [query for query in queries if query in relevant]
    if not chosen:
        raise InvalidEvaluation(
            "no query has a document that was judged relevant: do both files belong to the same test set?"
        )
    return JudgedQueries(
        queries={query: queries[query] for query in chosen[:limit]},
        judgements={query: judgements[query] for query in chosen[:limit]},
        not_judged=len(queries) - len(chosen),
        without_text=len(relevant - queries.keys()),
    )


Values = Mapping[str, Mapping[str, float]]
"""Maps each metric to its value for each query."""
Figures = Mapping[str, Interval]
"""Maps each metric to its mean over the queries, with the confidence interval."""


def evaluate(judged: JudgedQueries, rank: Callable[[str], Sequence[str]]) -> Values:
    """`rank` returns the names of documents for the text of a query, best first."""
    rankings = {query: rank(text) for query, text in judged.queries.items()}
    return {
        name: {query: metric(ranked, judged.judgements[query]) for query, ranked in rankings.items()}
        for name, metric in METRICS.items()
    }


def figures(values: Values) -> Figures:
    return {name: interval(list(of_query.values())) for name, of_query in values.items()}
