"""Fusing ranked lists into one, with the arithmetic kept for whoever asks why.

Two ways. By scores, each leg's scaled to 0..1, so that a clear winner counts for more than a narrow one (why they are
scaled so: docs/adr/0018-hybrid-fusion.md). By reciprocal rank (Cormack, Clarke, Buettcher 2009): no scale needed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

RANK_CONSTANT = 60
"""Of the original paper: it keeps one first place from deciding alone."""
_GOOD = 0.5
"""What holds so much of all that is asked for is as good as what holds more."""


@dataclass(frozen=True)
class Ranking:
    """What one leg found: keys and their scores, best first.

    `beyond` are its scores of keys that only another leg has found. `low` is the least that its scores can be, else the
    least that it gave stands for it. `most` is about what all that is asked for would score, where that is known.
    `scale` is that of an earlier look at the same leg, which then holds for this one.
    """

    hits: Sequence[tuple[str, float]]
    beyond: Mapping[str, float] = field(default_factory=dict)
    low: float | None = None
    most: float | None = None
    scale: "Scale | None" = None


@dataclass(frozen=True)
class Scale:
    """The scores of a leg that count as 0 and as 1."""

    low: float
    high: float

    def value(self, score: float) -> float:
        if self.high <= self.low:  # all alike: nothing tells them apart, so each is the best
            return 1.0 if score >= self.high else 0.0
        return min(1.0, max(0.0, (score - self.low) / (self.high - self.low)))


class Share(NamedTuple):
    """What one leg adds to a fused score: `weight` times `value`. A tuple, since every search makes hundreds."""

    leg: str
    rank: int | None
    """None where the leg gave the score without having found it."""
    score: float
    """As the leg gave it."""
    weight: float
    value: float
    low: float | None = None
    high: float | None = None
    """Where scores were scaled, those that became 0 and 1."""

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
    """One leg's order with its own scores: nothing is fused."""
    return _unscaled(rankings, lambda _rank, score: score)


def _unscaled(rankings: Mapping[str, Ranking], value: Callable[[int, float], float]) -> list[Fused]:
    return _added(
        (key, Share(leg, rank, score, 1.0, value(rank, score)))
        for leg, ranking in rankings.items()
        for rank, (key, score) in enumerate(ranking.hits, start=1)
    )


def by_scores(rankings: Mapping[str, Ranking]) -> list[Fused]:
    """The mean of the legs' scores, each scaled to 0..1; what a leg has no score for has 0.

    1 is the best score of the leg, unless even that is less than half of what all that is asked for would score: then
    it is that half, so that the best of poor hits is no match for good ones.
    """
    return _added(share for leg, ranking in rankings.items() for share in _scaled(leg, ranking, 1 / len(rankings)))


def scale_of(ranking: Ranking) -> Scale | None:
    """None where there is nothing to scale."""
    scores = [*(score for _, score in ranking.hits), *ranking.beyond.values()]
    if ranking.scale is not None or not scores:
        return ranking.scale
    low = min(scores) if ranking.low is None else ranking.low
    high = max(scores) if ranking.most is None else max([*scores, _GOOD * ranking.most])
    return Scale(low, high)


def _scaled(leg: str, ranking: Ranking, weight: float) -> Iterator[tuple[str, Share]]:
    scale = scale_of(ranking)
    if scale is None:
        return
    ranked = [(key, rank, score) for rank, (key, score) in enumerate(ranking.hits, start=1)]
    for key, rank, score in [*ranked, *((key, None, score) for key, score in ranking.beyond.items())]:
        yield key, Share(leg, rank, score, weight, scale.value(score), scale.low, scale.high)


def _added(shares: Iterator[tuple[str, Share]]) -> list[Fused]:
    """Best first; where scores are equal by the best rank, then what the first leg has found: words before meaning, for
    of what is nearest to a rare word nothing need be near. So the order never changes by itself."""
    found: dict[str, list[Share]] = {}
    for key, share in shares:
        found.setdefault(key, []).append(share)
    fused = [Fused(key, sum(share.points for share in of_key), tuple(of_key)) for key, of_key in found.items()]
    return sorted(fused, key=lambda one: (-one.score, one.best_rank))  # stable: else as they came, leg by leg
