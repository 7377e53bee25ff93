"""Runs trials and writes their results to `bench/faults/results/`: `make faults`, or

.faults/bin/python -m bench.faults [--tools NAME ...] [--scenarios NAME ...] [--sources N] [--seeds N] [--into FILE] ...
"""

from __future__ import annotations

import argparse
import platform
import random
import shutil
import sys
import tempfile
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.faults import corpus, run
from bench.faults.scenarios import SCENARIOS
from bench.faults.table import RESULTS
from bench.faults.tools import KEEPS_REMOVED, PACKAGES, TOOLS
from bench.faults.trial import Trial
from bench.machine import commit
from bench.result_file import write_results


def main() -> None:
    options = _options()
    started = datetime.now(UTC)
    results: dict[str, Any] = {
        "date": started.isoformat(timespec="minutes"),
        "commit": commit(),
        "python": platform.python_version(),
        "sources": options.sources,
        "versions": {name: _version(name) for names in PACKAGES.values() for name in names},
        "trials": [],
    }
    file = options.into or RESULTS / f"{started:%Y-%m-%dT%H%M}.json"
    installed = [name for name in options.tools if all(map(_version, PACKAGES[TOOLS[name].adapter]))]
    failed: list[BaseException] = []
    run.preload({TOOLS[name].adapter for name in installed})
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch, ProcessPoolExecutor(options.jobs) as pool:
        arguments = [(name, seed, options, Path(scratch)) for seed in range(options.seeds) for name in installed]
        for task in as_completed([pool.submit(trials, *each) for each in arguments]):
            if error := task.exception():
                failed.append(error)
                traceback.print_exception(error)
                continue
            results["trials"] += task.result()
            results["trials"].sort(key=lambda each: (each["tool"], each["scenario"], each["seed"]))
            write_results(file, results)
            print(f"{len(results['trials'])} trials", file=sys.stderr, flush=True)
    if failed:
        raise SystemExit(f"{len(failed)} sets of trials failed")


def trials(name: str, seed: int, options: argparse.Namespace, scratch: Path) -> list[dict[str, Any]]:
    """The trials of a tool with one seed. Each starts with a copy of the same sources. It starts with a copy of
    the same filled store, or, in some scenarios, without a store."""
    tool, folder, rng = TOOLS[name], scratch / f"{name}-{seed}", random.Random(seed)
    trial = Trial(folder / "trial", tool, rng)
    trial.sources.mkdir(parents=True)
    for number in range(options.sources):
        corpus.write(trial.sources, number, rng)
    (trial.folder / "model").write_text("a")
    shutil.copytree(trial.folder, folder / "empty")
    seconds = trial.run_timed()
    assert trial.gaps().right, (name, trial.gaps(), trial.remarks)
    shutil.copytree(trial.folder, folder / "filled")
    found = []
    for key in options.scenarios:
        scenario = SCENARIOS[key]
        if (tool.remedy and not scenario.remedies) or (key == "plain" and name in KEEPS_REMOVED):
            continue
        rng, wanted, longest = random.Random(f"{key} {seed}"), options.kills if scenario.kills else 1, seconds
        while wanted:
            trial = Trial(folder / "trial", tool, rng)
            trial.restore(folder / ("filled" if scenario.filled else "empty"))
            scenario.strike(trial, longest)
            if trial.kills == scenario.kills:
                wanted -= 1
                found.append({"tool": name, "scenario": key, "seed": seed} | trial.outcome(watched=key == "replaced"))
            else:
                longest *= 0.6  # a run ended before it was killed: another trial
    shutil.rmtree(folder)
    return found


def _version(package: str) -> str:
    """Empty if the package is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--sources", type=int, default=60, help="how many; 300 is the full size")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=2, help="trials of each scenario with kills, for each seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--into", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
