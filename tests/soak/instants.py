"""Real processes killed at random instants of a sync or a rebuild, each followed by a plain run that must converge.

A reader looks all the while whether every source that stays is there.
"""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import TracebackType

from chunkbus.chunk import Record
from chunkbus.layout import BusRoot
from sinks.fts.sink import FILE
from tests.conftest import ROOT
from tests.crash.homes import committed_texts, home_in
from tests.rebuild.support import Home, commit, parent_of, source
from tests.soak.child import READY

SOURCES = 30
FIRST_GUESS = 0.3  # seconds that a run takes


class Bus:
    """Three partitions; every round some sources are edited, and some come or go."""

    def __init__(self, root: BusRoot, rng: random.Random) -> None:
        self.root = root
        self._rng = rng
        self._clock = 0
        self._sources: dict[str, list[Record]] = {}
        for number in range(SOURCES):
            self._edit(f"docs/{number}.md")
        self._write()

    def families(self) -> set[str]:
        return set(map(parent_of, self._sources))

    def move_on(self) -> set[str]:
        """What it says that is new."""
        new: set[str] = set()
        for name in self._rng.sample(sorted(self._sources), 8):
            new |= self._edit(name)
        for name in self._rng.sample(sorted(self._sources), 2):
            del self._sources[name]
        for _ in range(SOURCES - len(self._sources)):
            new |= self._edit(f"docs/{SOURCES + self._clock}.md")
        self._write()
        return new

    def _edit(self, name: str) -> set[str]:
        self._clock += 1
        texts = [f"{name} says {self._clock} in part {part}" for part in range(self._rng.randint(1, 4))]
        at = f"2026-01-{1 + self._clock // 86400:02}T00:00:{self._clock % 60:02}Z"
        self._sources[name] = source(name, *texts, version=str(self._clock), at=at)
        return set(texts)

    def _write(self) -> None:
        for number in range(3):
            records = [r for name, family in self._sources.items() if len(name) % 3 == number for r in family]
            commit(self.root, f"p{number}", records)


class Reader:
    """Looks again and again, beside all runs, which of some families the live build lacks."""

    def __init__(self, home: Home, families: set[str]) -> None:
        self._home, self._families = home, families
        self._ended = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self.looks = 0
        self.absent: set[str] = set()

    def __enter__(self) -> Reader:
        self._reading = self._thread.submit(self._read)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.shutdown()
        self._reading.result()  # a reader that failed saw nothing any more

    def _read(self) -> None:
        while not self._ended.is_set():
            file = self._home.folder / "fts" / self._home.live().builds["fts"] / FILE
            with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=60)) as db:
                found = {parent for (parent,) in db.execute("select distinct parent_id from documents")}
            self.absent |= self._families - found
            self.looks += 1


def digests(home: Home) -> dict[str, str]:
    verified = home.verify()
    assert verified.ok, verified
    return {name: sink.digest for name, sink in verified.sinks.items()}


def oracle(root: BusRoot, folder: Path) -> dict[str, str]:
    fresh = home_in(folder, root)
    fresh.rebuild()
    found = digests(fresh)
    shutil.rmtree(folder)
    return found


def run(kills: int, seed: int, say: Callable[[str], object]) -> str:
    """So many kills that hit; AssertionError where something did not converge."""
    rng = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="chunksink-soak-"))
    try:
        home = home_in(folder / "home", BusRoot(folder / "chunks"))
        bus = Bus(home.root, rng)
        home.rebuild()
        spans = {"sync": FIRST_GUESS, "rebuild": FIRST_GUESS}
        hits = dict.fromkeys(spans, 0)
        rounds = looks = 0
        while sum(hits.values()) < kills:
            rounds += 1
            assert rounds < 3 * kills + 20, "most runs end before they are killed"
            command = rng.choice(("sync", "sync", "rebuild"))
            before = bus.families()
            new = bus.move_on()
            with Reader(home, before & bus.families()) as reader:
                hits[command] += _killed(home, command, spans, rng)
                committed = committed_texts(home, new)
                home.encoder.asked.clear()
                home.sync()
            assert not reader.absent, "a source was absent for a moment"
            looks += reader.looks
            assert not set(home.encoder.asked) & committed, "a committed vector was computed again"
            assert digests(home) == oracle(home.root, folder / "fresh")
            if rounds % 20 == 0:
                say(f"  {sum(hits.values())} of {kills} kills")
        home.rebuild()
        left = {name: len(builds) for name, builds in home.builds().items()}
        assert left == {"fts": 2, "jsonl": 2}, f"builds that nobody needs are left: {left}"
        killed = f"{hits['sync']} in a sync, {hits['rebuild']} in a rebuild, {rounds} rounds, seed {seed}"
        return f"{killed}; a reader looked {looks:,} times and missed no source"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _killed(home: Home, command: str, spans: dict[str, float], rng: random.Random) -> bool:
    """Whether it was killed before it ended; how long a run takes is learnt on the way."""
    line = [sys.executable, "-m", "tests.soak.child", str(home.folder), str(home.root.path), command]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == READY
        started = time.monotonic()
        try:
            process.wait(rng.uniform(0, spans[command]))
        except subprocess.TimeoutExpired:
            process.kill()
            spans[command] *= 1.02
            return process.wait() == -signal.SIGKILL
        assert process.returncode == 0
        spans[command] = min(spans[command], time.monotonic() - started)
        return False
