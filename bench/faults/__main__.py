"""Runs trials and writes their results to `bench/faults/results/`.

.faults/bin/python -m bench.faults [--tools NAME ...] [--scenarios NAME ...] [--size quick|full]
    [--seeds N] [--kills N] [--jobs N] [--into FILE]
"""

from __future__ import annotations

import argparse
import platform
import random
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import orjson

from bench.faults.scenarios import SCENARIOS, Scenario
from bench.faults.tools import TOOLS, Tool
from bench.faults.trial import Trial
from bench.machine import commit

RESULTS = Path(__file__).parent / "results"
SIZES = {"quick": 60, "full": 300}


def main() -> None:
    options = _options()
    started = datetime.now(UTC)
    results: dict[str, Any] = {
        "date": started.isoformat(timespec="minutes"),
        "commit": commit(),
        "python": platform.python_version(),
        "sources": SIZES[options.size],
        "seeds": options.seeds,
        "kills": options.kills,
        "versions": {name: version(name) for tool in TOOLS.values() for name in tool.packages if _installed(name)},
        "trials": [],
    }
    file = options.into or RESULTS / f"{started:%Y-%m-%dT%H%M}.json"
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch, ProcessPoolExecutor(options.jobs) as pool:
        tasks = {
            pool.submit(trials, name, options.scenarios, seed, options, Path(scratch)): (name, seed)
            for seed in range(options.seeds)
            for name in options.tools
        }
        for task in as_completed(tasks):
            results["trials"] += task.result()
            results["trials"].sort(key=lambda each: (each["tool"], each["scenario"], each["seed"]))
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(orjson.dumps(results, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
            print(*tasks[task], file=sys.stderr, flush=True)


def trials(tool: str, scenarios: list[str], seed: int, options: argparse.Namespace, scratch: Path) -> list[Any]:
    """All trials of a tool with one seed. They share the runs that fill the index."""
    folder = scratch / f"{tool}-{seed}"
    trial = Trial(folder / "trial", TOOLS[tool], random.Random(seed))
    if not all(map(_installed, TOOLS[tool].packages)):
        return []
    trial.create(SIZES[options.size])
    trial.copy_to(folder / "empty")
    seconds = trial.run().seconds
    if not trial.gaps().right:
        raise SystemExit(f"{tool} does not fill the store: {trial.gaps()} {trial.ran[-1].output}")
    trial.copy_to(folder / "filled")
    found = []
    for name in scenarios:
        scenario = SCENARIOS[name]
        if not (TOOLS[tool].remedy and not scenario.remedies) and (TOOLS[tool].prunes or not scenario.prunes):
            for number in range(options.kills if scenario.kills else 1):
                start = folder / ("filled" if scenario.filled else "empty")
                found.append({"tool": tool, "scenario": name, "seed": seed})
                found[-1] |= outcome(folder / "trial", start, TOOLS[tool], scenario, f"{name} {seed} {number}", seconds)
    shutil.rmtree(folder)
    return found


def outcome(folder: Path, start: Path, tool: Tool, scenario: Scenario, seed: str, seconds: float) -> dict[str, Any]:
    """What the next run makes of a fault, and the one after that if something is still wrong."""
    rng = random.Random(seed)
    while True:
        trial = Trial(folder, tool, rng)
        trial.restore(start)
        scenario.strike(trial, seconds)
        if trial.kills == scenario.kills:
            break
        seconds *= 0.8  # a run ended before it was killed: another trial
    ran = trial.run_watched() if scenario.watched else trial.run(remedy=True)
    first = trial.gaps()
    if not first.right:
        trial.run()
    after = trial.gaps()
    return {
        "right": first.right,
        "right_after_another": after.right,
        "reported": any(each.reported for each in trial.ran),
        "codes": [each.code for each in trial.ran],
        "gaps": asdict(first),
        "last_gaps": asdict(after),
        "looks": trial.looks,
        "absent": trial.absent,
        "printed": trial.tool.remark(ran.output) if ran.reported else "",
    }


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--size", choices=SIZES, default="quick")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=2, help="trials with kills per seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--into", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
