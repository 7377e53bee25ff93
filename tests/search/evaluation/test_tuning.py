"""The weight of keyword search is chosen by queries that it is not measured on."""

import random

import pytest

from chunksink.search.evaluation.tuning import WEIGHTS, Weight, tune

QUERIES = [f"q{number}" for number in range(40)]


def values(better: dict[Weight, float], noise: float = 0.0) -> dict[Weight, dict[str, float]]:
    chance = random.Random(1)
    return {
        weight: {query: 0.5 + better.get(weight, 0.0) + noise * chance.uniform(-1, 1) for query in QUERIES}
        for weight in WEIGHTS
    }


def test_better_weight_is_proposed() -> None:
    tuning = tune(values({0.3: 0.2, 0.7: 0.1}))
    assert (tuning.best, tuning.is_better) == (0.3, True)
    assert tuning.expected == pytest.approx(0.7)
    assert tuning.means[None] == pytest.approx(0.5)


def test_equal_weights_leave_it_to_the_query() -> None:
    tuning = tune(values({}))
    assert (tuning.best, tuning.is_better) == (None, False)


def test_chance_is_not_a_gain() -> None:
    """The best of twelve equal weights looks better than it is."""
    tuning = tune(values({}, noise=0.3))
    assert max(tuning.means.values()) > tuning.expected
    assert tuning.expected == pytest.approx(0.5, abs=0.06)


def test_single_query_can_be_tuned() -> None:
    assert tune({weight: {"q": weight or 0.0} for weight in WEIGHTS}).best == 1.0
