"""The "Why this result?" drawer: the contribution of each leg as a bar. Bars of different hits are comparable."""

from dataclasses import dataclass

from chunksink.search.answer import Answer, SearchHit
from chunksink.search.explanation import NOT_RANKED, formula, is_fused, rerank_text, score_text, share_text
from chunksink.search.fusion import PATH, RANK_CONSTANT
from chunksink.search.question import LEGS_OF


@dataclass(frozen=True)
class Bar:
    """The share of one leg. `percent` is its length. `start` is its place in the bar of the sum, which shows the shares
    of all legs one after the other. `meaning` is the arithmetic, or why there is no share."""

    leg: str
    has_share: bool
    percent: float
    start: float
    meaning: str


@dataclass(frozen=True)
class Drawer:
    reason: str
    """One sentence for readers. The other fields show the arithmetic."""
    bars: tuple[Bar, ...]
    total: str
    """The score of the hit."""
    how: str
    """How the total is computed, and what a full bar means."""


def drawers(answer: Answer) -> list[Drawer]:
    """The drawers of all hits of the page."""
    full = _full_bar(answer)
    return [_drawer(answer, hit, full) for hit in answer.hits]


def _full_bar(answer: Answer) -> float:
    """The score of a full bar: the highest possible one, if it is known, else the best on the page."""
    if not _is_bounded(answer):
        return max((hit.score for hit in answer.hits), default=0.0)
    return 2 / (RANK_CONSTANT + 1) if answer.fusion == "ranks" else 1.0


def _is_bounded(answer: Answer) -> bool:
    return is_fused(answer) and all(PATH not in hit.ranks for hit in answer.hits)


def _drawer(answer: Answer, hit: SearchHit, full: float) -> Drawer:
    shares = {share.leg: share for share in hit.shares}
    bars = []
    start = 0.0
    for leg in dict.fromkeys((*LEGS_OF[answer.mode], *shares)):
        if leg in answer.unavailable:
            bars.append(Bar(leg, False, 0.0, start, "not available"))
        elif leg not in shares:
            bars.append(Bar(leg, False, 0.0, start, NOT_RANKED))
        else:
            percent = _percent(shares[leg].points, full)
            bars.append(Bar(leg, True, percent, start, share_text(answer, shares[leg])))
            start = round(start + percent, 2)
    return Drawer(_reason(hit), tuple(bars), score_text(answer, hit), _how(answer))


_FOUND_BY = {"keyword": "by its words", "semantic": "by its meaning", "engine": "by the engine", PATH: "by its name"}


def _reason(hit: SearchHit) -> str:
    places = [f"{_FOUND_BY[leg]} (place {rank})" for leg, rank in hit.ranks.items()]
    words = ", ".join(dict.fromkeys(hit.highlights))
    rerank = f" Reranked: {rerank_text(hit.rerank)}." if hit.rerank is not None else ""
    return f"Found {' and '.join(places)}{f'. Matching words: {words}' if words else ''}.{rerank}"


def _percent(points: float, full: float) -> float:
    if full <= 0:
        return 0.0
    return round(100 * min(1.0, max(0.0, points / full)), 2)


def _how(answer: Answer) -> str:
    if answer.sort is not None:
        return formula(answer)
    best = "the first place" if answer.fusion == "ranks" else "the value 1"
    full = f"{best} in both searches" if _is_bounded(answer) else "the best score of this page"
    return f"{formula(answer)}; a full bar means {full}"
