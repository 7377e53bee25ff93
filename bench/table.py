"""The tables in bench/README.md: each case's goals beside the newest results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from bench.harness import RESULTS, SIZES, all_cases

UNITS = {"times": "× the baseline", "of the baseline's time": "× the baseline's time", "of them": "of 1"}
"""Units of the results that need more words in the table."""


def tables() -> Iterator[str]:
    """The newest results of each size."""
    newest = {}
    for file in sorted(RESULTS.glob("*.json")):
        results: dict[str, Any] = orjson.loads(file.read_bytes())
        newest[results["size"]] = (file, results)
    for size in [size for size in SIZES if size in newest]:
        yield from _table(*newest[size])
        yield ""


def _table(file: Path, results: Mapping[str, Any]) -> Iterator[str]:
    machine, versions = results["machine"], results["versions"]
    yield (
        f"Size {results['size']}, {results['date'][:10]}, commit {results['commit']}, {machine['cores']} cores of "
        f"{machine['processor']}, {machine['memory_gib']} GiB, Python {results['python']}, "
        f"torch {versions['torch']}, Chroma {versions['chromadb']}, Meilisearch {versions['meilisearch']}; "
        f"[all figures](results/{file.name}).\n"
    )
    yield "| case | what is measured | goal | figure |\n|---|---|---|---|"
    for name, case in all_cases().items():
        if name in results["cases"]:
            sizes = " ".join(f"{name}={value}" for name, value in results["cases"][name]["parameters"].items())
            yield _row(name, f"{case.title} ({sizes})" if sizes else case.title, results["cases"][name]["figures"])


def _row(name: str, title: str, figures: Mapping[str, Any]) -> str:
    """A line in each cell for each figure, below the title."""
    goals = "".join(f"<br>{_goal(figure) or '-'}" for figure in figures.values())
    values = "".join(
        f"<br>{_number(figure['value'])} {_unit(figure)}{'' if figure['met'] else ' (**missed**)'}"
        for figure in figures.values()
    )
    return f"| {name} | {'<br>'.join([title, *figures])} | {goals} | {values} |"


def _goal(figure: Mapping[str, Any]) -> str:
    """`at most 2 s`; empty if the figure has no goal."""
    limit = str(figure["goal"]).removesuffix(figure["unit"])
    return f"{limit}{_unit(figure)}" if limit else ""


def _unit(figure: Mapping[str, Any]) -> str:
    unit = str(figure["unit"])
    return UNITS.get(unit, unit)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
