"""Fusing ranked lists into one. Reciprocal rank fusion: it needs no common scale of scores."""

from collections.abc import Mapping, Sequence

# The constant of the original paper (Cormack, Clarke, Buettcher 2009): it keeps one first place from deciding alone.
RANK_CONSTANT = 60


def fuse_ranks(rankings: Mapping[str, Sequence[str]]) -> list[tuple[str, float]]:
    """Ids of all rankings with their score, best first; an id scores 1 / (60 + rank) in each ranking that has it."""
    scores: dict[str, float] = {}
    for ranking in rankings.values():
        for rank, id_ in enumerate(ranking, start=1):
            scores[id_] = scores.get(id_, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
