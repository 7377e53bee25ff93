"""Runs the long forms of the tests, and records what ran and how it ended in bench/soak.md.

python -m tests.soak [--only NAME]
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from tests.conftest import ROOT
from tests.engines.servers import run_meilisearch
from tests.soak import instants

TESTS = ROOT / "tests"
REPORT = ROOT / "bench" / "soak.md"
PROCESSES = "2"


@dataclass(frozen=True)
class Ended:
    what: str
    counts: str
    seconds: float
    ok: bool


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def tests(*arguments: str) -> tuple[str, bool]:
    """Run the long form of some tests in a separate process. Return how many there were, and what they recorded."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "tests.xml"
        options = [f"--junitxml={results}", "-o", "junit_family=xunit1"]  # the newer kind of report has no properties
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", PROCESSES, *options, *arguments]
        variables = {**os.environ, "CHUNKSINK_SOAK_HEAVY": "1"}
        code = subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode
        suite = next(ElementTree.parse(results).iter("testsuite")) if results.exists() else ElementTree.Element("none")
    recorded: Counter[str] = Counter()
    for each in suite.iter("property"):
        recorded[each.attrib["name"]] += int(each.attrib["value"])
    total, wrong, skipped = (
        sum(int(suite.get(name, 0)) for name in names) for names in (("tests",), ("failures", "errors"), ("skipped",))
    )
    counts = f"{total:,} tests" + (f", {wrong} failed" if wrong else "") + (f", {skipped} skipped" if skipped else "")
    return ", ".join([counts, *(f"{number:,} {what}" for what, number in recorded.items())]), code == 0


def killed(beside: str, times: int) -> tuple[str, bool]:
    seed = int(time.time())
    with run_meilisearch() if beside == "meilisearch" else nullcontext() as server:
        try:
            return instants.run(times, seed, say, beside, server), True
        except Exception:  # any error: the other forms run all the same
            traceback.print_exc()
            return f"did not converge, seed {seed}", False


MACHINE, ENGINES = "tests/rebuild/test_machine.py", "tests/rebuild/test_machine_engines.py"
TENANTS, RACES = "tests/search/test_access.py", "tests/rebuild/test_writers.py"
FAULTS, STEPS = "tests/faults", "tests/crash"


def heavy() -> tuple[str, bool]:
    """Every other file with a long form."""
    names = (
        r"tests\.conftest import .*\b(HEAVY|examples|sampled)",
        r"tests\.journey\.support import .*\bchunksink",  # forked outside the soak
        r"hypothesis import .*\bgiven",
    )
    shortened = re.compile(rf"^from ({'|'.join(names)})\b", re.MULTILINE)
    files = sorted(
        str(path.relative_to(ROOT)) for path in TESTS.rglob("test_*.py") if shortened.search(path.read_text())
    )
    forms = (MACHINE, ENGINES, TENANTS, RACES, FAULTS, STEPS)
    return tests(*(file for file in files if not file.startswith(forms)), "--dist", "loadfile")


KILLED = "killed at random instants, fts and"
FORMS: dict[str, tuple[str, Callable[[], tuple[str, bool]]]] = {
    "instants": (f"{KILLED} jsonl", partial(killed, "jsonl", 200)),
    "chroma": (f"{KILLED} a real Chroma in its folder", partial(killed, "chroma", 40)),
    "meilisearch": (f"{KILLED} a real Meilisearch", partial(killed, "meilisearch", 25)),
    "machine": ("random sequences of edits against a plain dict", partial(tests, MACHINE)),
    "engines": ("such sequences in real Chroma and Meilisearch", partial(tests, ENGINES)),
    "tenants": ("no answer mixes tenants", partial(tests, TENANTS)),
    "races": ("2 and 8 processes on one home", partial(tests, RACES)),
    "heavy": ("tests too long for every run: large batches, every byte, every character", heavy),
    "faults": (
        "every network fault; a server killed or starved at every call; disks full at every size",
        partial(tests, FAULTS, "--dist", "loadfile"),
    ),
    "steps": ("killed, stopped or starved before and after every named step and call", partial(tests, STEPS)),
}
"""What each is, and what runs it."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--only", choices=FORMS, metavar="NAME", help=f"one of {', '.join(FORMS)}; writes no report")
    arguments = parser.parse_args()
    commit = state_of_the_code()
    began = datetime.now(UTC)
    ended = []
    for name, (what, form) in FORMS.items():
        if arguments.only in (None, name):
            say(f"{name}: {what}")
            started = time.monotonic()
            counts, ok = form()
            ended.append(Ended(what, counts, time.monotonic() - started, ok))
            say(f"{name}: {counts}, {ended[-1].seconds:.0f} s, {'ok' if ok else 'FAILED'}")
        if arguments.only is None:  # after each form, so that an aborted run shows what it has done
            REPORT.write_text(report(ended, commit, began), encoding="utf-8")
    return 0 if all(one.ok for one in ended) else 1


def report(ended: list[Ended], commit: str, began: datetime) -> str:
    missing = ", ".join(f"`{name}`" for name in list(FORMS)[len(ended) :])
    kind = f"A run that was stopped before {missing}" if missing else "A full run"
    rows = [
        f"| {one.what} | {one.counts} | {one.seconds:,.0f} s | {'ok' if one.ok else '**failed**'} |" for one in ended
    ]
    return "\n".join(
        [
            "# The last soak",
            "",
            f"{kind}, at {commit}, on {began:%Y-%m-%d} UTC, with {os.cpu_count()} cores and Python "
            f"{platform.python_version()}.",
            "`make soak` runs it and writes this page.",
            "",
            "| what | how much | took | ended |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def state_of_the_code() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True, check=True).stdout.strip()

    changed = git("status", "--porcelain", "--", "*.py")
    return f"commit {git('rev-parse', '--short', 'HEAD')}" + (" with changes not committed yet" if changed else "")


if __name__ == "__main__":
    sys.exit(main())
