"""Runs the long forms of the tests, and records what ran and how it ended in bench/soak.md.

python -m tests.soak [--quick] [--only NAME]
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


def tests(*arguments: str, noted: Counter[str] | None = None, **variables: str) -> tuple[str, bool]:
    """Run some tests in a separate process, and return how many there were. Their records are added to `noted`."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "tests.xml"
        options = [f"--junitxml={results}", "-o", "junit_family=xunit1"]  # the newer kind of report has no properties
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, *arguments]
        code = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=False).returncode
        suite = next(ElementTree.parse(results).iter("testsuite")) if results.exists() else ElementTree.Element("none")
    for each in suite.iter("property"):
        if noted is not None:
            noted[each.attrib["name"]] += int(each.attrib["value"])
    total, wrong, skipped = (
        sum(int(suite.get(name, 0)) for name in names) for names in (("tests",), ("failures", "errors"), ("skipped",))
    )
    counts = f"{total:,} tests" + (f", {wrong} failed" if wrong else "") + (f", {skipped} skipped" if skipped else "")
    return counts, code == 0


def steps(quick: bool) -> tuple[str, bool]:
    some = ["-k", "sync-Receipts or sync-Fts"] if quick else []
    return tests("tests/crash", "-n", PROCESSES, *some, CHUNKSINK_SOAK_KILLS="1", CHUNKSINK_SOAK_HEAVY="1")


def killed(beside: str, times: int, quick: bool) -> tuple[str, bool]:
    seed = int(time.time())
    with run_meilisearch() if beside == "meilisearch" else nullcontext() as server:
        try:
            return instants.run(times // 8 if quick else times, seed, say, beside, server), True
        except Exception:  # any error: the other forms run all the same
            traceback.print_exc()
            return f"did not converge, seed {seed}", False


def sequences(file: str, quick: bool) -> tuple[str, bool]:
    number = 1_000 if quick else 10_000
    noted: Counter[str] = Counter()
    counts, ok = tests(f"tests/rebuild/{file}", "-n", PROCESSES, noted=noted, CHUNKSINK_SOAK_SEQUENCES=str(number))
    done = f"{noted['sequences']:,} sequences of {noted['edits']:,} edits, compared after {noted['runs']:,} runs"
    return done if ok else f"{done}, {counts}", ok


def tenants(quick: bool) -> tuple[str, bool]:
    number = 1_000 if quick else 10_000
    counts, ok = tests("tests/search/test_access.py", CHUNKSINK_SOAK_QUERIES=str(number))
    return f"{number:,} questions of three tenants with the same texts, {counts}", ok


def races(quick: bool) -> tuple[str, bool]:
    rounds = 5 if quick else 50
    counts, ok = tests("tests/rebuild/test_writers.py", "-n", PROCESSES, CHUNKSINK_SOAK_ROUNDS=str(rounds))
    return f"{rounds} rounds of 2 and of 8 processes, {counts}", ok


def faults(quick: bool) -> tuple[str, bool]:
    every = "" if quick else "1"
    return tests("tests/faults", "-n", PROCESSES, "--dist", "loadfile", CHUNKSINK_SOAK_FAULTS=every)


def heavy(quick: bool) -> tuple[str, bool]:
    names = (
        r"tests\.conftest import .*\b(HEAVY|examples|sampled)",
        r"tests\.journey\.support import .*\bchunksink",  # forked outside the soak
        r"hypothesis import .*\bgiven",
    )
    shortened = re.compile(rf"^from ({'|'.join(names)})\b", re.MULTILINE)
    files = sorted(
        str(path.relative_to(ROOT))
        for path in TESTS.rglob("test_*.py")
        if path.parent.name != "crash" and shortened.search(path.read_text())  # these are `steps`
    )
    several = ("-n", PROCESSES, "--dist", "loadfile")
    return tests(*files[: 2 if quick else None], *several, CHUNKSINK_SOAK_HEAVY="1")


Form = tuple[str, str, Callable[[bool], tuple[str, bool]]]
KILLED = "killed at random instants, fts and"
FORMS: dict[str, Form] = {
    "instants": (f"{KILLED} jsonl", "an eighth", partial(killed, "jsonl", 200)),
    "chroma": (f"{KILLED} a real Chroma in its folder", "an eighth", partial(killed, "chroma", 40)),
    "meilisearch": (f"{KILLED} a real Meilisearch", "an eighth", partial(killed, "meilisearch", 25)),
    "machine": ("random sequences of edits against a plain dict", "a tenth", partial(sequences, "test_machine.py")),
    "engines": (
        "such sequences in a real Chroma and a real Meilisearch",
        "a tenth",
        partial(sequences, "test_machine_engines.py"),
    ),
    "tenants": ("tenants are apart in every answer", "a tenth", tenants),
    "races": ("many processes on one home", "a tenth", races),
    "heavy": ("what is too long for every day: large batches, every byte, every sign", "two files", heavy),
    "faults": (
        "every network fault, a killed and a starved server at every place, disks full at every size",
        "some",
        faults,
    ),
    "steps": ("killed, stopped and starved before and after every named step and call", "some of them", steps),
}
"""What each is, what of it a quick run does, and what runs it."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a tenth of it")
    parser.add_argument("--only", choices=FORMS, metavar="NAME", help=f"one of {', '.join(FORMS)}; writes no report")
    arguments = parser.parse_args()
    commit = state_of_the_code()
    began = datetime.now(UTC)
    ended = []
    for name, (what, share, form) in FORMS.items():
        if arguments.only in (None, name):
            say(f"{name}: {what}")
            started = time.monotonic()
            counts, ok = form(arguments.quick)
            title = f"{what} ({share})" if arguments.quick else what
            ended.append(Ended(title, counts, time.monotonic() - started, ok))
            say(f"{name}: {counts}, {ended[-1].seconds:.0f} s, {'ok' if ok else 'FAILED'}")
        if arguments.only is None:  # after each form, so that an aborted run shows what it has done
            REPORT.write_text(report(ended, commit, began, quick=arguments.quick), encoding="utf-8")
    return 0 if all(one.ok for one in ended) else 1


def report(ended: list[Ended], commit: str, began: datetime, *, quick: bool) -> str:
    missing = ", ".join(f"`{name}`" for name in list(FORMS)[len(ended) :])
    kind = "A quick run: a part of each form only, as the table says" if quick else "A full run"
    if missing:
        kind = f"A run that was stopped before {missing}"
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
