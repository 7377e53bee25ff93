"""What a mean over some queries says about others of their kind: a bootstrap over the queries."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_ROUNDS = 2000
_SEED = 20_260_101
_PART = 100  # rounds at a time: memory stays small, however many queries there are


@dataclass(frozen=True)
class Interval:
    """A mean and the bounds that 95 % of its resamples lie between."""

    mean: float
    low: float
    high: float


def interval(values: Sequence[float]) -> Interval:
    """The same for the same values: the dice are thrown from a fixed seed."""
    known = np.array(values, dtype=float)
    dice = np.random.default_rng(_SEED)
    means = np.concatenate(
        [known[dice.integers(0, len(known), (_PART, len(known)))].mean(axis=1) for _ in range(_ROUNDS // _PART)]
    )
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(known.mean()), float(low), float(high))
