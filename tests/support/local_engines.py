"""The engines of a home's sinks, created for every run as every process does."""

from collections.abc import Callable
from pathlib import Path

from chunksink.sinks.chroma import EmbeddedChromaSink
from chunksink.sinks.contract import Sink
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.jsonl import JsonlSink
from tests.support.memory_sink import MemorySink


def fts(home: Path) -> Sink:
    return FtsSink(home / "fts")


class Eager(FtsSink):
    """Requests vectors and ignores them, for kills during embedding without the seconds that Chroma takes."""

    wants_vectors = True


def eager(home: Path) -> Sink:
    return Eager(home / "fts")


class EagerJsonl(JsonlSink):
    wants_vectors = True


def eager_jsonl(home: Path) -> Sink:
    return EagerJsonl(home / "jsonl")


def chroma(home: Path) -> Sink:
    return EmbeddedChromaSink(home / "chroma")


ENGINES: dict[str, Callable[[Path], Sink]] = {"fts": eager, "chroma": chroma}


def jsonl(home: Path) -> Sink:
    return JsonlSink(home / "jsonl")


def memory() -> Callable[[Path], Sink]:
    """One sink for the whole test. It keeps its builds in this process."""
    sink = MemorySink()
    return lambda _home: sink
