"""Metrics compared with manual calculations, and their confidence intervals."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.search.evaluation.evaluate import METRICS, Interval, interval, ndcg, recall, reciprocal_rank

GAINS = {"a": 3, "b": 2, "c": 3, "e": 1, "f": 2, "no": 0, "worse": -1}


def test_ndcg_matches_a_manual_calculation() -> None:
    """The gain is the degree itself: 2 ** degree - 1 would result in 0.9489 for the well-known example."""
    ranked = ["a", "b", "c", "no", "e", "f"]
    dcg = 3 + 2 / math.log2(3) + 3 / 2 + 1 / math.log2(6) + 2 / math.log2(7)
    ideal = 3 + 3 / math.log2(3) + 2 / 2 + 2 / math.log2(5) + 1 / math.log2(6)
    assert dcg == pytest.approx(6.861, abs=1e-3)
    assert ndcg(ranked, GAINS) == pytest.approx(dcg / ideal)
    assert ndcg(ranked, GAINS) == pytest.approx(0.9608, abs=1e-4)


def test_ndcg_ignores_documents_below_its_depth() -> None:
    many = {f"d{number}": 1 for number in range(50)}
    assert ndcg([f"d{number}" for number in range(10)], many) == pytest.approx(1)
    assert ndcg([*(f"x{number}" for number in range(10)), "d1"], many) == 0


def test_documents_judged_below_one_are_not_relevant() -> None:
    assert ndcg(["worse", "no", "a"], GAINS) == ndcg(["x", "y", "a"], GAINS) > 0
    assert recall(["worse", "no"], GAINS) == 0
    assert reciprocal_rank(["worse", "no", "f"], GAINS) == pytest.approx(1 / 3)


def test_recall_and_reciprocal_rank_match_a_manual_calculation() -> None:
    assert recall(["x", "a", "f"], GAINS) == pytest.approx(2 / 5)
    assert recall([*(f"x{number}" for number in range(100)), "a"], GAINS) == 0
    assert recall([*(f"x{number}" for number in range(99)), "a"], GAINS) == pytest.approx(1 / 5)
    assert reciprocal_rank(["x", "y", "z", "e", "a"], GAINS) == pytest.approx(1 / 4)
    assert reciprocal_rank([*(f"x{number}" for number in range(10)), "a"], GAINS) == 0


@given(
    st.lists(st.sampled_from("abcdefxyz"), unique=True), st.dictionaries(st.sampled_from("abcdef"), st.integers(-1, 4))
)
def test_metrics_are_between_zero_and_one(ranked: list[str], gains: dict[str, int]) -> None:
    best = sorted(gains, key=lambda name: -gains[name])
    for metric in METRICS.values():
        assert 0 <= metric(ranked, gains) <= 1 + 1e-12
        if any(gain > 0 for gain in gains.values()):
            assert metric(best, gains) == pytest.approx(1)
        else:
            assert metric(best, gains) == 0


def test_interval_contains_the_mean_and_is_reproducible() -> None:
    """Of 200 zeros and 200 ones the mean is 0.5 and its standard error 0.025."""
    values = [0.0, 1.0] * 200
    first = interval(values)
    assert first == interval(values)
    assert first.mean == 0.5
    assert first.low == pytest.approx(0.5 - 1.96 * 0.025, abs=0.006)
    assert first.high == pytest.approx(0.5 + 1.96 * 0.025, abs=0.006)


def test_interval_of_one_query_is_its_value() -> None:
    assert interval([0.25]) == Interval(0.25, 0.25, 0.25)
