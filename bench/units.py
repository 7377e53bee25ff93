"""What a thousand chunks cost at each stage: the constants of `bench.scale_model`.

The unit is processor seconds, because other work on the machine affects them less. The time of a process without work
is subtracted.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

import psutil

from bench import corpora
from bench.harness import Case, Figure, Measurement
from bench.processes import Server, chunksink, served

WORDS = 150  # about 1,050 characters
SECONDS, BYTES = "s", "bytes"
SINKS = ("fts", "chroma", "meilisearch", "postgres")


def measure(case: Measurement) -> None:
    chunks = case.number("chunks")
    bus = corpora.shared_bus(case.shared, chunks, words=WORDS)
    one = corpora.shared_bus(case.shared, 1, words=WORDS)
    warm = corpora.warm_home(case.shared, bus, "fts", "chroma")
    thousands = chunks / 1000

    def beyond_start(command: str, home: Path, *arguments: str, **settings: str) -> float:
        idle = chunksink(command, one, case.empty(), *arguments, **{**settings, "sinks": "fts"}).cpu
        return (chunksink(command, bus, home, *arguments, **settings).cpu - idle) / thousands

    case.found("chunks, bytes", _size(bus) / thousands)
    case.found("validate", beyond_start("validate", case.scratch / "none", "--jobs", "1"))
    case.found("embed", 1000 * _encoding(case))
    case.found("vector cache, bytes", _size(warm / "vectors.db") / thousands)
    for sink in case.text("sinks").split(","):
        data = case.empty()
        with served(sink, data=data) as servers:
            server, home = servers.get(sink), case.copy(warm)
            before = _cpu(server)
            seconds = beyond_start("rebuild", home, sinks=sink)
            case.found(f"load {sink}", seconds + (_cpu(server) - before) / thousands)
            folder = data if server else home / sink
            folder = next(folder.rglob("base"), folder)  # PostgreSQL's tables without its log
            case.found(f"{sink}, bytes", _size(folder) / thousands)
            case.found("records of a home, bytes", _size(home / "state.db") / thousands)


def _encoding(case: Measurement) -> float:
    """Processor seconds for each text of 1,050 characters."""
    from chunksink.embeddings.load import load_encoder
    from chunksink.embeddings.settings import EncoderSettings

    encoder = load_encoder(EncoderSettings())
    case.note(f"vectors computed in {encoder.info.precision}")
    texts = corpora.even(corpora.prose(case.data), case.number("texts"))
    encoder.encode(texts[:16])
    started = process_time()
    encoder.encode(texts)
    return (process_time() - started) / len(texts)


def _size(place: Path) -> int:
    """The size of a file, or of all files in a folder, in bytes."""
    files = [place] if place.is_file() else [file for file in place.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def _cpu(server: Server | None) -> float:
    """Processor seconds of a server and its child processes so far."""
    if server is None:
        return 0.0
    process = psutil.Process(server.pid)
    times = process.cpu_times()
    total = float(times.user + times.system + times.children_user + times.children_system)
    for child in process.children(recursive=True):
        times = child.cpu_times()
        total += times.user + times.system
    return total


CASES = (
    Case(
        "units",
        "what a thousand chunks of 1,050 characters cost, in seconds of one processor and in bytes",
        (
            Figure("chunks, bytes", BYTES),
            Figure("validate", SECONDS),
            Figure("embed", SECONDS),
            Figure("vector cache, bytes", BYTES),
            Figure("records of a home, bytes", BYTES),
            *(Figure(f"load {sink}", SECONDS) for sink in SINKS),
            *(Figure(f"{sink}, bytes", BYTES) for sink in SINKS),
        ),
        measure,
        {"chunks": (10_000, 50_000), "texts": (256, 512), "sinks": (",".join(SINKS),) * 2},
    ),
)
