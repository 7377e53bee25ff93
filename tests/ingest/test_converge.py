"""After any history, an ingest ends in the same state as a first ingest of the same files."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import time_machine
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.conftest import ROOT, examples
from tests.ingest.bench import Bench
from tests.support.home import Home
from tests.support.local_engines import memory

FILES = st.sampled_from(["a.md", "b.md", "sub/a.md", "sub/deep/c.md", "rows.jsonl", "sub/more.jsonl"])
WORDS = st.sampled_from(["cat", "dog", "cow", ""])
TENANTS = (None, "ada")
PARTITIONS = st.sampled_from(["documents", "by-type", "by-prefix"])


class Ingests(RuleBasedStateMachine):
    """Random edits between ingests, some on parts, some with another rule, some without the database."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.bench = Bench(Path(self._folder.name))
        self.bench.docs.mkdir()
        self.partition = "by-prefix"
        self.is_current = False

    def teardown(self) -> None:
        self._folder.cleanup()

    @rule(name=FILES, word=WORDS, other=WORDS)
    def write(self, name: str, word: str, other: str) -> None:
        rows = [{"id": f"{name}{place}", "text": f"The {text}."} for place, text in enumerate((word, other)) if text]
        self.bench.write(name, f"# {word}\n\n{other}\n" if name.endswith(".md") else rows)
        self.is_current = False

    @rule(name=FILES)
    def remove(self, name: str) -> None:
        if (self.bench.docs / name).exists():
            self.bench.remove(name)
            self.is_current = False

    @rule(partition=PARTITIONS)
    def choose(self, partition: str) -> None:
        """The families of one rule move to another; those of a named partition stay."""
        if "documents" not in (partition, self.partition):
            self.partition = partition
            self.is_current = False

    @rule(part=st.sampled_from(["sub", "a.md"]), tenant=st.sampled_from(TENANTS))
    def ingest_part(self, part: str, tenant: str | None) -> None:
        if (self.bench.docs / part).exists():
            self.bench.ingest(part, base=self.bench.folder, partition=self.partition, tenant=tenant)

    @rule(keeps_database=st.booleans())
    def ingest(self, keeps_database: bool) -> None:
        for file in self.bench.home.glob("ingest.db*") if not keeps_database else ():
            file.unlink()
        for tenant in TENANTS:
            self.bench.ingest(
                base=self.bench.folder, partition=self.partition, tenant=tenant, prune=True, allow_deletions=99
            )
        self.is_current = True

    @invariant()
    def holds_what_a_first_ingest_would(self) -> None:
        if not self.is_current:
            return
        oracle = self.bench.fresh(f"fresh{time.time_ns()}")
        for tenant in TENANTS:
            oracle.ingest(base=self.bench.folder, partition=self.partition, tenant=tenant)
        held = {key: records for key, records in self.bench.content().items() if records}
        assert held == {key: records for key, records in oracle.content().items() if records}
        again = self.bench.ingest(base=self.bench.folder, partition=self.partition)
        assert (again.written, again.missing) == (False, 0)


def test_any_history_ends_like_a_first_ingest() -> None:
    run_state_machine_as_test(
        Ingests, settings=settings(max_examples=examples(60), stateful_step_count=12, deadline=None)
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [("rows.jsonl", b""), ("rows.jsonl", b"\n"), ("rows.json", b"[]"), ("rows.csv", b"")],
)
def test_a_file_emptied_while_the_database_is_lost_loses_its_families(name: str, content: bytes, bench: Bench) -> None:
    rows = b"id,text\na,The cat.\n" if name.endswith(".csv") else b'[{"id":"a","text":"The cat."}]'
    bench.write(name, rows if name != "rows.jsonl" else rows.strip(b"[]"))
    assert bench.ingest(name).documents == 1
    (bench.home / "ingest.db").unlink()
    bench.write(name, content)
    report = bench.ingest(name)
    assert (report.failed, report.missing, report.documents) == (0, 1, 1)
    report = bench.ingest(name, prune=True, allow_deletions=1)
    assert (report.failed, report.missing, report.documents) == (0, 0, 0)
    assert bench.ingest(name).written is False


@pytest.mark.promise(2)
def test_killed_at_any_instant_the_next_ingest_converges(bench: Bench) -> None:
    """A real process, killed after a random time; the last one is not killed."""
    for number in range(200):
        bench.write(f"{number % 7}/{number}.md", f"# Note {number}\n\n[next]({number + 1}.md) " + "words " * 300)
    bench.ingest()
    for number in range(0, 200, 2):
        bench.write(f"{number % 7}/{number}.md", f"# Edited {number}\n\n" + "other words " * 300)
    bench.remove("3")
    command = [sys.executable, "-m", "chunksink", "ingest", bench.docs, "--chunks", bench.bus.path]
    command += ["--home", bench.home, "--jobs", "1", "--prune", "--json"]
    began = time.monotonic()
    _run([part.replace("/bus", "/timed").replace("/home", "/timed-home") for part in map(str, command)])
    seconds = time.monotonic() - began
    for share in range(examples(24)):
        process = subprocess.Popen(
            list(map(str, command)), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(seconds * (0.3 + 0.7 * share / examples(24)))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        bench.check()
    assert json.loads(_run(list(map(str, command))))["failed"] == 0
    oracle = bench.fresh()
    oracle.ingest()
    assert bench.content() == oracle.content()
    assert bench.links() == oracle.links()
    assert bench.ingest().written is False
    assert not list(bench.home.glob("ingest-spool*"))


@pytest.mark.promise(10)
@pytest.mark.parametrize("seed", range(examples(20)))
def test_two_writers_whose_clocks_are_an_hour_apart(seed: int, bench: Bench) -> None:
    """The last ingest counts in the index, even if a clock is ahead."""
    drawn, other = random.Random(seed), bench.fresh()
    other.bus = bench.bus
    index = Home(bench.folder / "index", bench.bus, memory())
    for edit in range(10):
        bench.write("a.md", f"Edit {edit} of this document.\n")
        writer, partition, off = drawn.choice([(bench, "here", 0), (other, "there", 3600)])
        with time_machine.travel(time.time() + off):
            writer.ingest(base=bench.folder, partition=partition)
        with time_machine.travel(time.time() + drawn.choice([0, 3600])):
            index.sync() if edit else index.rebuild()
        assert [document.text for document in index.contents()["memory"]] == [f"Edit {edit} of this document."]


def _run(command: list[str]) -> bytes:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
