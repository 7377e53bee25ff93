"""`chunksink validate` beside a bare loop over the same file, and how its memory grows."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench import corpora
from bench.harness import Case, Figure, Measurement, ratio
from bench.processes import Ran, chunksink, run

BARE_LOOP = """
import sys, hashlib, orjson
digest = hashlib.sha256()
with open(sys.argv[1], "rb") as lines:
    for line in lines:
        orjson.loads(line)
        digest.update(line)
"""
FEW = 10_000


def measure(case: Measurement) -> None:
    size = case.number("chunks")
    bus, few = (corpora.shared_bus(case.shared, chunks, partitions=1) for chunks in (size, FEW))
    home, file = case.scratch / "home", bus / "canonical" / "part-00000.jsonl"
    candidates: dict[str, Callable[[], Ran]] = {
        "bare loop": lambda: run([sys.executable, "-c", BARE_LOOP, file]),
        "validate": lambda: chunksink("validate", bus, home),
        "validate --jobs 1": lambda: chunksink("validate", bus, home, "--jobs", "1"),
    }
    ran = case.turns(candidates)
    small = chunksink("validate", few, home, "--jobs", "1")
    seconds = {name: case.keep(f"{name}, seconds", [one.seconds for one in rounds]) for name, rounds in ran.items()}
    case.found("validate's speed, against the bare loop", ratio(seconds["bare loop"], seconds["validate"]))
    peak = max(one.peak_mb for one in ran["validate --jobs 1"])
    case.found("memory against 10,000 chunks", peak / small.peak_mb)


CASES = (
    Case(
        "validate",
        "validation against a bare loop (parse and hash each line) over the same partition",
        (
            Figure("validate's speed, against the bare loop", at_least=0.5),
            Figure("memory against 10,000 chunks", at_most=1.2),
        ),
        measure,
        {"chunks": (300_000, 1_000_000), "rounds": (3, 3)},
    ),
)
