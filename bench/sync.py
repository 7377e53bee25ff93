"""The cost of a sync after no change and after a small change: the time of a process, less its start-up."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from bench import corpora
from bench.harness import Case, Figure, Measurement, ratio
from bench.processes import NO_PEERS, PEERS, chunksink, peer, python

FEW = 10_000
CHANGED = 100  # families of ten chunks
APPENDED = 10  # chunks; a new source has as many
OWN = "in a partition of their own"
PLACES = {OWN: None, "in partitions of 1,000 chunks that are rewritten": None, "in the only partition": 1}
"""Where the changed chunks are, and the number of partitions; None for one partition for each 1,000 chunks."""
SINKS = ("fts,chroma", "fts,jsonl")
VALIDATE = "in the only partition, against `chunksink validate` of it"
EDITED = 10  # chunks, each of another source
EDITS = 5
LANGCHAIN = "fts,chroma, against LangChain's index(), which fills Chroma alone"
_MIN_SECONDS = 0.01  # seconds: a difference of two times is no more precise than this


def measure_unchanged(case: Measurement) -> None:
    """Start-up is measured as a sync of an index of one chunk. LangChain's index() with its record manager is timed in
    its process, with the chunks in memory."""
    size = case.number("chunks")
    buses = {name: corpora.shared_bus(case.shared, chunks) for name, chunks in (("start-up", 1), ("sync", size))}
    # Not copies of the shared homes: in a copy, a sync cannot rule out other writers, so it makes spot checks.
    homes = {name: corpora.built_home(case.scratch, bus, *corpora.SINKS) for name, bus in buses.items()}
    candidates: dict[str, Callable[[], float]] = {}
    for sinks in SINKS:
        for name, bus in buses.items():
            chunksink("sync", bus, homes[name], sinks=sinks)  # finish what the build has left to do
            candidates[f"{sinks}, {name}"] = partial(_sync, bus, homes[name], sinks)
    took = case.turns(candidates)
    for name, seconds in took.items():
        case.keep(f"{name}, seconds", seconds)
    beyond = {sinks: _beyond(took[f"{sinks}, sync"], took[f"{sinks}, start-up"]) for sinks in SINKS}
    for sinks in SINKS:
        case.found(f"{sinks}, beyond start-up", beyond[sinks])
    if not PEERS.exists():
        case.note(NO_PEERS)
        return
    records = case.scratch / "langchain"
    peer("langchain", "unchanged", buses["sync"], records)
    index = [peer("langchain", "unchanged", buses["sync"], records) for _ in range(2)]
    seconds = case.keep("LangChain index(), seconds", [ran.document["seconds"] for ran in index])
    # Medians, because the difference of two short times is too uncertain for each round.
    for sinks in SINKS:
        case.found(f"{sinks}, against LangChain's index()", median(seconds) / max(beyond[sinks], _MIN_SECONDS))


def measure_changed(case: Measurement) -> None:
    """The same number of sources changes in 10,000 chunks and in many. Unless they have their own partition, all
    partitions with such a source are rewritten and read completely."""
    sizes, rounds = (FEW, case.number("chunks")), case.number("rounds")
    for place, partitions in PLACES.items():
        took: dict[int, list[float]] = {}
        for chunks in sizes:
            shared = corpora.shared_bus(case.shared, chunks, partitions=partitions)
            bus = case.copy(shared)
            home = case.copy(corpora.built_home(case.shared, shared, "fts"))
            syncs, validations = [], []
            for version in range(1, rounds + 1):
                nothing = _sync(bus, home, "fts")
                _change(bus, chunks, place, version)
                if partitions == 1:
                    validations.append(chunksink("validate", bus, home).seconds)
                syncs.append((_sync(bus, home, "fts"), nothing))
            # beyond the time of a sync without changes just before
            took[chunks] = case.keep(f"{place}, {chunks:,} chunks, seconds", [whole - rest for whole, rest in syncs])
            if validations:
                case.keep(f"validate, {chunks:,} chunks, seconds", validations)
                case.found(VALIDATE, ratio([whole for whole, _ in syncs], validations))
            print(f"{case.case.name}: {place}, {chunks:,} chunks", file=sys.stderr)
        case.found(place, median(took[sizes[1]]) / median(took[FEW]))


def _change(bus: Path, chunks: int, place: str, version: int) -> None:
    if place == OWN:
        corpora.add_partition(bus, range(0, 1_000, 10), version)
    else:
        documents = chunks // corpora.FAMILY
        changed = range(0, documents, documents // CHANGED)
        partitions = len(list((bus / "canonical").glob("*.jsonl")))
        corpora.write_bus(bus, chunks, partitions=partitions, changed=changed, version=version)


def measure_edited(case: Measurement) -> None:
    """Each sync is timed in its process, whose model is loaded: from reading the chunks to the last write."""
    from chunksink.embeddings.resolve import resolve_model

    if not PEERS.exists():
        case.note(NO_PEERS)
        return
    size = case.number("chunks")
    texts, buses = corpora.even(corpora.prose(case.data), size), case.scratch / "buses"
    for version in range(EDITS + 2):
        edited = range(0, size, size // EDITED) if version else ()
        corpora.write_bus(buses / f"{version}", size, texts=texts, edited=edited, version=version)
    model = resolve_model(network=False).folder

    def ours() -> float:
        ran = python("bench.edits", buses, case.empty() / "home", "fts,chroma").document
        assert ran["computed"] == EDITS * EDITED, ran
        return float(ran["seconds"]) / EDITS

    def langchain() -> float:
        ran = peer("langchain", "edited", buses, case.empty(), "--model", model).document
        assert ran["chunks"] == EDITS * EDITED, ran
        return float(ran["seconds"]) / EDITS

    took = case.turns({"chunksink": ours, "langchain": langchain})
    for name, seconds in took.items():
        case.keep(f"{name}, seconds", seconds)
    case.found(LANGCHAIN, ratio(took["chunksink"], took["langchain"]))


def measure_append(case: Measurement) -> None:
    """Appending to the large source and adding a new one both rewrite their partition. All vectors are in the cache."""
    size, rounds, sinks = case.number("chunks"), case.number("rounds"), case.text("sinks")
    bus, home = case.scratch / "bus", case.scratch / "home"
    took: dict[str, list[float]] = {"first": [], "new": [], "appended": []}
    peaks = []
    for number in range(2 * rounds + 1):
        large, new = size + number // 2 * APPENDED, (number + 1) // 2
        corpora.write_growing(bus, {0: large} | dict.fromkeys(range(1, new + 1), APPENDED), number)
        python("bench.corpora", "cache", bus, home)
        ran = chunksink("sync", bus, home, sinks=sinks)
        took["first" if number == 0 else "new" if number % 2 else "appended"].append(ran.seconds)
        peaks.append(ran.peak_mb)
    for name, seconds in took.items():
        case.keep(f"{name}, seconds", seconds)
    case.found("appended, against as many in a new source", median(took["appended"]) / median(took["new"]))
    case.found("peak memory of the first sync", peaks[0])


def _sync(bus: Path, home: Path, sinks: str) -> float:
    return chunksink("sync", bus, home, sinks=sinks).seconds


def _beyond(whole: list[float], start: list[float]) -> float:
    return median(one - other for one, other in zip(whole, start, strict=True))


CASES = (
    Case(
        "sync-unchanged",
        "a sync without changes: its time after the start-up of the process, and against LangChain's index()",
        (
            *(Figure(f"{sinks}, against LangChain's index()", at_least=50) for sinks in SINKS),
            *(Figure(f"{sinks}, beyond start-up", "s", at_most=0.5) for sinks in SINKS),
        ),
        measure_unchanged,
        {"chunks": (20_000, 100_000), "rounds": (3, 9)},
    ),
    Case(
        "sync-changed",
        "a sync of 100 changed sources among many chunks, against the same among 10,000 chunks (fts)",
        (
            *(Figure(place, "of the baseline's time", at_most=1.3) for place in PLACES),
            Figure(VALIDATE, "of the baseline's time", at_most=2),
        ),
        measure_changed,
        {"chunks": (20_000, 100_000), "rounds": (3, 9)},
    ),
    Case(
        "sync-edited",
        "ten of many chunks edited, again and again in one process whose model is loaded",
        (Figure(LANGCHAIN, "of the baseline's time", at_most=1),),
        measure_edited,
        {"chunks": (1_000, 1_000), "rounds": (3, 9)},
    ),
    Case(
        "sync-append",
        "ten chunks appended to one large source",
        (
            Figure("appended, against as many in a new source", "of the baseline's time", at_most=3),
            Figure("peak memory of the first sync", "MB", at_most=250),
        ),
        measure_append,
        {"chunks": (10_000, 40_000), "rounds": (1, 3), "sinks": ("fts,jsonl",) * 2},
    ),
)
