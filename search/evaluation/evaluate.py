"""Asks all judged queries and measures the answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chunksink.search.evaluation.metrics import METRICS, Interval, interval
from chunksink.search.evaluation.reading import Judgements, Queries, UnreadableSet


@dataclass(frozen=True)
class JudgedQueries:
    """What can be measured: queries with a relevant document. The others are counted."""

    queries: Queries
    judgements: Judgements
    not_judged: int
    """Queries without a judgement, or with none but of irrelevant documents."""
    without_text: int
    """Judged queries that the file of queries does not have."""


def choose(queries: Queries, judgements: Judgements, limit: int | None = None) -> JudgedQueries:
    """The first `limit` queries that can be measured, or all."""
    relevant = {query for query, gains in judgements.items() if any(gain > 0 for gain in gains.values())}
    chosen = [query for query in queries if query in relevant]
    if not chosen:
        raise UnreadableSet(
            "no query has a document that was judged relevant: do queries and judgements belong together?"
        )
    return JudgedQueries(
        queries={query: queries[query] for query in chosen[:limit]},
        judgements={query: judgements[query] for query in chosen[:limit]},
        not_judged=len(queries) - len(chosen),
        without_text=len(relevant - queries.keys()),
    )


@dataclass(frozen=True)
class Measured:
    """Each metric, its mean over the queries and what that is worth; `values` in the order of the queries."""

    figures: Mapping[str, Interval]
    values: Mapping[str, Sequence[float]]


def evaluate(asked: JudgedQueries, rank: Callable[[str], Sequence[str]]) -> Measured:
    """`rank` gives for the text of a query the names of documents, best first."""
    rankings = {query: rank(text) for query, text in asked.queries.items()}
    values = {
        name: [metric(ranked, asked.judgements[query]) for query, ranked in rankings.items()]
        for name, metric in METRICS.items()
    }
    return Measured({name: interval(of_metric) for name, of_metric in values.items()}, values)
