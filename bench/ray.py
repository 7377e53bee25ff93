"""Vectors on Ray: the speed of two single-threaded workers compared with one.

The time is that of the embedding stage, from its first finished block to its last. By then Ray and the model are
started.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import corpora
from bench.harness import Case, Figure, Measurement, ratio

SCALING = "speed of two workers, against twice that of one"
_BLOCK_SECONDS = 1.0
"""Short, since at the end a worker waits for the other's block."""


class Clock:
    """Takes the place of a progress display. Records when the embedding stage finished how many chunks."""

    def __init__(self) -> None:
        self.done: list[tuple[float, int]] = []

    @contextmanager
    def __call__(self, name: str, _total: int | None, _unit: str) -> Iterator[Clock]:
        yield self if name.startswith("embed") else Clock()

    def advance(self, amount: int) -> None:
        if amount:
            self.done.append((time.monotonic(), amount))

    def rate(self) -> float:
        """Chunks a second, without the first block."""
        (began, _), *others = self.done
        return sum(amount for _, amount in others) / (others[-1][0] - began)


def measure(case: Measurement) -> None:
    from chunksink.compute import ray as engine

    engine.BLOCK_SECONDS = _BLOCK_SECONDS
    size, bus = case.number("chunks"), case.scratch / "bus"
    corpora.write_bus(bus, size, texts=corpora.even(corpora.prose(case.data), size))
    rates = case.turns({f"{count} workers": partial(_rate, case, bus, count) for count in (1, 2)})
    for name, values in rates.items():
        case.keep(f"{name}, texts a second", values)
    case.found(SCALING, ratio(rates["2 workers"], rates["1 workers"]) / 2)


def _rate(case: Measurement, bus: Path, workers: int) -> float:
    from chunksink.index import Index
    from chunksink.settings.load import load_config

    settings = {"chunks": bus, "home": case.empty(), "sinks": ["chroma"], "engine": "ray", "ray": {"workers": workers}}
    clock = Clock()
    with Index(load_config(settings, {}), stage=clock) as index:
        index.rebuild()
    return clock.rate()


CASES = (
    Case(
        "ray",
        "vectors computed by two workers on Ray against one, each with one thread",
        (Figure(SCALING, at_least=0.8),),
        measure,
        {"chunks": (400, 4000), "rounds": (1, 3)},
    ),
)
