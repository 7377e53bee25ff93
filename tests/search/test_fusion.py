"""The arithmetic of fusion, by hand and for any rankings."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.search.fusion import Fused, Fusion, Ranking, alone, by_ranks, by_scores


def ranking(*keys: str) -> Ranking:
    """Falling scores, as engines give them."""
    return Ranking([(key, float(len(keys) - place)) for place, key in enumerate(keys)])


def keys(fused: list[Fused]) -> list[str]:
    return [one.key for one in fused]


def scores(fused: list[Fused]) -> dict[str, float]:
    return {one.key: one.score for one in fused}


def test_ranks_by_hand() -> None:
    fused = by_ranks({"keyword": ranking("a", "b", "c"), "semantic": ranking("c", "a", "d")})
    assert keys(fused) == ["a", "c", "b", "d"]
    assert scores(fused) == pytest.approx(
        {"a": 1 / 61 + 1 / 62, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 63}, rel=1e-12
    )


def test_scores_by_hand() -> None:
    """Keyword scores begin at 0, and what only words found has a similarity too."""
    keyword = Ranking([("a", 20.0), ("b", 12.0), ("c", 10.0)], low=0.0)
    semantic = Ranking([("c", 0.9), ("b", 0.6), ("d", 0.5)], beyond={"a": 0.4})
    fused = by_scores({"keyword": keyword, "semantic": semantic})
    assert scores(fused) == pytest.approx({"a": 0.5, "b": 0.3 + 0.2, "c": 0.25 + 0.5, "d": 0.1})
    assert keys(fused) == ["c", "a", "b", "d"]


def test_the_best_of_poor_hits_is_no_match_for_good_ones() -> None:
    """What holds a tenth of what is asked for is worth a fifth, for half of it is worth all."""
    poor = Ranking([("a", 0.1), ("b", 0.08)], low=0.0, most=1.0)
    semantic = Ranking([("b", 0.7), ("c", 0.5)], beyond={"a": 0.2})
    fused = by_scores({"keyword": poor, "semantic": semantic})
    assert scores(fused) == pytest.approx({"a": 0.1, "b": 0.08 + 0.5, "c": 0.3})
    good = Ranking([("a", 0.6), ("b", 0.3)], low=0.0, most=1.0)
    fused = by_scores({"keyword": good, "semantic": semantic})
    assert scores(fused) == pytest.approx({"a": 0.5, "b": 0.25 + 0.5, "c": 0.3})


def test_hits_of_one_score_are_all_the_best() -> None:
    for alike in (3.0, 0.0):
        keyword = Ranking([("a", alike), ("b", alike)], low=0.0)
        fused = by_scores({"keyword": keyword, "semantic": Ranking([("b", 0.4)])})
        assert scores(fused) == pytest.approx({"a": 0.5, "b": 1.0})


def test_a_single_hit_of_words_does_not_push_meaning_aside() -> None:
    """One leg has one hit, the other many: the best of both are level, the rest follows in the other's order."""
    semantic = Ranking([("b", 0.8), ("c", 0.6), ("d", 0.3)], beyond={"a": 0.2})
    assert keys(by_scores({"keyword": Ranking([("a", 7.0)], low=0.0), "semantic": semantic})) == ["a", "b", "c", "d"]
    assert keys(by_scores({"keyword": Ranking([], low=0.0), "semantic": replace(semantic, beyond={})})) == [
        "b",
        "c",
        "d",
    ]


def test_one_leg_alone_keeps_its_own_scores() -> None:
    fused = alone({"semantic": Ranking([("c", 0.9), ("a", 0.7)])})
    assert [(one.key, one.score) for one in fused] == [("c", 0.9), ("a", 0.7)]


@pytest.mark.parametrize("fusion", [by_ranks, by_scores, alone])
@pytest.mark.parametrize("rankings", [{}, {"keyword": ranking()}, {"keyword": ranking(), "semantic": ranking()}])
def test_nothing_gives_nothing(fusion: Fusion, rankings: dict[str, Ranking]) -> None:
    assert fusion(rankings) == []


@pytest.mark.parametrize("fusion", [by_ranks, by_scores])
def test_of_equal_scores_what_the_first_leg_found_comes_first(fusion: Fusion) -> None:
    for order in permutations("abc"):
        assert keys(fusion({f"leg {key}": ranking(key) for key in order})) == list(order)


RANKINGS = st.dictionaries(
    st.sampled_from(["keyword", "semantic", "third"]),
    st.lists(st.sampled_from("abcdefgh"), unique=True),
)


@given(RANKINGS)
def test_everything_ranked_comes_once_with_its_sum(rankings: dict[str, list[str]]) -> None:
    legs = {leg: ranking(*found) for leg, found in rankings.items()}
    for fusion in (by_ranks, by_scores):
        fused = fusion(legs)
        assert sorted(keys(fused)) == sorted(set().union(*rankings.values()))
        given = [one.score for one in fused]
        assert given == sorted(given, reverse=True)
        for one in fused:
            places = {leg: found.index(one.key) + 1 for leg, found in rankings.items() if one.key in found}
            assert {share.leg: share.rank for share in one.shares} == places
            assert one.score == pytest.approx(sum(share.points for share in one.shares))


@given(RANKINGS, st.floats(0.1, 100), st.floats(-50, 50))
def test_only_the_shape_of_similarities_counts(rankings: dict[str, list[str]], scale: float, shift: float) -> None:
    """Models have scales of their own, E5's begin at 0.7: another one changes no order and no fused score."""
    legs = {leg: ranking(*found) for leg, found in rankings.items()}
    moved = {leg: Ranking([(key, score * scale + shift) for key, score in one.hits]) for leg, one in legs.items()}
    assert scores(by_scores(moved)) == pytest.approx(scores(by_scores(legs)), abs=1e-6)


@given(RANKINGS, st.floats(0.01, 100))
def test_the_unit_of_keyword_scores_does_not_count(rankings: dict[str, list[str]], scale: float) -> None:
    legs = {leg: replace(ranking(*found), low=0.0) for leg, found in rankings.items()}
    moved = {leg: replace(one, hits=[(key, score * scale) for key, score in one.hits]) for leg, one in legs.items()}
    assert scores(by_scores(moved)) == pytest.approx(scores(by_scores(legs)), abs=1e-6)
