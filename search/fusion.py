"""Fuses ranked lists into one. Each result keeps the arithmetic that explains it.

`by_scores` scales the scores of each leg to 0..1, so that a clear winner counts for more than a narrow one, and weights
the legs for each query (docs/adr/0018-hybrid-fusion.md has the reasons). `by_ranks` is reciprocal rank fusion (Cormack,
Clarke, Buettcher 2009), which needs no common scale.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

PATH = "path"
"""The leg of the shares that `named_first` adds."""
RANK_CONSTANT = 60
"""From the original paper. With it, a key at place 61 or better in both rankings outranks a key that is first in only
one."""
_GOOD = 0.5
"""If the best hit of a leg has at least this share of `Ranking.full_match`, its value is 1."""
_MIN_WEIGHT, _MAX_WEIGHT = 0.3, 0.6
"""The weight of keyword search: the first if it finds nothing, the second if the value of its best hit is 1."""


@dataclass(frozen=True)
class Ranking:
    """The results of one leg: keys and their scores, best first.

    `other_scores` are its scores of keys that only another leg found. `low` is the lowest possible score; if None, the
    lowest score in `hits` and `other_scores`. `full_match` is roughly the score of a document that contains the whole
    query, if known. `scale` is the scale of an earlier, less deep request to the same leg; if None, one is computed.
    `weight` is the leg's share of a sum of scores.
    """

    hits: Sequence[tuple[str, float]]
    other_scores: Mapping[str, float] = field(default_factory=dict)
    low: float | None = None
    full_match: float | None = None
    scale: "Scale | None" = None
    weight: float = 0.5


@dataclass(frozen=True)
class Scale:
    """The scores of a leg that are mapped to 0 and 1."""

    low: float
    high: float

    def value(self, score: float) -> float:
        if score >= self.high:  # also if all scores are equal: each is the best
            return 1.0
        return 0.0 if score <= self.low else (score - self.low) / (self.high - self.low)


class Share(NamedTuple):
    """What one leg adds to a fused score: `weight` times `value`. A tuple, because every search makes hundreds."""

    leg: str
    rank: int | None
    """None if the leg scored the key without having found it."""
    score: float
    """The leg's own score."""
    weight: float
    value: float
    low: float | None = None
    high: float | None = None
    """If scores were scaled, the scores that became 0 and 1."""

    @property
    def points(self) -> float:
        return self.weight * self.value


class Fused(NamedTuple):
    key: str
    score: float
    shares: tuple[Share, ...]

    @property
    def best_rank(self) -> int:
        return min(share.rank for share in self.shares if share.rank is not None)


Fusion = Callable[[Mapping[str, Ranking]], list[Fused]]


def by_ranks(rankings: Mapping[str, Ranking]) -> list[Fused]:
    """A key scores 1 / (60 + rank) in each ranking that has it."""
    return _unscaled(rankings, lambda rank, _score: 1 / (RANK_CONSTANT + rank))


def alone(rankings: Mapping[str, Ranking]) -> list[Fused]:
    """The order and scores of the only leg."""
    return _unscaled(rankings, lambda _rank, score: score)


def _unscaled(rankings: Mapping[str, Ranking], value: Callable[[int, float], float]) -> list[Fused]:
    return _sum(
        (key, Share(leg, rank, score, 1.0, value(rank, score)))
        for leg, ranking in rankings.items()
        for rank, (key, score) in enumerate(ranking.hits, start=1)
    )


def by_scores(rankings: Mapping[str, Ranking]) -> list[Fused]:
    """The weighted sum of the legs' scores, each scaled to 0..1. A key without a score in a leg gets 0 there.

    The best score of a leg becomes 1, unless it is below half of a full match's score. Then that half becomes 1, so
    that the best of poor hits does not outrank good ones.
    """
    return _sum(share for leg, ranking in rankings.items() for share in _scaled(leg, ranking))


def named_first(fused: Sequence[Fused], named: Sequence[str]) -> list[Fused]:
    """Adds the best score to the keys in `named`, so that they come first."""
    best = fused[0].score if fused else 1.0
    shares = ((key, Share(PATH, 1, best, 1.0, best)) for key in named)
    return _sum(chain(shares, ((one.key, share) for one in fused for share in one.shares)))


def best_value(ranking: Ranking) -> float:
    """The highest scaled score, 0 without hits. It is 1 if a hit reaches half of a full match's score."""
    scale = scale_of(ranking)
    return max((scale.value(score) for _, score in ranking.hits), default=0.0) if scale is not None else 0.0


def keyword_weight(evidence: float) -> float:
    """The weight of keyword search, from the value of its best hit. The worse that hit matches the
    query, the more weight semantic search gets."""
    return _MIN_WEIGHT + (_MAX_WEIGHT - _MIN_WEIGHT) * evidence


def scale_of(ranking: Ranking) -> Scale | None:
    """None if there is nothing to scale."""
    scores = [*(score for _, score in ranking.hits), *ranking.other_scores.values()]
    if ranking.scale is not None or not scores:
        return ranking.scale
    low = min(scores) if ranking.low is None else ranking.low
    high = max(scores) if ranking.full_match is None else max([*scores, _GOOD * ranking.full_match])
    return Scale(low, high)


def _scaled(leg: str, ranking: Ranking) -> Iterator[tuple[str, Share]]:
    scale = scale_of(ranking)
    if scale is None:
        return
    ranked = [(key, rank, score) for rank, (key, score) in enumerate(ranking.hits, start=1)]
    for key, rank, score in [*ranked, *((key, None, score) for key, score in ranking.other_scores.items())]:
        yield key, Share(leg, rank, score, ranking.weight, scale.value(score), scale.low, scale.high)


def _sum(shares: Iterator[tuple[str, Share]]) -> list[Fused]:
    """Best first. Ties go to the better rank, then to the first leg (words before meaning), so the order is stable."""
    by_key: dict[str, list[Share]] = {}
    for key, share in shares:
        by_key.setdefault(key, []).append(share)
    fused = [Fused(key, sum(share.points for share in of_key), tuple(of_key)) for key, of_key in by_key.items()]
    return sorted(fused, key=lambda one: (-one.score, one.best_rank))
