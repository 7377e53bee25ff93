"""Chooses the weight of keyword search in hybrid scores from judged queries, with cross-validation."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

Weight = float | None
"""None: the weight is chosen for each query."""
WEIGHTS: tuple[Weight, ...] = (None, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_FOLDS = 5
_SEED = 20_260_101


@dataclass(frozen=True)
class Tuning:
    """`means` has the mean over all queries for each weight. `best` is the weight with the highest mean.

    `expected` is the mean to expect on other queries. The queries are split into five parts; each part is measured with
    the weight that is best for the other four. It is usually below the mean of `best`, which was chosen on all queries.
    """

    means: Mapping[Weight, float]
    best: Weight
    expected: float

    @property
    def is_better(self) -> bool:
        """Whether a fixed weight is expected to be better than one that is chosen for each query."""
        return self.best is not None and self.expected > self.means[None]


def tune(values: Mapping[Weight, Mapping[str, float]]) -> Tuning:
    """`values` maps each weight to the value of each query."""
    queries = sorted(values[None])
    random.Random(_SEED).shuffle(queries)
    held_out: list[float] = []
    for fold in range(min(_FOLDS, len(queries))):
        others = [query for place, query in enumerate(queries) if place % _FOLDS != fold]
        chosen = _best(values, others or queries)
        held_out += [values[chosen][query] for query in queries[fold::_FOLDS]]
    means = {weight: fmean(of_query.values()) for weight, of_query in values.items()}
    return Tuning(means, _best(values, queries), fmean(held_out))


def _best(values: Mapping[Weight, Mapping[str, float]], queries: Sequence[str]) -> Weight:
    """The weight with the highest mean. On a tie the first one, so None is preferred to a number."""
    return max(values, key=lambda weight: fmean(values[weight][query] for query in queries))
