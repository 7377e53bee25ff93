"""What of a plan is embedded: only what a sink with vectors lacks; and how long that took."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.embeddings.lazy import LazyEncoder
from chunksink.rebuild.forecast import forecast, plan_sync
from chunksink.rebuild.session import Silent
from chunksink.rebuild.state import State
from chunksink.sinks.memory import MemorySink
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import commit, projected, source
from tests.support.home import Home
from tests.support.local_engines import fts, memory
from tests.support.tampering import lose

SOURCES = [source(f"docs/{number}.md", f"text {number}", f"more {number}") for number in range(4)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts, memory())
    commit(home.root, "p1", [record for records in SOURCES for record in records])
    home.rebuild()
    home.encoder.asked.clear()
    return home


class Counting(Silent):
    def __init__(self) -> None:
        self.total = 0

    def advance(self, amount: int) -> object:
        self.total += amount
        return None


@pytest.mark.promise(2)
def test_each_sink_lacks_another_source_and_the_cache_is_gone(home: Home) -> None:
    for engine, lacks in (("fts", SOURCES[0]), ("memory", SOURCES[2])):
        lose(home, engine, projected(lacks))
    for file in home.folder.glob("vectors.db*"):
        file.unlink()
    bar = Counting()
    home.sync(scan=True, stage=lambda name, _total, _unit: nullcontext(bar if name == "index" else Silent()))
    assert sorted(home.encoder.asked) == ["more 2", "text 2"]
    assert bar.total == 4
    wanted = projected(*SOURCES)
    assert home.contents() == {"fts": wanted, "memory": wanted}


def test_a_live_build_without_vectors_is_planned_none_until_it_is_made_anew(tmp_path: Path) -> None:
    """As a Meilisearch that was set to hold none at first."""
    sink = MemorySink()
    sink.wants_vectors = False
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), lambda _home: sink)
    commit(home.root, "p1", SOURCES[0])
    home.rebuild()
    sink.wants_vectors = True
    commit(home.root, "p2", SOURCES[1])
    with home.session() as session, home.embedder() as embedder:
        told = forecast(session, plan_sync(session, session.state.live(), embedder), lambda _hashes: {})
    assert (told.families.added, told.missing, told.tokens) == (1, 0, 0)
    home.encoder.asked.clear()
    home.sync()
    assert home.encoder.asked == []


def test_loading_and_embedding_are_timed_apart(home: Home) -> None:
    loads = HashEncoder(dimension=8)

    def load() -> HashEncoder:
        time.sleep(0.3)
        return loads

    commit(home.root, "p2", source("docs/new.md", "日本語", "new"))
    home.encoder = LazyEncoder(loads.info, load)  # type: ignore[assignment]  # of the same vectors
    home.sync()
    with State.existing(home.folder) as state:
        took = {
            what: (amount, seconds)
            for what, amount, seconds in state.db.execute("select what, amount, seconds from pace")
        }
    assert took["model"][0] == 1
    assert 0.3 <= took["model"][1] < 3
    assert took["embedded"][0] == len("日本語new".encode())
    assert took["embedded"][1] < 0.3
