"""The arithmetic of fusion: compared with manual calculations, and for random rankings."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.search.fusion import Fused, Fusion, Ranking, alone, best_value, by_ranks, by_scores, keyword_weight


def ranking(*keys: str) -> Ranking:
    """Falling scores, like those of engines."""
    return Ranking([(key, float(len(keys) - place)) for place, key in enumerate(keys)])


def keys(fused: list[Fused]) -> list[str]:
    return [one.key for one in fused]


def scores(fused: list[Fused]) -> dict[str, float]:
    return {one.key: one.score for one in fused}


def test_by_ranks_matches_a_manual_calculation() -> None:
    fused = by_ranks({"keyword": ranking("a", "b", "c"), "semantic": ranking("c", "a", "d")})
    assert keys(fused) == ["a", "c", "b", "d"]
    assert scores(fused) == pytest.approx(
        {"a": 1 / 61 + 1 / 62, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 63}, rel=1e-12
    )


def test_by_scores_matches_a_manual_calculation() -> None:
    """Keyword scores begin at 0. A key that only keyword search found has a similarity, too."""
    keyword = Ranking([("a", 20.0), ("b", 12.0), ("c", 10.0)], low=0.0)
    semantic = Ranking([("c", 0.9), ("b", 0.6), ("d", 0.5)], other_scores={"a": 0.4})
    fused = by_scores({"keyword": keyword, "semantic": semantic})
    assert scores(fused) == pytest.approx({"a": 0.5, "b": 0.3 + 0.2, "c": 0.25 + 0.5, "d": 0.1})
    assert keys(fused) == ["c", "a", "b", "d"]


def test_best_of_poor_hits_ranks_below_good_ones() -> None:
    """A tenth of the best possible score counts as a fifth, because half of it counts as 1."""
    poor = Ranking([("a", 0.1), ("b", 0.08)], low=0.0, full_match=1.0)
    semantic = Ranking([("b", 0.7), ("c", 0.5)], other_scores={"a": 0.2})
    fused = by_scores({"keyword": poor, "semantic": semantic})
    assert scores(fused) == pytest.approx({"a": 0.1, "b": 0.08 + 0.5, "c": 0.3})
    good = Ranking([("a", 0.6), ("b", 0.3)], low=0.0, full_match=1.0)
    fused = by_scores({"keyword": good, "semantic": semantic})
    assert scores(fused) == pytest.approx({"a": 0.5, "b": 0.25 + 0.5, "c": 0.3})


def test_keyword_weight_grows_with_the_best_hit() -> None:
    whole, half, none = (
        Ranking(hits, low=0.0, full_match=8.0) for hits in ([("a", 5.0)], [("a", 2.0), ("b", 1.0)], [])
    )
    assert [best_value(one) for one in (whole, half, none)] == [1.0, 0.5, 0.0]
    assert [keyword_weight(best_value(one)) for one in (whole, half, none)] == pytest.approx([0.6, 0.45, 0.3])


def test_by_scores_uses_the_weights_of_the_legs() -> None:
    keyword = Ranking([("a", 2.0), ("b", 1.0)], low=0.0, weight=0.75)
    semantic = Ranking([("b", 0.9), ("a", 0.4)], weight=0.25)
    assert scores(by_scores({"keyword": keyword, "semantic": semantic})) == pytest.approx({"a": 0.75, "b": 0.625})


def test_equal_scores_all_count_as_best() -> None:
    for alike in (3.0, 0.0):
        keyword = Ranking([("a", alike), ("b", alike)], low=0.0)
        fused = by_scores({"keyword": keyword, "semantic": Ranking([("b", 0.4)])})
        assert scores(fused) == pytest.approx({"a": 0.5, "b": 1.0})


def test_single_keyword_hit_does_not_displace_semantic_hits() -> None:
    """One leg has one hit, the other has many. The best of both are equal; the rest keeps its order."""
    semantic = Ranking([("b", 0.8), ("c", 0.6), ("d", 0.3)], other_scores={"a": 0.2})
    assert keys(by_scores({"keyword": Ranking([("a", 7.0)], low=0.0), "semantic": semantic})) == ["a", "b", "c", "d"]
    assert keys(by_scores({"keyword": Ranking([], low=0.0), "semantic": replace(semantic, other_scores={})})) == [
        "b",
        "c",
        "d",
    ]


def test_single_leg_keeps_its_scores() -> None:
    fused = alone({"semantic": Ranking([("c", 0.9), ("a", 0.7)])})
    assert [(one.key, one.score) for one in fused] == [("c", 0.9), ("a", 0.7)]


@pytest.mark.parametrize("fusion", [by_ranks, by_scores, alone])
@pytest.mark.parametrize("rankings", [{}, {"keyword": ranking()}, {"keyword": ranking(), "semantic": ranking()}])
def test_fusion_of_nothing_is_empty(fusion: Fusion, rankings: dict[str, Ranking]) -> None:
    assert fusion(rankings) == []


@pytest.mark.parametrize("fusion", [by_ranks, by_scores])
def test_ties_go_to_the_first_leg(fusion: Fusion) -> None:
    for order in permutations("abc"):
        assert keys(fusion({f"leg {key}": ranking(key) for key in order})) == list(order)


RANKINGS = st.dictionaries(
    st.sampled_from(["keyword", "semantic", "third"]),
    st.lists(st.sampled_from("abcdefgh"), unique=True),
)


@given(RANKINGS)
def test_fusion_returns_each_key_once_with_the_sum_of_its_shares(rankings: dict[str, list[str]]) -> None:
    legs = {leg: ranking(*found) for leg, found in rankings.items()}
    for fusion in (by_ranks, by_scores):
        fused = fusion(legs)
        assert sorted(keys(fused)) == sorted(set().union(*rankings.values()))
        ordered = [one.score for one in fused]
        assert ordered == sorted(ordered, reverse=True)
        for one in fused:
            places = {leg: found.index(one.key) + 1 for leg, found in rankings.items() if one.key in found}
            assert {share.leg: share.rank for share in one.shares} == places
            assert one.score == pytest.approx(sum(share.points for share in one.shares))


@given(RANKINGS, st.floats(0.1, 100), st.floats(-50, 50))
def test_scale_of_similarities_does_not_matter(rankings: dict[str, list[str]], scale: float, shift: float) -> None:
    """Each model has its own scale (E5 begins at 0.7). The scale changes neither order nor fused scores."""
    legs = {leg: ranking(*found) for leg, found in rankings.items()}
    moved = {leg: Ranking([(key, score * scale + shift) for key, score in one.hits]) for leg, one in legs.items()}
    assert scores(by_scores(moved)) == pytest.approx(scores(by_scores(legs)), abs=1e-6)


@given(RANKINGS, st.floats(0.01, 100))
def test_unit_of_keyword_scores_does_not_matter(rankings: dict[str, list[str]], scale: float) -> None:
    legs = {leg: replace(ranking(*found), low=0.0) for leg, found in rankings.items()}
    moved = {leg: replace(one, hits=[(key, score * scale) for key, score in one.hits]) for leg, one in legs.items()}
    assert scores(by_scores(moved)) == pytest.approx(scores(by_scores(legs)), abs=1e-6)
