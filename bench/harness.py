"""Defines a case, runs the selected cases and stores their results.

    python -m bench [CASE ...] [--size small|full] [--set NAME=VALUE ...] [--data DIR] [--into FILE] [--list]

Each case runs in its own process. Candidate and baseline take turns, and a ratio is the median of the ratios of all
rounds, so other work on the machine slows both. A run of all cases writes a dated file below `bench/results/`. A run of
some cases writes to the file that `--into` names, or only prints.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import orjson

from bench import machine
from bench.processes import ROOT
from bench.result_file import write_results

RESULTS = ROOT / "bench" / "results"
MODULES = (
    "validate",
    "ingest",
    "embeddings",
    "cold",
    "sinks",
    "sync",
    "rebuild",
    "ray",
    "memory",
    "search",
    "serve",
    "relevance",
    "answers",
    "units",
)
"""Where the cases are, in the order of a chunk's journey."""
SIZES = ("small", "full")

Value = int | float | str
Result = TypeVar("Result")


@dataclass(frozen=True)
class Figure:
    """A result of a case. If it has a goal, that is a lower or an upper limit."""

    name: str
    unit: str = "times"
    at_least: float | None = None
    at_most: float | None = None

    def goal(self) -> str:
        limit = self.at_least if self.at_least is not None else self.at_most
        if limit is None:
            return ""
        return f"at {'least' if self.at_least is not None else 'most'} {limit:g} {self.unit}"

    def is_met_by(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True)
class Case:
    """A measurement: what is compared, its size, and its figures."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    measure: Callable[[Measurement], None]
    sizes: Mapping[str, tuple[Value, Value]]
    """Each parameter in the small and in the full size."""

    def parameters(self, size: str, chosen: Mapping[str, str]) -> dict[str, Value]:
        """The parameters of a size. `chosen` values replace them and are converted to their types."""
        usual = {name: values[SIZES.index(size)] for name, values in self.sizes.items()}
        return {name: type(value)(chosen.get(name, value)) for name, value in usual.items()}


class Measurement:
    """One run of a case: its resources and the results so far."""

    def __init__(self, case: Case, parameters: Mapping[str, Value], shared: Path, data: Path | None) -> None:
        self.case = case
        self.parameters = parameters
        self.shared = shared
        """Folder of buses and homes that the cases of one run share; only `corpora` writes there."""
        self.scratch = Path(tempfile.mkdtemp(prefix=f"{case.name}-", dir=shared))
        self.data = data
        self.values: dict[str, float] = {}
        self.rounds: dict[str, list[float]] = {}
        self.notes: list[str] = []

    def empty(self) -> Path:
        """A new folder."""
        return Path(tempfile.mkdtemp(dir=self.scratch))

    def copy(self, folder: Path) -> Path:
        return Path(shutil.copytree(folder, self.empty() / folder.name, symlinks=True))

    def number(self, name: str) -> int:
        return int(self.parameters[name])

    def text(self, name: str) -> str:
        return str(self.parameters[name])

    def found(self, figure: str, value: float) -> None:
        """Record the value of one of the case's figures."""
        assert figure in {known.name for known in self.case.figures}, figure
        self.values[figure] = value

    def keep(self, name: str, values: Sequence[float]) -> list[float]:
        """Record what each round measured of one candidate. Returns the same list."""
        self.rounds[name] = list(values)
        return self.rounds[name]

    def note(self, text: str) -> None:
        self.notes.append(text)

    def turns(self, candidates: Mapping[str, Callable[[], Result]]) -> dict[str, list[Result]]:
        """The results of all candidates, which take turns. Every other round has the reverse order, because the first
        one of a round finds a colder machine."""
        results: dict[str, list[Result]] = {name: [] for name in candidates}
        count = self.number("rounds")
        for number in range(count):
            for name in list(candidates)[:: -1 if number % 2 else 1]:
                results[name].append(candidates[name]())
            print(f"{self.case.name}: round {number + 1} of {count}", file=sys.stderr, flush=True)
        return results

    def result(self) -> dict[str, Any]:
        figures = {known.name: known for known in self.case.figures}
        return {
            "parameters": dict(self.parameters),
            "figures": {
                name: {
                    "value": round(value, 4),
                    "unit": figures[name].unit,
                    "goal": figures[name].goal(),
                    "met": figures[name].is_met_by(value),
                }
                for name, value in self.values.items()
            },
            "medians": {name: round(statistics.median(values), 4) for name, values in self.rounds.items()},
            "rounds": {name: [round(value, 4) for value in values] for name, values in self.rounds.items()},
            "notes": self.notes,
        }


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(one / other for one, other in zip(over, under, strict=True))


def all_cases() -> dict[str, Case]:
    cases = (case for module in MODULES for case in import_module(f"bench.{module}").CASES)
    return {case.name: case for case in cases}


def main() -> None:
    options = _options()
    cases = all_cases()
    unknown = set(options.cases) - cases.keys()
    if unknown:
        raise SystemExit(f"no case {', '.join(sorted(unknown))}; there are: {', '.join(cases)}")
    if options.list:
        _list(cases)
    elif options.one:
        print(orjson.dumps(_measure(cases[options.one], options)).decode())
    else:
        chosen = [cases[name] for name in options.cases] or list(cases.values())
        _run_all(chosen, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="replace parameters of the size")
    parser.add_argument("--data", type=Path, help="folder of public documents and judgements [CHUNKSINK_SHARED_DATA]")
    parser.add_argument("--into", type=Path, help="the file of results to add to")
    parser.add_argument("--list", action="store_true", help="name the cases, their goals and parameters")
    parser.add_argument("--shared", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def _list(cases: Mapping[str, Case]) -> None:
    for case in cases.values():
        print(f"{case.name}: {case.title}")
        for figure in case.figures:
            print(f"    {figure.name}" + (f": {figure.goal()}" if figure.goal() else ""))
        print("   ", *(f"{name}={small}|{full}" for name, (small, full) in case.sizes.items()))


def _measure(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    chosen = dict(each.split("=", 1) for each in options.set)
    measurement = Measurement(case, case.parameters(options.size, chosen), options.shared, _data(options.data))
    try:
        case.measure(measurement)
    finally:
        shutil.rmtree(measurement.scratch, ignore_errors=True)
    return measurement.result()


def _data(named: Path | None) -> Path | None:
    """Public documents and judgements: the given folder, or `shared/data` beside the checkout if it exists."""
    folder = named or Path(os.environ.get("CHUNKSINK_SHARED_DATA") or ROOT.parent / "shared" / "data")
    return folder.resolve() if folder.is_dir() else None


def _run_all(chosen: Sequence[Case], options: argparse.Namespace) -> None:
    started = datetime.now(UTC)
    file = options.into or (None if options.cases else RESULTS / f"{started:%Y-%m-%dT%H%M}.json")
    results = _begin(file, started, options.size)
    failed = []
    with tempfile.TemporaryDirectory(prefix="bench-") as shared:
        for case in chosen:
            began = time.monotonic()
            try:
                result = _in_own_process(case, shared)
            except subprocess.CalledProcessError as error:
                failed.append(case.name)
                print(f"{case.name} failed: {error}", file=sys.stderr)
                continue
            result["seconds"] = round(time.monotonic() - began, 1)
            results["cases"][case.name] = result
            for line in _printed(case, result):
                print(line, flush=True)
            if file is not None:  # after each case, so that an interrupted run keeps all complete ones
                write_results(file, results)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def _begin(file: Path | None, started: datetime, size: str) -> dict[str, Any]:
    """New results, or those of the file if it has the same size."""
    if file is not None and file.exists():
        results: dict[str, Any] = orjson.loads(file.read_bytes())
        if results["size"] == size:
            return results
        raise SystemExit(f"{file} holds a run of size {results['size']}, not {size}")
    return {"date": started.isoformat(timespec="minutes"), "size": size, **machine.description(), "cases": {}}


def _in_own_process(case: Case, shared: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench", *sys.argv[1:], "--shared", shared, "--one", case.name]
    # The case uses compiled modules, as users do, even if `PYTHONDONTWRITEBYTECODE` is set here.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True)
    result: dict[str, Any] = orjson.loads(done.stdout.splitlines()[-1])
    return result


def _printed(case: Case, result: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n{case.name}: {case.title} ({result['seconds']:.0f} s)"
    for name, figure in result["figures"].items():
        goal = f", goal {figure['goal']}" + ("" if figure["met"] else ": MISSED") if figure["goal"] else ""
        yield f"  {name}: {figure['value']:.3g} {figure['unit']}{goal}"
    for name, median in result["medians"].items():
        yield f"    {name}: {median:,.4g}"
    for note in result["notes"]:
        yield f"  note: {note}"
