"""The order of all results of a question. It does not depend on limit and offset.

The legs are asked in steps, always from the top: for their best 100 hits, then 400, 1600 and so on. Each step fuses the
hits and makes the best of them final: 60 chunks after the first step, 240 after the second. The others stay open: a
chunk just below the depth of the step in both legs could still overtake them. The next step runs only if more results
are requested. It uses the scale of the first step, and adds its best hits below those that are already final. So no hit
moves with limit or offset. If the query names files, their best hits come first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chunksink.chunkbus.spans import span
from chunksink.search.fusion import (
    Fused,
    Fusion,
    Ranking,
    Scale,
    alone,
    best_value,
    by_ranks,
    by_scores,
    keyword_weight,
    named_first,
    scale_of,
)
from chunksink.search.legs import LegQueries
from chunksink.search.question import KEYWORD, SEMANTIC, FusionName, Question
from chunksink.search.rerank import Reranked
from chunksink.sinks.reader import Hit

FETCH_AT_FIRST = 100
"""Hits requested from each leg in the first step."""
_DEPTH_FACTOR = 4
_FINAL_SHARE = 0.6
"""This share of the depth of a step becomes final. A page of ten sources usually needs one step."""

_FUSIONS: Mapping[FusionName, Fusion] = {"scores": by_scores, "ranks": by_ranks}


@dataclass(frozen=True)
class Placed:
    """One place of the order, with the hit to show for it."""

    fused: Fused
    hit: Hit
    rerank: Reranked | None = None


@dataclass(frozen=True)
class LegResults:
    """The best hits of each leg, at most `depth` of them."""

    hits: Mapping[str, Sequence[Hit]]
    depth: int

    def exhausts(self, leg: str) -> bool:
        """Whether the leg has no further hits."""
        return len(self.hits.get(leg, ())) < self.depth


class Order:
    """The order of one question, computed as far down as it is read."""

    def __init__(self, queries: LegQueries, question: Question, fixed_weight: float | None = None) -> None:
        """`fixed_weight` is the weight of keyword search; None to choose it for each query."""
        self._queries = queries
        self._question = question
        self._fixed_weight = fixed_weight
        self._scales: dict[str, Scale | None] = {}
        self.evidence: float | None = None
        """See `Answer.evidence`."""
        self._final: set[str] = set()
        self._sources: set[str] = set()
        self._depth = FETCH_AT_FIRST
        self.not_reranked: str | None = None
        """See `Answer.not_reranked`."""
        self.placed: list[Placed] = []
        self.complete = False
        """Whether there are no further results."""
        self.results = self._step()
        """The hits of the last step, which include those of earlier steps."""

    def is_empty(self, leg: str) -> bool:
        """Whether that leg answered without any hit."""
        return leg in self.results.hits and not self.results.hits[leg]

    def parts(self) -> Iterator[list[Placed]]:
        """The places that each step makes final, from the top. A step runs when its part is requested. Iterate once."""
        start = 0
        while True:
            yield self.placed[start:]
            if self.complete:
                return
            start = len(self.placed)
            self.results = self._step()

    def _step(self) -> LegResults:
        results = LegResults(self._queries.ask(self._depth), self._depth)
        self._depth *= _DEPTH_FACTOR
        self.complete = all(results.exhausts(leg) for leg in results.hits)
        named = [] if self.placed or KEYWORD not in results.hits else self._queries.in_named_files
        hits = {hit.id: hit for of_leg in (named, *results.hits.values()) for hit in of_leg}
        with span("fusion"):
            fused = named_first(self._fused(results.hits), [hit.id for hit in named])
        for one in fused:
            if not self.complete and len(self._final) >= _FINAL_SHARE * results.depth:
                break
            self._final.add(one.key)
            self._place(one, hits[one.key])
        return results

    def _place(self, fused: Fused, hit: Hit) -> None:
        """A source takes the place of its best chunk."""
        source = hit.parent_id if self._question.collapse else hit.id
        if source not in self._sources:
            self._sources.add(source)
            self.placed.append(Placed(fused, hit))

    def _fused(self, by_leg: Mapping[str, Sequence[Hit]]) -> list[Fused]:
        """The fused chunks that are not final yet."""
        fusion = _FUSIONS[self._question.fusion] if len(by_leg) > 1 else alone
        rankings = {leg: Ranking([(hit.id, hit.score) for hit in hits]) for leg, hits in by_leg.items()}
        if fusion is by_scores:
            rankings = self._comparable(rankings)
        return [fused for fused in fusion(rankings) if fused.key not in self._final]

    def _comparable(self, rankings: Mapping[str, Ranking]) -> dict[str, Ranking]:
        """The rankings with the scales, weights and similarities that `by_scores` needs.

        The scale of keyword scores begins at 0, which is also the score of a chunk that keyword search missed. The
        scale of similarities begins at the lowest one. Chunks that only keyword search found get a similarity, too.
        """
        semantic = {id for id, _ in rankings[SEMANTIC].hits}
        missing = [id for id, _ in rankings[KEYWORD].hits if id not in semantic and id not in self._final]
        other_scores = self._queries.scores(SEMANTIC, missing)
        scored = {
            KEYWORD: replace(rankings[KEYWORD], low=0.0, full_match=self._queries.max_score(KEYWORD)),
            SEMANTIC: replace(rankings[SEMANTIC], other_scores=other_scores),
        }
        if not self._scales:
            self._scales = {leg: scale_of(ranking) for leg, ranking in scored.items()}
        weight = self._keyword_weight(scored[KEYWORD])
        weights = {KEYWORD: weight, SEMANTIC: 1 - weight}
        return {leg: replace(ranking, scale=self._scales[leg], weight=weights[leg]) for leg, ranking in scored.items()}

    def _keyword_weight(self, ranking: Ranking) -> float:
        """The first step decides it, so that no hit moves with the depth."""
        if self._fixed_weight is not None:
            return self._fixed_weight
        if self.evidence is None:
            self.evidence = best_value(ranking)
        return keyword_weight(self.evidence)
