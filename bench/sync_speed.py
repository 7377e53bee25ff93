"""What a sync costs when nothing changed, and when little did.

    python -m bench.sync_speed [--chunks 100000] [--rounds 3] [--folder FOLDER] [--sinks fts fts,jsonl fts,chroma]
                               [--only nothing little spread within]

Nothing changed: whole processes `chunksink sync` take turns with the same on an index of one chunk, which is its
start-up, and with LangChain's `index()` with its record manager on the same chunks. `index()` is timed from inside,
with the chunks in memory and a store that does nothing, by default in batches of 100 and in batches of 1,000.

Little changed: the same 100 families of 10 chunks are written as a new partition to a bus of as many chunks and to one
of 10,000. Timed from the first look at the bus to the last receipt; what the engines and the encoder take of it is
told apart. Spread: as many families in the partitions where they were, all of which are written anew, and so read as a
whole. Within: the same where all chunks are one partition. Prints Markdown tables. FOLDER keeps what is prepared for
the next time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from bench import chunks, homes
from bench.processes import ours, peer
from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild.flip import live_generation
from chunksink.rebuild.locks import writing
from chunksink.rebuild.sync import sync_live

SMALL = 10_000
PARTITION = 1_000
CHANGED = range(0, 1_000, 10)  # documents: of the first partition, which both buses have
BATCHES = (100, 1000)
_PAIRS = 3  # of whole processes in a round


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--sinks", nargs="+", default=["fts", "fts,jsonl", "fts,chroma"])
    parser.add_argument("--only", nargs="+", default=["nothing", "little", "spread", "within"], help="what is changed")
    parser.add_argument("--change", nargs=3, metavar=("BUS", "HOME", "SINKS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.change:
        bus, home, sinks = options.change
        print(orjson.dumps(changed(Path(bus), Path(home), sinks.split(","))).decode())
        return
    with _folder(options.folder) as folder:
        sinks = list(dict.fromkeys(name for some in options.sinks for name in some.split(",")))
        for size in (1, SMALL, options.chunks):
            prepare(_bus(folder, size), _home(folder, size), size, max(1, size // PARTITION), sinks)
        if "nothing" in options.only:
            nothing_changed(folder, options.chunks, options.sinks, options.rounds)
        if "little" in options.only:
            little_changed(folder, options.chunks, options.sinks[-1], options.rounds)
        for what, where in (("spread", "many-partitions"), ("within", "one-partition")):
            if what not in options.only:
                continue
            inside = folder / where
            inside.mkdir(exist_ok=True)
            for size in (SMALL, options.chunks):
                parts = _partitions(what, size)
                prepare(_bus(inside, size), _home(inside, size), size, parts, options.sinks[-1].split(","))
            little_changed(inside, options.chunks, options.sinks[-1], options.rounds, what)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def prepare(bus: Path, home: Path, size: int, partitions: int, sinks: list[str]) -> None:
    if not bus.exists():
        chunks.make_bus(bus, size, partitions=partitions)
    if not home.exists():
        print(f"building the index of {size:,} chunks", file=sys.stderr)
        draft = home.with_suffix(".draft")
        ours("bench.homes", bus, draft, "--sinks", *sinks)
        draft.rename(home)


def _partitions(what: str, size: int) -> int:
    return size // PARTITION if what == "spread" else 1


def _bus(folder: Path, size: int) -> Path:
    return folder / f"bus-{size}"


def _home(folder: Path, size: int) -> Path:
    return folder / f"home-{size}"


def nothing_changed(folder: Path, size: int, sinks: list[str], rounds: int) -> None:
    def sync(of: int, names: str) -> float:
        where = ["--chunks", str(_bus(folder, of)), "--home", str(_home(folder, of))]
        return ours("chunksink", "sync", *where, environment={"CHUNKSINK_SINKS": names}).seconds

    def index(batch: int) -> float | None:
        ran = peer("langchain", "unchanged", _bus(folder, size), folder / f"langchain-{size}", "--batch", str(batch))
        return None if ran is None else float(ran.told["seconds"])

    for of in (1, size):  # what was built before is settled now, and the record manager filled
        sync(of, ",".join(sinks))
    index(BATCHES[-1])
    took: dict[str, list[tuple[float, float]]] = {names: [] for names in sinks}
    theirs: dict[int, list[float | None]] = {batch: [] for batch in BATCHES}
    for number in range(rounds):
        for names in sinks:
            took[names] += [(sync(1, names), sync(size, names)) for _ in range(_PAIRS)]
        for batch in BATCHES:
            theirs[batch].append(index(batch))
        print(f"nothing changed: round {number + 1} of {rounds}", file=sys.stderr)
    print(f"\n{size:,} chunks in {size // PARTITION} partitions, nothing changed, rounds: {rounds}\n")
    print("| sinks | start-up | sync | beyond start-up | LangChain `index()`, batches of 100 | of 1,000 |")
    print("|---|---|---|---|---|---|")
    for names, pairs in took.items():
        start, whole = (statistics.median(pair[place] for pair in pairs) for place in (0, 1))
        beyond = statistics.median(whole - start for start, whole in pairs)
        cells = [_against(theirs[batch], beyond) for batch in BATCHES]
        print(f"| {names} | {start:.2f} s | {whole:.2f} s | {beyond:.2f} s | {' | '.join(cells)} |", flush=True)


def _against(theirs: list[float | None], beyond: float) -> str:
    """A ratio of medians: a difference of two short times is too uncertain to divide by in each round."""
    known = [seconds for seconds in theirs if seconds is not None]
    if not known:
        return "not installed"
    return f"{statistics.median(known):.1f} s, {statistics.median(known) / max(beyond, 0.01):.0f} times"


def little_changed(folder: Path, size: int, sinks: str, rounds: int, what: str = "little") -> None:
    took: list[tuple[dict[str, float], dict[str, float]]] = []
    count = folder / "rounds"
    done = int(count.read_text()) if count.exists() else 0
    for number in range(rounds):
        pair = []
        for of in (SMALL, size):
            root = BusRoot(_bus(folder, of))
            if what == "little":
                chunks.change(root, CHANGED, version=done + number + 1)
            else:
                spread = range(0, of // chunks.FAMILY, of // chunks.FAMILY // len(CHANGED))
                chunks.change_within(root, of, spread, done + number + 1, _partitions(what, of))
            pair.append(ours("bench.sync_speed", "--change", root.path, _home(folder, of), sinks).told)
        took.append((pair[0], pair[1]))
        count.write_text(str(done + number + 1))
        print(f"little changed: round {number + 1} of {rounds}", file=sys.stderr)
    where = {"little": "in a partition of their own", "spread": "in all partitions", "within": "in the only partition"}
    print(f"\nThe same {len(CHANGED)} families of {chunks.FAMILY} chunks, {where[what]}, {sinks}, rounds: {rounds}\n")
    print(f"| | in 10,000 chunks | in {size:,} | ratio, median of rounds |\n|---|---|---|---|")
    for part in ("our own time", "engines and encoder", "all"):
        small, large = (statistics.median(pair[place][part] for pair in took) for place in (0, 1))
        ratio = statistics.median(large[part] / small[part] for small, large in took)
        print(f"| {part} | {small:.3f} s | {large:.3f} s | {ratio:.2f} |", flush=True)


def changed(bus: Path, home: Path, sinks: list[str]) -> dict[str, float]:
    """One sync in this process, and what of it was spent in engines and encoder."""
    clock = Clock()
    with homes.opened(bus, home, sinks) as work:
        work = replace(work, sinks={name: Timed(sink, clock) for name, sink in work.sinks.items()})
        started = time.perf_counter()
        with writing(home), homes.embedder(home, Timed(homes.Drawn(), clock)) as embedder:
            outcome = sync_live(work, live_generation(work) or work.state.live(), embedder)
        seconds = time.perf_counter() - started
    assert outcome.families.changed == len(CHANGED), outcome.families
    elsewhere = clock.seconds()
    return {"our own time": seconds - elsewhere, "engines and encoder": elsewhere, "all": seconds}


class Clock:
    """Spans of time, of any thread; what overlaps counts once."""

    def __init__(self) -> None:
        self.spans: list[tuple[float, float]] = []

    def seconds(self) -> float:
        total, until = 0.0, 0.0
        for start, end in sorted(self.spans):
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total


class Timed:
    """Anything, with the time that its calls take; the builds that a sink opens likewise."""

    def __init__(self, thing: Any, clock: Clock) -> None:
        self._thing = thing
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._thing, name)
        return self._timed(found, name in ("open", "create")) if callable(found) else found

    def _timed(self, call: Callable[..., Any], opens: bool) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                given = call(*arguments, **named)
            finally:
                self._clock.spans.append((started, time.perf_counter()))
            return Timed(given, self._clock) if opens else given

        return timed


if __name__ == "__main__":
    main()
