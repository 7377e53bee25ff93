"""A bus root, and homes with each kind of sink."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chunkbus.layout import BusRoot
from sinks.chroma import ChromaSink
from sinks.fts import FtsSink
from sinks.memory import MemorySink
from sinks.sink import Sink
from tests.rebuild.support import CatalogProbe, Home


@pytest.fixture
def root(tmp_path: Path) -> BusRoot:
    return BusRoot(tmp_path / "chunks")


@pytest.fixture
def probe(tmp_path: Path, root: BusRoot) -> CatalogProbe:
    return CatalogProbe(tmp_path / "home", root)


def fts(home: Path) -> Sink:
    return FtsSink(home / "fts")


def chroma(home: Path) -> Sink:
    return ChromaSink.embedded(home / "chroma")


def memory() -> Callable[[Path], Sink]:
    """One sink for the whole test: it holds its builds in this process."""
    sink = MemorySink()
    return lambda _home: sink


@pytest.fixture
def home(tmp_path: Path, root: BusRoot) -> Home:
    """Vectors in memory beside a real keyword engine: quick, and one sink of each kind."""
    return Home(tmp_path / "home", root, fts, memory())


@pytest.fixture
def embedded_home(tmp_path: Path, root: BusRoot) -> Home:
    """The embedded default."""
    return Home(tmp_path / "home", root, fts, chroma)
