"""How good one ranking is, as trec_eval reckons it: nDCG with the degree of relevance itself as the gain, recall, MRR.

A document that is not judged, or judged below 1, is not relevant.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

Gains = Mapping[str, int]
Metric = Callable[[Sequence[str], Gains], float]


def ndcg(ranked: Sequence[str], gains: Gains, depth: int = 10) -> float:
    found = [max(0, gains.get(name, 0)) for name in ranked[:depth]]
    best = sorted((gain for gain in gains.values() if gain > 0), reverse=True)[:depth]
    return _discounted(found) / _discounted(best) if best else 0.0


def recall(ranked: Sequence[str], gains: Gains, depth: int = 100) -> float:
    relevant = {name for name, gain in gains.items() if gain > 0}
    return len(relevant.intersection(ranked[:depth])) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranked: Sequence[str], gains: Gains, depth: int = 10) -> float:
    places = (place for place, name in enumerate(ranked[:depth], start=1) if gains.get(name, 0) > 0)
    return 1 / next(places, float("inf"))


METRICS: Mapping[str, Metric] = {"nDCG@10": ndcg, "recall@100": recall, "MRR@10": reciprocal_rank}
DEPTH = 100
"""So many documents of a ranking are looked at."""


def _discounted(gains: Sequence[int]) -> float:
    return float(np.sum(np.array(gains, dtype=float) / np.log2(np.arange(2, len(gains) + 2))))
