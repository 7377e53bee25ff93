"""The latency of single searches in Python, and the share of the nearest documents that they find."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import TYPE_CHECKING

import orjson

from bench import corpora
from bench.harness import Case, Figure, Measurement
from bench.processes import chunksink as run
from bench.processes import served

if TYPE_CHECKING:
    from chunksink.index import Index
    from chunksink.search.question import Mode

SPANS, MAX_IN_SEARCH = 100_000, 8
WARM = 30  # questions that are asked first and do not count
COMPUTED, KNOWN = "hybrid", "hybrid, vector known"
RECALL, LATENCY = "recall@100", "a search, vector known, p50"


def measure(case: Measurement) -> None:
    _measure(case, corpora.SINKS, ("fts", "chroma"))


def measure_postgres(case: Measurement) -> None:
    with served("postgres"):
        _measure(case, ("postgres",), ("postgres",))


def _measure(case: Measurement, built: Sequence[str], searched: Sequence[str]) -> None:
    """Each hybrid question is asked twice. The second time its vector is known."""
    import chunksink

    bus = corpora.shared_bus(case.shared, case.number("chunks"))
    home = corpora.built_home(case.shared, bus, *built)
    queries = questions(bus, case.number("queries") + WARM)
    with chunksink.open(chunks=str(bus), home=str(home), sinks=tuple(searched)) as index:
        hybrid = [(_milliseconds(index, one, "hybrid"), _milliseconds(index, one, "hybrid")) for one in queries]
        took: dict[str, list[float]] = {
            COMPUTED: [first for first, _ in hybrid],
            KNOWN: [second for _, second in hybrid],
            "keyword": [_milliseconds(index, one, "keyword") for one in queries],
        }
    for name, milliseconds in took.items():
        p50, p95 = median(case.keep(f"{name}, ms", milliseconds[WARM:])), quantiles(milliseconds[WARM:], n=20)[-1]
        case.keep(f"{name}, p95 ms", [p95])
        for figure, value in ((f"{name}, p50", p50), (f"{name}, p95", p95)):
            if figure in {known.name for known in case.case.figures}:
                case.found(figure, value)


def measure_recall(case: Measurement) -> None:
    """With real text and the real model: generated vectors have no near neighbours."""
    import chunksink

    size, sink, bus, home = case.number("chunks"), case.text("sink"), case.scratch / "bus", case.scratch / "home"
    corpora.write_bus(bus, size, texts=corpora.even(corpora.prose(case.data), size, 300))
    with served(sink):
        run("rebuild", bus, home, sinks=sink)
        with chunksink.open(chunks=str(bus), home=str(home), sinks=(sink,)) as index:
            found = index.verify(recall=True).sinks[sink].recall
            mode: Mode = "engine" if sink == "meilisearch" else "semantic"
            took = [_milliseconds(index, one, mode) for one in questions(bus, 100) for _ in range(2)]
    assert found is not None
    case.found(RECALL, found.mean)
    case.keep("recall@100 of the worst search", [found.worst])
    case.found(LATENCY, median(case.keep(f"{LATENCY}, ms", took[1::2])))


def measure_spans(case: Measurement) -> None:
    """The cost of OpenTelemetry spans that nobody collects."""
    import chunksink
    from chunksink.chunkbus.spans import span

    bus = corpora.shared_bus(case.shared, case.number("chunks"))
    home = corpora.built_home(case.shared, bus, "fts")
    with chunksink.open(chunks=str(bus), home=str(home), sinks=("fts",)) as index:
        search = median(_milliseconds(index, one, "keyword") for one in questions(bus, 100))
    started = perf_counter()
    for _ in range(SPANS):
        with span("leg keyword", sink="fts", depth=100):
            pass
    each = 1000 * (perf_counter() - started) / SPANS
    case.found("share of a keyword search's time", MAX_IN_SEARCH * each / search)


def _milliseconds(index: Index, text: str, mode: Mode) -> float:
    started = perf_counter()
    answer = index.search(text, mode=mode)
    took = perf_counter() - started
    assert not answer.unavailable, answer.unavailable
    return 1000 * took


def questions(bus: Path, count: int, fewest: int = 2, most: int = 6) -> list[str]:
    """Different queries. Each has random words of one chunk; the chunks are from all partitions."""
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
        "`Index.search` in fts and embedded Chroma, ten hits; the question's vector is computed or known",
        (Figure(f"{COMPUTED}, p50", "ms", at_most=100), Figure(f"{KNOWN}, p50", "ms", at_most=60)),
        measure,
        {"chunks": (20_000, 100_000), "queries": (100, 300)},
    ),
    Case(
        "search-postgres",
        "the same in PostgreSQL, which finds words and vectors",
        (
            Figure(f"{COMPUTED}, p50", "ms"),
            Figure(f"{COMPUTED}, p95", "ms", at_most=60),
            Figure(f"{KNOWN}, p50", "ms"),
        ),
        measure_postgres,
        {"chunks": (20_000, 100_000), "queries": (100, 300)},
    ),
    Case(
        "recall",
        "real text: the share of the hundred nearest chunks that a search finds, and the time of a search",
        (Figure(RECALL, "of them", at_least=0.995), Figure(LATENCY, "ms")),
        measure_recall,
        {"chunks": (2_000, 100_000), "sink": ("chroma", "chroma")},
    ),
    Case(
        "spans",
        "the cost of eight disabled OpenTelemetry spans; a search has fewer",
        (Figure("share of a keyword search's time", "of 1", at_most=0.01),),
        measure_spans,
        {"chunks": (1_000, 20_000)},
    ),
)
