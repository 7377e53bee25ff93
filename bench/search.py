"""How long a search takes, from Python, one after the other."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import TYPE_CHECKING

import orjson

from bench import corpora
from bench.harness import Case, Figure, Measurement

if TYPE_CHECKING:
    from chunksink.index import Index
    from chunksink.search.question import Mode

WARM = 30  # questions before those that count
COMPUTED, KNOWN = "hybrid, p50", "hybrid, vector known, p50"


def measure(case: Measurement) -> None:
    """Each hybrid question is asked twice: the second time its vector is known."""
    import chunksink

    bus = corpora.shared_bus(case.shared, case.number("chunks"))
    home = corpora.built_home(case.shared, bus, *corpora.SINKS)
    asked = questions(bus, case.number("queries") + WARM)
    with chunksink.open(chunks=str(bus), home=str(home), sinks=("fts", "chroma")) as index:
        hybrid = [(_milliseconds(index, one, "hybrid"), _milliseconds(index, one, "hybrid")) for one in asked]
        took: dict[str, list[float]] = {
            COMPUTED: [first for first, _ in hybrid],
            KNOWN: [second for _, second in hybrid],
            "semantic, vector known": [_milliseconds(index, one, "semantic") for one in asked],
            "keyword": [_milliseconds(index, one, "keyword") for one in asked],
        }
    for name, milliseconds in took.items():
        case.keep(f"{name}, p95 ms", [quantiles(milliseconds[WARM:], n=20)[-1]])
        p50 = median(case.keep(f"{name}, ms", milliseconds[WARM:]))
        if name in (COMPUTED, KNOWN):
            case.found(name, p50)


def _milliseconds(index: Index, text: str, mode: Mode) -> float:
    started = perf_counter()
    answer = index.search(text, mode=mode)
    took = perf_counter() - started
    assert not answer.unavailable, answer.unavailable
    return 1000 * took


def questions(bus: Path, count: int, fewest: int = 2, most: int = 6) -> list[str]:
    """Distinct words, each found in one chunk, from chunks all over the bus."""
    chance = random.Random(5)
    files = sorted((bus / "canonical").glob("*.jsonl"))
    texts = [orjson.loads(line)["text"].split() for file in files for line in islice(file.open("rb"), 20)]
    found: dict[str, None] = {}
    while len(found) < count:
        found[" ".join(chance.sample(chance.choice(texts), chance.randint(fewest, most)))] = None
    return list(found)


CASES = (
    Case(
        "search",
        "`Index.search` of fts and embedded Chroma, ten hits, vector of the question computed",
        (Figure(COMPUTED, "ms", at_most=100), Figure(KNOWN, "ms", at_most=60)),
        measure,
        {"chunks": (20_000, 100_000), "queries": (100, 300)},
    ),
)
