"""Real processes killed at random instants of a sync or a rebuild. After each, a plain run must converge.

All the time, a reader checks that the engines have every source that does not change.
"""

from __future__ import annotations

import multiprocessing
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild import executor
from chunksink.sinks.capabilities import SupportsPrepare, capability
from tests.crash.homes import committed_texts
from tests.engines.servers import MeilisearchServer
from tests.soak import reader
from tests.soak.engines import drop_builds, home_in
from tests.support.bus import commit, parent_of, source
from tests.support.home import Home, sinks_with

COMMANDS = {"sync": "sync", "rebuild": "rebuild", "apart": "rebuild by a process of its own"}
SOURCES = 30
MAX_SECONDS = 60.0  # the most seconds of a run

# Each is forked from a process that has imported its modules, because imports take longer than the runs.
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([__name__, reader.__name__, "chromadb"])


def _run_once(
    folder: Path, root: FolderRoot, beside: str, server: MeilisearchServer | None, command: str, began: Connection
) -> None:
    executor.EMBEDDED_AT_ONCE = executor.WRITTEN_AT_ONCE = 4
    home = home_in(folder, root, beside, server)
    began.send(command)
    if command == "sync":
        home.sync()
    else:
        home.rebuild(wrap=_prepared if command == "apart" else lambda sink: sink)


def _prepared(sink: Any) -> Any:
    """As in a large rebuild, a separate process fills the new build."""
    if (preparing := capability(sink, SupportsPrepare)) is not None:
        preparing.prepare()
    return sink


class Bus:
    """Three partitions. In every round some sources are edited, added or removed."""

    def __init__(self, root: FolderRoot, rng: random.Random) -> None:
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
        """Edit, add and remove some sources. Returns the new texts."""
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


class Rounds:
    """The rounds of one home: the bus changes, a run is killed, and a plain run must restore everything."""

    def __init__(self, folder: Path, beside: str, server: MeilisearchServer | None, seed: int) -> None:
        self._rng = random.Random(seed)
        self._folder, self._beside, self._server = folder, beside, server
        self._home = self._home_in("home")
        self._bus = Bus(self._home.root, self._rng)
        self._commands = (
            ["sync", "sync", "rebuild"] if beside != "chroma" else ["sync", "sync", "sync", "rebuild", "apart"]
        )
        self._spans: dict[str, float] = {}
        """How long each takes; learnt from one that nobody kills, and on the way."""
        self.hits: Counter[str] = Counter()
        self.looks: Counter[str] = Counter()
        self.broken = 0
        self.number = 0
        self._home.rebuild()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        ours, its = FORKING.Pipe()
        process = FORKING.Process(target=reader.main, args=(self._home.folder, self._server, its), daemon=True)
        process.start()
        its.close()
        with closing(ours):
            yield ours
        process.join()

    def next(self, looking: Connection) -> None:
        self.number += 1
        command = self._rng.choice(self._commands)
        before = self._bus.families()
        new = self._bus.move_on()
        with reader.beside(looking, before & self._bus.families()) as seen:
            self.hits[command] += self._killed(command)
            committed = committed_texts(self._home, new)
            self._home.encoder.asked.clear()
            outcome = self._home.sync()
        assert not outcome.failed, f"the next run did not converge: {outcome.failed}"
        if sinks_with(outcome, "made_again"):  # broken by the kill: nobody can search it until it was created again
            assert sinks_with(outcome, "made_again") == ["chroma"], sinks_with(outcome, "made_again")
            self.broken += 1
            seen.absent.pop("chroma", None)
            seen.unanswered.pop("chroma", None)
        assert not seen.absent, f"sources were absent for a moment: {seen.absent}"
        assert not seen.unanswered, f"a reader could not look: {seen.unanswered}"
        self.looks += seen.looks
        assert not set(self._home.encoder.asked) & committed, "a committed vector was computed again"
        assert self._digests(self._home) == self._oracle()

    def end(self) -> None:
        self._home.rebuild()
        left = {name: len(builds) for name, builds in self._home.builds().items()}
        assert left == {"fts": 2, self._beside: 2}, f"builds that nobody needs are left: {left}"
        drop_builds(self._home)

    def _home_in(self, name: str) -> Home:
        return home_in(self._folder / name, FolderRoot(self._folder / "chunks"), self._beside, self._server)

    def _digests(self, home: Home) -> dict[str, str]:
        verified = home.verify(deep=self._beside != "jsonl")  # these files have no vectors
        assert verified.ok, verified
        return {name: sink.digest for name, sink in verified.sinks.items()}

    def _oracle(self) -> dict[str, str]:
        fresh = self._home_in("fresh")
        fresh.rebuild()
        found = self._digests(fresh)
        drop_builds(fresh)
        shutil.rmtree(fresh.folder)
        return found

    def _killed(self, command: str) -> bool:
        """Whether it was killed before it ended."""
        ours, its = FORKING.Pipe(duplex=False)
        run = (self._home.folder, self._home.root, self._beside, self._server, command, its)
        process = FORKING.Process(target=_run_once, args=run)
        process.start()
        its.close()
        ours.recv()
        started = time.monotonic()
        span = self._spans.get(command)
        process.join(MAX_SECONDS if span is None else self._rng.uniform(0, span))
        if span is not None and process.is_alive():
            process.kill()
            process.join()
            self._spans[command] = span * 1.02
        else:
            self._spans[command] = min(span or MAX_SECONDS, time.monotonic() - started)
        assert process.exitcode in (0, -signal.SIGKILL)
        return process.exitcode != 0


def run(
    kills: int,
    seed: int,
    say: Callable[[str], object],
    beside: str = "jsonl",
    server: MeilisearchServer | None = None,
) -> str:
    """Kill runs until this many kills have hit, with the engine `beside` fts. Fails if one did not converge."""
    folder = Path(tempfile.mkdtemp(prefix="chunksink-soak-"))
    try:
        rounds = Rounds(folder, beside, server, seed)
        with rounds.reading() as looking:
            while rounds.hits.total() < kills:
                rounds.next(looking)
                assert rounds.number < 3 * kills + 20, "most runs end before they are killed"
                if rounds.number % 20 == 0:
                    say(f"  {rounds.hits.total()} of {kills} kills")
        rounds.end()
        killed = ", ".join(f"{rounds.hits[name]} in a {what}" for name, what in COMMANDS.items() if rounds.hits[name])
        killed += f", of which {rounds.broken} broke Chroma's vectors" if rounds.broken else ""
        looks = " and ".join(f"{name} {number:,} times" for name, number in rounds.looks.items())
        return f"{killed}, {rounds.number} rounds, seed {seed}; a reader checked {looks} and missed no source"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
