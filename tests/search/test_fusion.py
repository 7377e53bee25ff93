"""The arithmetic of fusion: 1 / (60 + rank), summed over the rankings."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.fusion import fuse_ranks


def test_by_hand() -> None:
    fused = fuse_ranks({"keyword": ["a", "b", "c"], "semantic": ["c", "a", "d"]})
    assert [id_ for id_, _ in fused] == ["a", "c", "b", "d"]
    assert dict(fused) == pytest.approx(
        {"a": 1 / 61 + 1 / 62, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 63}, rel=1e-12
    )


def test_second_in_both_goes_before_first_in_one() -> None:
    assert fuse_ranks({"keyword": ["a", "b"], "semantic": ["c", "b"]})[0][0] == "b"


def test_one_ranking_stays_as_it_is() -> None:
    assert [id_ for id_, _ in fuse_ranks({"keyword": ["c", "a", "b"]})] == ["c", "a", "b"]


@pytest.mark.parametrize("rankings", [{}, {"keyword": []}, {"keyword": [], "semantic": []}])
def test_nothing_gives_nothing(rankings: dict[str, list[str]]) -> None:
    assert fuse_ranks(rankings) == []


def test_equal_scores_have_a_stable_order() -> None:
    for order in permutations("abc"):
        rankings = {f"leg {id_}": [id_] for id_ in order}
        assert [id_ for id_, _ in fuse_ranks(rankings)] == ["a", "b", "c"]


@given(
    st.dictionaries(
        st.sampled_from(["keyword", "semantic", "third"]),
        st.lists(st.sampled_from("abcdefgh"), unique=True),
    )
)
def test_everything_ranked_comes_once_with_its_sum(rankings: dict[str, list[str]]) -> None:
    fused = fuse_ranks(rankings)
    assert sorted(id_ for id_, _ in fused) == sorted(set().union(*rankings.values()))
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)
    for id_, score in fused:
        places = [ranking.index(id_) + 1 for ranking in rankings.values() if id_ in ranking]
        assert score == pytest.approx(sum(1 / (60 + place) for place in places))
