"""How fast `chunksink validate` is beside a bare loop over the same file, and how its memory grows.

    python -m bench.validate_speed [--chunks 1000000] [--rounds 3]

The bare loop is `orjson.loads` of each line and sha256 over all of them, in one process. Both are whole processes
that take turns in one run; what counts is their ratio, round by round. Prints a Markdown table.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

BARE_LOOP = """
import sys, hashlib, orjson
digest = hashlib.sha256()
with open(sys.argv[1], "rb") as lines:
    for line in lines:
        orjson.loads(line)
        digest.update(line)
"""


@dataclass(frozen=True)
class Run:
    seconds: float
    peak_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        large = _make_bus(Path(folder) / "large", asked.chunks)
        small = _make_bus(Path(folder) / "small", 10_000)
        file = large / "canonical" / "part-00000.jsonl"
        print(f"{asked.chunks:,} chunks, {file.stat().st_size / asked.chunks:,.0f} bytes each, ", end="")
        print(f"{len(os.sched_getaffinity(0))} cores, {asked.rounds} rounds\n")
        variants = {
            "bare loop": [sys.executable, "-c", BARE_LOOP, str(file)],
            "validate": _validate(large, folder),
            "validate --jobs 1": [*_validate(large, folder), "--jobs", "1"],
        }
        rounds = [{name: _run(command) for name, command in variants.items()} for _ in range(asked.rounds)]
        tiny = _run([*_validate(small, folder), "--jobs", "1"])
    print(
        "| | seconds (median) | speed against the bare loop | peak memory of the largest process |\n|---|---|---|---|"
    )
    for name in variants:
        seconds = statistics.median(done[name].seconds for done in rounds)
        ratio = statistics.median(done["bare loop"].seconds / done[name].seconds for done in rounds)
        peak = max(done[name].peak_mb for done in rounds)
        print(f"| {name} | {seconds:.2f} | {ratio:.2f} | {peak:.0f} MB |")
    peak = max(done["validate --jobs 1"].peak_mb for done in rounds)
    print(f"\nPeak of one process for {asked.chunks:,} chunks against that for 10,000: {peak / tiny.peak_mb:.2f}")


def _validate(chunks: Path, folder: str) -> list[str]:
    return [sys.executable, "-m", "chunksink", "validate", "--chunks", str(chunks), "--home", f"{folder}/home"]


def _run(command: list[str]) -> Run:
    """A whole process: its seconds, and the peak memory of the largest process in it as the system accounts it."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return Run(seconds, usage.ru_maxrss / 1024)


def _make_bus(folder: Path, chunks: int) -> Path:
    """Made by another process: what this one has in memory would count as its children's peak."""
    command = [sys.executable, "-m", "bench.chunks", str(folder), "--chunks", str(chunks)]
    subprocess.run(command, cwd=ROOT, check=True)
    return folder


if __name__ == "__main__":
    main()
