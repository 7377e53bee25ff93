"""Saves the result of an evaluation, and compares two results query by query."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import msgspec

from chunksink.chunkbus.wording import printable
from chunksink.search.evaluation.evaluate import JudgedQueries, Values, interval
from chunksink.search.evaluation.reading import InvalidEvaluation
from chunksink.search.question import Mode

PRIMARY = "nDCG@10"
"""The metric that is compared."""
_EXAMPLES = 5
_ROUNDING = 1e-9


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation, with its queries and judgements, so that it can be repeated."""

    format: Literal["chunksink.evaluation.v1"] = "chunksink.evaluation.v1"
    id: str
    """The field that the judgements use to name documents."""
    tenant: str | None = None
    index: dict[str, Any]
    """What was measured: generation, model, number of chunks, fusion."""
    judged: JudgedQueries
    modes: dict[Mode, Values]


def compare(before: Mapping[Mode, Values], after: Mapping[Mode, Values], max_drop: float = inf) -> dict[str, Any]:
    """Compare the primary metric of each mode, over the queries that both results have. Returns JSON.

    `dropped` lists the modes whose mean dropped by more than `max_drop`. Raises `InvalidEvaluation` if a mode has no
    query in common.
    """
    modes = {mode: _compared(mode, before.get(mode, {}).get(PRIMARY, {}), after[mode][PRIMARY]) for mode in after}
    dropped = [mode for mode, one in modes.items() if one["difference"]["mean"] < -max_drop - _ROUNDING]
    return {"metric": PRIMARY, "modes": modes, "dropped": dropped}


def _compared(mode: Mode, before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, Any]:
    differences = {query: after[query] - before[query] for query in after if query in before}
    if not differences:
        raise InvalidEvaluation(f"the baseline has none of the queries in {mode} mode: save a new one with --save")
    rising = sorted(differences, key=lambda query: differences[query])

    def shown(queries: Iterable[str]) -> list[dict[str, Any]]:
        changes = [{"query": query, "before": before[query], "after": after[query]} for query in queries]
        return changes[:_EXAMPLES]

    return {
        "before": fmean(before[query] for query in differences),
        "after": fmean(after[query] for query in differences),
        "difference": asdict(interval(list(differences.values()))),
        "won": shown(query for query in reversed(rising) if differences[query] > 0),
        "lost": shown(query for query in rising if differences[query] < 0),
    }


def unshared_queries(baseline: JudgedQueries, judged: JudgedQueries) -> list[str]:
    """The queries that only one of the two sets has.

    Raises `InvalidEvaluation` if a query that both have differs in its text or its judgements.
    """
    for query in baseline.queries.keys() & judged.queries.keys():
        old, new = ((one.queries[query], one.judgements[query]) for one in (baseline, judged))
        if old != new:
            raise InvalidEvaluation(
                f"the text or the judgements of query {query!r:.100} differ from the baseline, so the figures cannot "
                "be compared: use the files of the baseline, or save a new one with --save"
            )
    return sorted(baseline.queries.keys() ^ judged.queries.keys())


def save(result: Result, path: Path) -> None:
    """Replace the file in one step."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    new.replace(path)


def read_result(path: Path) -> Result:
    try:
        result = msgspec.json.decode(path.read_bytes(), type=Result)
    except msgspec.DecodeError as error:
        raise InvalidEvaluation(f"{path} is not a result of `chunksink eval --save`: {error}") from error
    if unjudged := result.judged.queries.keys() ^ result.judged.judgements.keys():
        raise InvalidEvaluation(
            f"{path} lacks the text or the judgements of the query {min(unjudged)!r:.100}: save it with `eval --save`"
        )
    return result


def comparison_lines(evaluation: Mapping[str, Any]) -> Iterator[str]:
    """The figures of each mode before and after, and the queries that changed most."""
    for mode, one in evaluation["modes"].items():
        figure = f"{mode} {evaluation['metric']} {one['after']:.4f}"
        if one["before"] is None:
            yield figure
            continue
        difference = one["difference"]
        interval = f"{difference['mean']:+.4f} [{difference['low']:+.4f}, {difference['high']:+.4f}]"
        yield f"{figure}, before {one['before']:.4f}, difference {interval}{_changed_queries(one)}"


def _changed_queries(mode: Mapping[str, Any]) -> str:
    shown = {
        kind: [f"{printable(each['query'])} {each['before']:.2f} to {each['after']:.2f}" for each in mode[kind]]
        for kind in ("lost", "won")
    }
    return "".join(f"; {kind}: {', '.join(queries)}" for kind, queries in shown.items() if queries)
