"""The explain drawer: what each leg gave a hit, as bars that can be compared down the page."""

from dataclasses import dataclass

from chunksink.search.answer import Answer, SearchHit
from chunksink.search.fusion import RANK_CONSTANT, Share
from chunksink.search.question import LEGS_OF


@dataclass(frozen=True)
class Bar:
    """`percent` of the longest bar that there could be; `start` is where the bars before it in the sum end."""

    leg: str
    found: bool
    percent: float
    start: float
    says: str


@dataclass(frozen=True)
class Drawer:
    bars: tuple[Bar, ...]
    total: str
    how: str


def drawers(answer: Answer) -> list[Drawer]:
    """For each hit of the page its drawer."""
    alone = all(_as_given(share) for hit in answer.hits for share in hit.shares)
    whole = _longest(answer, alone)
    return [_drawer(answer, hit, whole, alone) for hit in answer.hits]


def _as_given(share: Share) -> bool:
    return share.weight == 1.0 and share.value == share.score


def _longest(answer: Answer, alone: bool) -> float:
    """The score of a hit that both legs put first; of one leg alone, the best on the page."""
    if alone:
        return max((hit.score for hit in answer.hits), default=0.0)
    return 2 / (RANK_CONSTANT + 1) if answer.fusion == "ranks" else 1.0


def _drawer(answer: Answer, hit: SearchHit, whole: float, alone: bool) -> Drawer:
    shares = {share.leg: share for share in hit.shares}
    bars = []
    start = 0.0
    for leg in LEGS_OF[answer.mode]:
        if leg in answer.unavailable:
            bars.append(Bar(leg, False, 0.0, start, "could not be asked"))
        elif leg not in shares:
            bars.append(Bar(leg, False, 0.0, start, "did not find it among its best"))
        else:
            percent = _percent(shares[leg].points, whole)
            bars.append(Bar(leg, True, percent, start, _says(shares[leg], alone)))
            start = round(start + percent, 2)
    return Drawer(tuple(bars), f"{hit.score:.4g}" if alone else f"{hit.score:.4f}", _how(answer, alone))


def _percent(points: float, whole: float) -> float:
    if whole <= 0:
        return 0.0
    return round(100 * min(1.0, max(0.0, points / whole)), 2)


def _says(share: Share, alone: bool) -> str:
    place = "not among its best" if share.rank is None else f"place {share.rank}"
    told = f"{place}, score {share.score:.4g}"
    if alone:
        return told
    return f"{told}{share.scaled}, gives {share.weight:g} × {share.value:.4f} = {share.points:.4f}"


def _how(answer: Answer, alone: bool) -> str:
    if alone:
        return "One leg alone, with its engine's own scores; bars against the best hit here."
    if answer.fusion == "ranks":
        return "1 / (60 + place) of each leg, added; the full width is first place in both."
    return "Each leg's scores scaled to 0..1, half each, added; the full width is best in both."
