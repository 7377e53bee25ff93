"""Saves the result of an evaluation, and compares two results query by query."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from chunksink.search.evaluation.evaluate import Interval, Values, interval
from chunksink.search.evaluation.reading import Judgements, Queries, UnreadableSet
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
    queries: Queries
    judgements: Judgements
    modes: dict[Mode, Values]


@dataclass(frozen=True)
class Change:
    """The metric of one query in two results."""

    query: str
    before: float
    after: float


@dataclass(frozen=True)
class Comparison:
    """One mode of two results. `won` and `lost` are the queries that changed most."""

    before: float
    after: float
    difference: Interval
    won: Sequence[Change]
    lost: Sequence[Change]

    def dropped(self, most: float) -> bool:
        """Whether the mean has dropped by more than `most`."""
        return self.before - self.after > most + _ROUNDING


def compare(before: Values, after: Values) -> Comparison:
    """Over the queries that both have."""
    old, new = before[PRIMARY], after[PRIMARY]
    changes = [Change(query, old[query], value) for query, value in new.items() if query in old]
    differences = {one: one.after - one.before for one in changes}
    ordered = sorted(changes, key=lambda one: differences[one])
    return Comparison(
        before=sum(one.before for one in changes) / len(changes),
        after=sum(one.after for one in changes) / len(changes),
        difference=interval(list(differences.values())),
        won=[one for one in ordered[: -_EXAMPLES - 1 : -1] if differences[one] > 0],
        lost=[one for one in ordered[:_EXAMPLES] if differences[one] < 0],
    )


def report(before: Mapping[Mode, Values], after: Mapping[Mode, Values], most_drop: float) -> dict[str, Any]:
    """Each mode as JSON; `dropped` has the modes whose mean dropped by more than `most_drop`. UnreadableSet if a mode
    has no query in common."""
    for mode, values in after.items():
        if not before.get(mode, {}).get(PRIMARY, {}).keys() & values[PRIMARY].keys():
            raise UnreadableSet(f"the baseline has no such query in {mode} mode: save a new baseline with --save")
    modes = {mode: compare(before[mode], values) for mode, values in after.items()}
    return {
        "metric": PRIMARY,
        "modes": {mode: asdict(one) for mode, one in modes.items()},
        "dropped": [mode for mode, one in modes.items() if one.dropped(most_drop)],
    }


def require_same_queries(baseline: Result, queries: Queries, judgements: Judgements) -> list[str]:
    """The queries that only one of both has. UnreadableSet if a query of both has another text or other judgements."""
    for query in baseline.queries.keys() & queries.keys():
        if (baseline.queries[query], baseline.judgements.get(query)) != (queries[query], judgements[query]):
            raise UnreadableSet(
                f"the query {query!r:.100} has another text or other judgements than in the baseline, so the figures "
                "cannot be compared: use the files of the baseline, or save a new one with --save"
            )
    return sorted(baseline.queries.keys() ^ queries.keys())


def save(result: Result, path: Path) -> None:
    """Replace the file in one step."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    new.replace(path)


def read_result(path: Path) -> Result:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Result)
    except msgspec.DecodeError as error:
        raise UnreadableSet(f"{path} is no result of `chunksink eval --save`: {error}") from error
