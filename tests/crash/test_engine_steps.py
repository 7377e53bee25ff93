"""Killed before or after every call that changes a real Chroma or a real Meilisearch: the plain next run converges.

`make test` takes the calls after which engines are known to be half done, `make soak` all of them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from chunkbus.chunk import Record
from chunkbus.layout import BusRoot
from rebuild import execute
from sinks.meilisearch import MeilisearchSink
from sinks.sink import Sink
from tests.conformance.test_meilisearch import SETTINGS
from tests.conftest import HEAVY
from tests.crash.steps import SINK_METHODS
from tests.rebuild.engines import chroma, fts
from tests.rebuild.support import FEBRUARY, Home, commit, projected, source
from tests.rebuild.wrapping import Moment, watching

pytestmark = pytest.mark.promise(2)

SCENARIOS = SINK_METHODS | {"sign": "sync"}
KILLS = [(method, when) for method in SCENARIOS for when in ("before", "after")]
QUICK = [("replace", "after"), ("flip", "after"), ("drop", "after")]

OLD = [source(f"docs/{number}.md", f"okapi {number}", f"lemur {number}") for number in range(6)]
EDITED = [source(f"docs/{number}.md", f"tapir {number}", version="2", at=FEBRUARY) for number in range(3)]
NEW = [*EDITED, OLD[3], OLD[4], source("docs/new.md", "brand new", "zebra", at=FEBRUARY)]

FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([__name__, "chromadb"])


def home_in(folder: Path, engine: str, server: tuple[str, str, str]) -> Home:
    url, key, index = server
    makers: dict[str, Callable[[Path], Sink]] = {
        "fts": fts,
        "chroma": chroma,
        "meilisearch": lambda _home: MeilisearchSink(url, key, settings=SETTINGS, index=index),
    }
    home = Home(folder / "home", BusRoot(folder / "chunks"), fts, makers[engine])
    home.open_sink = lambda name: makers[name](home.folder)  # type: ignore[method-assign]
    return home


def run(home: Home, method: str, moment: Moment | None = None, engine: str = "") -> None:
    execute.EMBEDDED_AT_ONCE = execute.WRITTEN_AT_ONCE = 2
    wrap = watching(engine, moment) if moment else lambda sink: sink
    if SCENARIOS[method] == "rebuild":
        home.rebuild(wrap=wrap)
    else:
        home.sync(wrap=wrap)


def run_and_die(folder: Path, engine: str, server: tuple[str, str, str], method: str, when: str) -> None:
    """In a process of its own."""
    moment = Moment(method, 1, lambda: os.kill(os.getpid(), signal.SIGKILL), after=when == "after")
    run(home_in(folder, engine, server), method, moment, engine)


def commit_all(home: Home, sources: list[list[Record]], at: str) -> None:
    commit(home.root, "p1", [record for records in sources for record in records], at=at)


@pytest.mark.parametrize("engine", ["chroma", "meilisearch"])
@pytest.mark.parametrize(("method", "when"), KILLS if HEAVY else QUICK)
def test_killed_at_a_call(
    method: str, when: str, engine: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ("", "", "")
    if engine == "meilisearch":
        real = request.getfixturevalue("meilisearch_server")
        server = (real.url, real.key, f"e{uuid.uuid4().hex[:10]}")
    for name in ("EMBEDDED_AT_ONCE", "WRITTEN_AT_ONCE"):  # `run` sets them
        monkeypatch.setattr(execute, name, getattr(execute, name))
    home = home_in(tmp_path, engine, server)
    commit_all(home, OLD, at="2026-01-01T00:00:00Z")
    home.rebuild()
    home.rebuild()
    commit_all(home, NEW, at=FEBRUARY)
    process = FORKING.Process(target=run_and_die, args=(tmp_path, engine, server, method, when))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL, "it came by that call"
    run(home, method)
    for name in ("fts", engine):
        assert home.contents()[name] == projected(*NEW), name
    assert home.verify(deep=True).ok
    assert {name: len(builds) for name, builds in home.builds().items()} == {"fts": 2, engine: 2}
    again = home.sync()
    assert (again.chunks_written, again.chunks_deleted, again.scanned) == (0, 0, [])
