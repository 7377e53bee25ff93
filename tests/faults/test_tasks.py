"""Meilisearch tasks that vanish, never end or refuse documents, in whole runs: accepted is not confirmed."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild.receipts import DeadLetter, Receipts
from chunksink.rebuild.state import State
from chunksink.sinks.contract import Sink
from chunksink.sinks.errors import NotConfirmed
from chunksink.sinks.meilisearch.sink import Limits
from tests.conftest import HEAVY
from tests.engines.servers import MeilisearchServer
from tests.faults.homes import (
    Engine,
    Faulty,
    assert_complete,
    assert_receipts_hold,
    faulty,
    meilisearch,
    oracles,
    sources,
)
from tests.support.bus import FEBRUARY, commit, projected, source
from tests.support.home import Home, PoisonedEncoder, held
from tests.support.local_engines import fts
from tests.support.meilisearch import Server, served
from tests.support.watched_sinks import Calls, Moment, watching

pytestmark = pytest.mark.promise(4)

TOO_LONG = "word " * 70_000  # Meilisearch counts 65,535 positions


@pytest.fixture(scope="module")
def engine(meilisearch_server: MeilisearchServer) -> Engine:
    """Slow answers are no fault in these tests, because faults are counted."""
    return meilisearch(meilisearch_server, timeout=30)


@pytest.fixture(scope="module")
def wanted(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, str]]:
    return oracles(tmp_path_factory.mktemp("oracles"), engine)


@pytest.fixture
def made(engine: Engine, tmp_path: Path) -> Iterator[Faulty]:
    with faulty(tmp_path, engine) as made:
        made.move()
        yield made


@pytest.fixture
def server(meilisearch_server: MeilisearchServer) -> Iterator[Server]:
    """The server, for changes by other programs."""
    yield from served(meilisearch_server)


def keep_busy(server: Server) -> None:
    """Every new task waits for a second or more."""
    name = f"busy{uuid.uuid4().hex[:10]}"
    some = [{"id": number, "text": f"word{number} {name} " * 20} for number in range(10_000)]
    server.http.post(f"/indexes/{name}/documents", json=some)


def cancel(server: Server, index: str) -> None:
    server.http.post(f"/tasks/cancel?statuses=enqueued&indexUids={index}")


def both(*wraps: Callable[[Sink], Sink]) -> Callable[[Sink], Sink]:
    def wrap(sink: Sink) -> Sink:
        for one in wraps:
            sink = one(sink)
        return sink

    return wrap


def at(call: str, act: Callable[[], object]) -> Callable[[Sink], Sink]:
    return watching("meilisearch", Moment(call, 1, act))


def index_of(engine: Engine) -> str:
    return str(engine.connect.keywords["index"])  # type: ignore[attr-defined]


def test_purged_tasks_are_written_again(made: Faulty, server: Server, wanted: tuple[dict[str, str], ...]) -> None:
    outcome = made.home.sync(wrap=at("flush", server.purge))
    assert [fault.call for fault in made.faults] == ["flush"]
    assert "cancelled or purged" in made.faults[0].error
    assert outcome.failed == {}
    assert made.digests() == wanted[1]


@pytest.mark.skipif(not HEAVY, reason="as purged tasks, which are tested always; CHUNKSINK_SOAK_HEAVY")
def test_cancelled_tasks_are_written_again(made: Faulty, server: Server, wanted: tuple[dict[str, str], ...]) -> None:
    busy, cancelled = (
        at("replace", lambda: keep_busy(server)),
        at("flush", lambda: cancel(server, index_of(made.engine))),
    )
    outcome = made.home.sync(wrap=both(busy, cancelled))
    assert "cancelled or purged" in made.faults[0].error
    assert outcome.failed == {}
    assert made.digests() == wanted[1]


def test_task_that_does_not_end_is_written_by_the_next_run(
    made: Faulty, server: Server, wanted: tuple[dict[str, str], ...]
) -> None:
    patient = made.engine
    made.engine = replace(patient, connect=partial(patient.connect, limits=Limits(patience=0.05)))
    server.wait_until_idle()
    error = made.failing(lambda: made.home.sync(wrap=at("replace", lambda: keep_busy(server))))
    assert isinstance(error, NotConfirmed)
    assert "finished none of chunksink's tasks" in str(error)
    made.engine = patient
    left_as_it_should_be(made)
    made.home.sync()
    assert made.digests() == wanted[1]


def left_as_it_should_be(made: Faulty) -> None:
    found = made.behind_it()
    assert_complete(found)
    assert_receipts_hold(made.receipts(), found)
    assert made.beside_it() == projected(*sources(made.version))


@pytest.mark.parametrize(
    ("poison", "reason"), [("poison", "vector"), (TOO_LONG, "positions")], ids=["vector", "positions"]
)
def test_one_poison_document_among_many_blocks_no_other(
    poison: str, reason: str, meilisearch_server: MeilisearchServer, tmp_path: Path
) -> None:
    def direct(_home: Path) -> Sink:
        return engine.connect(engine.url)

    engine = meilisearch(meilisearch_server, timeout=30)
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), fts, direct)
    home.encoder = PoisonedEncoder(dimension=8)
    sound = [source(f"docs/{number}.md", f"text {number}") for number in range(999 if HEAVY else 99)]
    bad = source("docs/bad.md", poison)
    write(home, *sound, bad)
    refused = home.rebuild().refused["meilisearch"]
    assert [one.id for one in refused] == [bad[0]["chunk_id"]]
    try:
        assert holds(home, direct) == projected(*sound)
        (letter,) = letters(home)
        assert letter.id == bad[0]["chunk_id"]
        assert reason in letter.reason
        assert home.verify().ok
        assert sent(home) == [], "what was refused is not sent again"
        sound[7] = source("docs/7.md", "edited", version="2", at=FEBRUARY)
        write(home, *sound, bad)
        assert len(sent(home)) == 1
        assert len(letters(home)) == 1
        corrected = source("docs/bad.md", "an antidote", version="2", at=FEBRUARY)
        write(home, *sound, corrected)
        assert len(sent(home)) == 1
        assert letters(home) == []
        assert holds(home, direct) == projected(*sound, corrected)
        assert home.verify(deep=True).ok
    finally:
        with closing(direct(tmp_path)) as sink:
            for build in sink.builds():
                sink.drop(build)


def write(home: Home, *families: list[dict[str, Any]]) -> None:
    commit(home.root, "p1", [record for records in families for record in records])


def sent(home: Home) -> list[str]:
    calls = Calls()
    home.sync(wrap=calls)
    return calls.sent("meilisearch")


def letters(home: Home) -> list[DeadLetter]:
    with State(home.folder) as state:
        return Receipts(state.db, state.live().builds["meilisearch"]).dead_letters()


def holds(home: Home, direct: Callable[[Path], Sink]) -> object:
    with closing(direct(home.folder)) as sink, closing(sink.open(home.live().builds["meilisearch"])) as build:
        return held(build)
