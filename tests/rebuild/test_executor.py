"""Engines and encoder work concurrently, one failure ends the run, and only what a sink lacks is embedded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.lazy import LazyEncoder
from chunksink.rebuild import executor
from chunksink.rebuild.forecast import forecast, plan_sync
from chunksink.rebuild.state import State
from chunksink.settings.errors import ConfigError
from chunksink.sinks.contract import RefusedDocument, Sink
from chunksink.sinks.errors import Refused
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import commit, projected, source
from tests.support.home import Home
from tests.support.local_engines import fts, memory
from tests.support.memory_sink import MemoryBuild, MemorySink
from tests.support.tampering import lose
from tests.support.watched_sinks import Moment, watching

PATIENCE = 20.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(executor, "EMBEDDED_AT_ONCE", 1)
    monkeypatch.setattr(executor, "WRITTEN_AT_ONCE", 1)
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), fts, memory())
    commit(home.root, "p1", [record for number in range(3) for record in source(f"docs/{number}.md", f"cat {number}")])
    return home


def at_flush(**acts: Callable[[], object]) -> Callable[[Sink], Any]:
    """Each named sink does this at its first flush."""

    def wrap(sink: Sink) -> Any:
        for name, act in acts.items():
            if sink.name == name:
                return watching(name, Moment("flush", 1, act))(sink)
        return sink

    return wrap


def test_both_engines_write_at_the_same_time(home: Home) -> None:
    together = threading.Barrier(2, timeout=PATIENCE)  # breaks where one waits for the end of the other
    home.rebuild(wrap=at_flush(fts=together.wait, memory=together.wait))


def test_encoder_continues_while_engines_write(home: Home) -> None:
    second = threading.Event()

    class Signalling(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            if "cat 1" in texts:
                second.set()
            return super().encode(texts)

    home.encoder = Signalling(dimension=8)
    continued: list[bool] = []
    home.rebuild(wrap=at_flush(fts=lambda: continued.append(second.wait(PATIENCE))))
    assert continued == [True]


def test_idle_engines_do_not_wait_until_a_batch_is_full_and_batches_grow(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "WRITTEN_AT_ONCE", 1000)
    commit(home.root, "p1", [one for number in range(100) for one in source(f"docs/{number}.md", f"cat {number}")])
    embedded_before_flush: list[int] = []

    class Slow(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            time.sleep(0.02 if len(embedded_before_flush) > 1 else 0.1)
            return super().encode(texts)

    def flush(build: MemoryBuild) -> list[RefusedDocument]:
        embedded_before_flush.append(len(home.encoder.asked))
        return finish(build)

    finish = MemoryBuild.flush
    monkeypatch.setattr(MemoryBuild, "flush", flush)
    home.encoder = Slow(dimension=8)
    home.rebuild()
    assert embedded_before_flush[1] < 100
    assert len(embedded_before_flush) <= 20, "each batch has at least a fourth of the documents before it"


def opened_early(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[MemoryBuild]:
    """Adds to the builds a `warm_up` that calls `act`. Returns the builds whose `warm_up` was called."""
    opened: list[MemoryBuild] = []

    def warm_up(build: MemoryBuild) -> None:
        opened.append(build)
        act()

    monkeypatch.setattr(MemoryBuild, "warm_up", warm_up, raising=False)
    return opened


def test_builds_open_while_the_first_batch_is_embedded(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2, timeout=PATIENCE)
    met: list[int] = []

    class Meeting(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            if not met:
                met.append(together.wait())
            return super().encode(texts)

    home.encoder = Meeting(dimension=8)
    opened = opened_early(monkeypatch, together.wait)
    home.rebuild()
    assert (len(met), len(opened)) == (1, 1)


def test_only_builds_that_get_documents_are_opened_early(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.rebuild()
    opened = opened_early(monkeypatch, lambda: None)
    home.sync()
    lose(home, "fts", projected(source("docs/0.md", "cat 0")))
    home.sync(scan=True)
    assert opened == []


@pytest.mark.parametrize("error", [Refused("not now"), ConfigError("not now")])
def test_build_that_cannot_be_opened_early_is_written_nevertheless(
    home: Home, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse() -> None:
        raise error

    home.rebuild()
    commit(home.root, "p2", source("docs/new.md", "another cat"))
    opened = opened_early(monkeypatch, refuse)
    assert home.sync().failed == {}
    assert len(opened) == 1
    assert all("another cat" in [one.text for one in documents] for documents in home.contents().values())


def test_refusing_engine_ends_the_run_and_the_other_keeps_its_receipts(home: Home) -> None:
    home.rebuild()
    live = home.live()

    def refuse() -> None:
        raise Refused("not today")

    with pytest.raises(Refused, match="not today"):
        home.rebuild(wrap=at_flush(memory=refuse))
    assert home.live() == live
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("sink")] == []
    home.rebuild()
    assert sorted(document.text for document in home.contents()["fts"]) == ["cat 0", "cat 1", "cat 2"]


def test_progress_advances_while_one_batch_is_embedded(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "EMBEDDED_AT_ONCE", 512)
    home.encoder.at_once = 1
    reported: list[tuple[int, int]] = []

    class Recording:
        def advance(self, amount: int) -> None:
            reported.append((amount, len(home.encoder.asked)))

    home.rebuild(stage=lambda name, _total, _unit: nullcontext(Recording() if name == "index" else None))
    assert sum(amount for amount, _ in reported) == 3
    assert reported[0][1] < len(home.encoder.asked) == 3


def test_progress_counts_every_document(home: Home) -> None:
    stages: list[tuple[str, int | None, str]] = []
    reported: dict[str, list[int]] = {}

    class Recording:
        def __init__(self, name: str) -> None:
            self.name = name

        def advance(self, amount: int) -> None:
            reported.setdefault(self.name, []).append(amount)

    def stage(name: str, total: int | None, unit: str) -> AbstractContextManager[Any]:
        stages.append((name, total, unit))
        return nullcontext(Recording(name))

    home.rebuild(stage=stage)
    size = home.root.size_of("p1")
    assert stages[0] == ("validate", size, "B")
    assert [stage for stage in stages if stage[2] != "B"] == [
        ("index", 3, "chunks"),
        ("verify fts", 3, "chunks"),
        ("verify memory", 3, "chunks"),
    ]
    assert (sum(reported["validate"]), list(filter(None, reported["index"]))) == (size, [1, 1, 1])


# -- embedding: only documents that a sink with vectors lacks, and the time that it takes

SOURCES = [source(f"docs/{number}.md", f"text {number}", f"more {number}") for number in range(4)]


@pytest.fixture
def stocked(home: Home) -> Home:
    commit(home.root, "p1", [record for records in SOURCES for record in records])
    home.rebuild()
    home.encoder.asked.clear()
    return home


class Counting:
    def __init__(self) -> None:
        self.total = 0

    def advance(self, amount: int) -> object:
        self.total += amount
        return None


def test_sinks_that_lack_different_sources_are_filled_without_a_cache(stocked: Home) -> None:
    for engine, lacks in (("fts", SOURCES[0]), ("memory", SOURCES[2])):
        lose(stocked, engine, projected(lacks))
    for file in stocked.folder.glob("vectors.db*"):
        file.unlink()
    bar = Counting()
    stocked.sync(scan=True, stage=lambda name, _total, _unit: nullcontext(bar if name == "index" else None))
    assert sorted(stocked.encoder.asked) == ["more 2", "text 2"]
    assert bar.total == 4
    wanted = projected(*SOURCES)
    assert stocked.contents() == {"fts": wanted, "memory": wanted}


def test_live_build_without_vectors_gets_none_until_rebuilt(tmp_path: Path) -> None:
    """For example a Meilisearch that was configured without vectors at first."""
    sink = MemorySink()
    sink.wants_vectors = False
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), lambda _home: sink)
    commit(home.root, "p1", SOURCES[0])
    home.rebuild()
    sink.wants_vectors = True
    commit(home.root, "p2", SOURCES[1])
    with home.session() as session, home.embedder() as embedder:
        found = forecast(session, plan_sync(session, session.state.live(), embedder), embedder.info)
    assert (found.families.added, found.missing, found.tokens) == (1, 0, 0)
    home.encoder.asked.clear()
    home.sync()
    assert home.encoder.asked == []


def test_loading_and_embedding_are_timed_separately(stocked: Home) -> None:
    loads = HashEncoder(dimension=8)

    def load() -> HashEncoder:
        time.sleep(0.3)
        return loads

    commit(stocked.root, "p2", source("docs/new.md", "日本語", "new"))
    stocked.encoder = LazyEncoder(loads.info, load)  # type: ignore[assignment]  # of the same vectors
    stocked.sync()
    with State.existing(stocked.folder) as state:
        took = {
            what: (amount, seconds)
            for what, amount, seconds in state.db.execute("select what, amount, seconds from pace")
        }
    assert took["model"][0] == 1
    assert 0.3 <= took["model"][1] < 3
    assert took["embedded"][0] == len("日本語new".encode())
    assert took["embedded"][1] < 0.3
