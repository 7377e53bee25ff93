"""The order of all results of a question. It does not depend on limit and offset.

The legs are asked in steps, always from the top: for their best 100 hits, then 400, 1600 and so on. After each step the
hits are fused, and the best are final: 60 chunks after the first step, 240 after the second. The rest waits, because a
chunk that both legs rank just below the depth of the step could still overtake it. The next step runs only if more
results are requested. It fuses the rest on the scale of the first step and adds it below the final chunks. So no hit
moves with limit or offset.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chunksink.search.fusion import Fused, Fusion, Ranking, Scale, alone, by_ranks, by_scores, scale_of
from chunksink.search.legs import Asking
from chunksink.search.question import KEYWORD, SEMANTIC, FusionName, Question
from chunksink.sinks.reader import Hit

FETCH_AT_FIRST = 100
"""Hits requested from each leg in the first step."""
_DEEPER = 4
_SETTLED = 0.6
"""This share of the depth of a step becomes final. A page of ten sources usually needs one step."""

_FUSIONS: Mapping[FusionName, Fusion] = {"scores": by_scores, "ranks": by_ranks}


@dataclass(frozen=True)
class Placed:
    """One place of the order, with the hit to show for it."""

    fused: Fused
    hit: Hit


@dataclass(frozen=True)
class Look:
    """The hits of all legs down to one depth."""

    found: Mapping[str, Sequence[Hit]]
    depth: int

    def exhausts(self, leg: str) -> bool:
        """Whether the leg has no further hits."""
        return len(self.found.get(leg, ())) < self.depth


class Order:
    """The order of one question, computed as far down as it is read."""

    def __init__(self, asking: Asking, question: Question) -> None:
        self._asking = asking
        self._question = question
        self._scales: dict[str, Scale | None] = {}
        self._settled: set[str] = set()
        self._sources: set[str] = set()
        self._depth = FETCH_AT_FIRST
        self.placed: list[Placed] = []
        self.complete = False
        """Whether there are no further results."""
        self.looked = self._step()
        """The hits of the last step, which include those of earlier steps."""

    def lacks(self, leg: str) -> bool:
        """Whether that leg answered without any hit."""
        return leg in self.looked.found and not self.looked.found[leg]

    def parts(self) -> Iterator[list[Placed]]:
        """The places that each step settles, from the top. A step runs when its part is requested. Iterate once."""
        begun = 0
        while True:
            yield self.placed[begun:]
            if self.complete:
                return
            begun = len(self.placed)
            self.looked = self._step()

    def _step(self) -> Look:
        look = Look(self._asking.ask(self._depth), self._depth)
        self._depth *= _DEEPER
        self.complete = all(look.exhausts(leg) for leg in look.found)
        hits = {hit.id: hit for of_leg in look.found.values() for hit in of_leg}
        fused = self._fused(look.found)
        for one in fused:
            if not self.complete and len(self._settled) >= _SETTLED * look.depth:
                break
            self._settled.add(one.key)
            self._place(one, hits[one.key])
        return look

    def _place(self, fused: Fused, hit: Hit) -> None:
        """A source takes the place of its best chunk."""
        source = hit.parent_id if self._question.collapse else hit.id
        if source not in self._sources:
            self._sources.add(source)
            self.placed.append(Placed(fused, hit))

    def _fused(self, found: Mapping[str, Sequence[Hit]]) -> list[Fused]:
        """The fused chunks that are not settled yet."""
        fusion = _FUSIONS[self._question.fusion] if len(found) > 1 else alone
        rankings = {leg: Ranking([(hit.id, hit.score) for hit in hits]) for leg, hits in found.items()}
        if fusion is by_scores:
            rankings = self._comparable(rankings)
        return [fused for fused in fusion(rankings) if fused.key not in self._settled]

    def _comparable(self, rankings: Mapping[str, Ranking]) -> dict[str, Ranking]:
        """A chunk that keyword search missed scores 0 there. Every chunk has a similarity; the lowest becomes 0."""
        by_meaning = {id for id, _ in rankings[SEMANTIC].hits}
        missing = [id for id, _ in rankings[KEYWORD].hits if id not in by_meaning and id not in self._settled]
        beyond = self._asking.scores(SEMANTIC, missing)
        scored = {
            KEYWORD: replace(rankings[KEYWORD], low=0.0, most=self._asking.most_score(KEYWORD)),
            SEMANTIC: replace(rankings[SEMANTIC], beyond=beyond),
        }
        if not self._scales:
            self._scales = {leg: scale_of(ranking) for leg, ranking in scored.items()}
        return {leg: replace(ranking, scale=self._scales[leg]) for leg, ranking in scored.items()}
