"""Measures the answers of an index against judgements, and refuses a rebuild whose answers are worse."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from chunksink.rebuild.errors import WorseAnswers
from chunksink.rebuild.rebuild import Check
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.state import Generation, State
from chunksink.search.access import Access
from chunksink.search.answer import Answer
from chunksink.search.evaluation.comparison import PRIMARY, Result, compare, comparison_lines, read_result
from chunksink.search.evaluation.evaluate import DEPTH, JudgedQueries, Values, evaluate
from chunksink.search.evaluation.naming import Naming, find_naming
from chunksink.search.evaluation.tuning import WEIGHTS, Tuning, tune
from chunksink.search.query import search
from chunksink.search.query_vectors import QueryEncoder
from chunksink.search.question import Mode, Question
from chunksink.settings.config import Config
from chunksink.settings.errors import ConfigError
from chunksink.sinks.errors import SinkError
from chunksink.views import open_view
from chunksink.wiring import chunk_documents

Search = Callable[[Question, Access], Answer]


def naming_of(config: Config, judged: JudgedQueries, access: Access, field: str | None = None) -> Naming:
    """How judgements name documents: by `field`, or by the field with the most matches."""
    return find_naming(filter(access.admits, chunk_documents(config)), judged.judgements, field, access.tenant)


def measure(
    config: Config, judged: JudgedQueries, naming: Naming, access: Access, mode: Mode, search: Search
) -> Values:
    """The metrics of each query in this mode. SinkError if a leg or the configured reranker does not answer."""

    def rank(text: str) -> list[str]:
        answer = search(Question(text, mode=mode, limit=DEPTH, collapse=not naming.by_chunk), access)
        if answer.unavailable:
            reasons = "; ".join(f"{leg} search: {reason}" for leg, reason in answer.unavailable.items())
            raise SinkError(f"{mode} cannot be measured: {reasons}")
        if config.rerank is not None and answer.hits and answer.hits[0].rerank is None:
            raise SinkError(f"{mode} cannot be measured, because the reranker failed: {answer.not_reranked}")
        return naming.names(document for hit in answer.hits for document in (hit.document, *hit.same_text))

    return evaluate(judged, rank)


def tune_weight(config: Config, judged: JudgedQueries, naming: Naming, access: Access) -> Tuning:
    """Measures hybrid search with each weight of keyword search."""
    with closing(QueryEncoder(config.model_cache_path)) as queries, closing(open_view(config, queries)) as view:
        return tune(
            {
                weight: measure(
                    config, judged, naming, access, "hybrid", partial(search, replace(view.legs, keyword_weight=weight))
                )[PRIMARY]
                for weight in WEIGHTS
            }
        )


def index_facts(config: Config, generation: Generation) -> dict[str, Any]:
    """What a saved result records about the generation that was measured."""
    with State.existing(config.home_path) as state:
        chunks = max(Receipts(state.db, build).documents() for build in generation.builds.values())
    return {
        "generation": generation.id,
        "model": generation.model.name if generation.holds_vectors else None,
        "fingerprint": generation.model_fingerprint if generation.holds_vectors else None,
        "embed_context": generation.model.embed_context,
        "chunks": chunks,
        "fusion": Question("").fusion,
        "fusion_weight": config.fusion_weight,
        "rerank": config.rerank.model if config.rerank else None,
    }


def gate(config: Config, saved: Path, fail_if_drop: float) -> Check:
    """A check for `rebuild`: it repeats the evaluation of a saved result and refuses worse answers."""
    if not fail_if_drop >= 0:  # refuses nan, too
        raise ConfigError(f"fail_if_drop must be 0 or more, not {fail_if_drop:g}")
    return partial(_require_not_worse, config, read_result(saved), fail_if_drop)


def _require_not_worse(
    config: Config, saved: Result, fail_if_drop: float, live: Generation | None, new: Generation
) -> dict[str, Any]:
    """The comparison of both generations. WorseAnswers if the mean of a mode drops by more than `fail_if_drop`."""
    access = Access(saved.tenant)
    naming = naming_of(config, saved.judged, access, saved.id)
    with closing(QueryEncoder(config.model_cache_path)) as queries:

        def measured(generation: Generation) -> dict[Mode, Values]:
            with closing(open_view(config, queries, generation=generation)) as view:
                return {
                    mode: measure(config, saved.judged, naming, access, mode, partial(search, view.legs))
                    for mode in saved.modes
                }

        after = measured(new)
        if live is None:
            means = {mode: {"before": None, "after": fmean(values[PRIMARY].values())} for mode, values in after.items()}
            return {"metric": PRIMARY, "modes": means, "dropped": []}
        found = compare(measured(live), after, fail_if_drop)
    if found["dropped"]:
        worse = {"metric": PRIMARY, "modes": {mode: found["modes"][mode] for mode in found["dropped"]}}
        raise WorseAnswers(
            f"answers got worse, so readers keep the live index: {' | '.join(comparison_lines(worse))}. To "
            "switch to the new index anyway, rebuild without --require-eval",
            found,
        )
    return found
