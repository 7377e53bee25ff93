"""The tables in docs/comparison.md, from the newest results."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from bench.faults.scenarios import SCENARIOS
from bench.faults.tools import TOOLS

RESULTS = Path(__file__).parent / "results"


def tables() -> Iterator[str]:
    newest = max(RESULTS.glob("*.json"))
    results = orjson.loads(newest.read_bytes())
    versions = ", ".join(f"{name} {version or 'not installed'}" for name, version in results["versions"].items())
    about = f"{results['date'][:10]}, {results['sources']} sources, commit {results['commit']}, {versions};"
    yield textwrap.fill(about, 100, break_on_hyphens=False)
    yield f"[all results](../bench/faults/results/{newest.name}).\n"
    yield from _table(results, [name for name, tool in TOOLS.items() if not tool.remedy], list(SCENARIOS))
    yield "\nWith the option that a tool's documentation offers, used in the run after the fault:\n"
    remedied = [key for key, scenario in SCENARIOS.items() if scenario.remedies]
    yield from _table(results, [name for name, tool in TOOLS.items() if tool.remedy], remedied)


def _table(results: dict[str, Any], tools: Sequence[str], scenarios: Sequence[str]) -> Iterator[str]:
    """A row for each scenario, a column for each tool."""
    yield _row("", *(TOOLS[tool].title for tool in tools))
    yield _row(*["---"] * (len(tools) + 1))
    for key in scenarios:
        of_key = [trial for trial in results["trials"] if trial["scenario"] == key]
        yield _row(SCENARIOS[key].title, *(_cell([each for each in of_key if each["tool"] == tool]) for tool in tools))


def _cell(trials: Sequence[dict[str, Any]]) -> str:
    """How many trials were right. For the others: the worst gaps, whether all were reported, and how many of them were
    right after one more run. For watched trials: how often a source was absent."""
    wrong = [trial for trial in trials if not trial["right"]]
    parts = [f"{len(trials) - len(wrong)} of {len(trials)}" if trials else "-"]
    for gap, words in (("missing", "missing"), ("surplus", "with surplus"), ("model", "old vectors")):
        if worst := max((trial["gaps"][gap] for trial in wrong), default=0):
            parts.append(f"{worst} {words}")
    if wrong:
        parts.append("reported" if all(trial["reported"] for trial in wrong) else "**not reported**")
        if later := sum(trial["right_after_another"] for trial in wrong):
            parts.append(f"{later} right after one more run")
    if looks := sum(trial["looks"] for trial in trials):
        parts.append(f"absent in {sum(trial['absent'] for trial in trials) / looks:.0%} of looks")
    return "<br>".join(parts)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
