"""With a real Chroma or Meilisearch, a run killed before or after any changing call or step converges with the next
plain run.

`make test` takes the calls after which engines are known to be half done, and the steps between an engine's answer and
our record of it. `make soak` takes all of them.
"""

from __future__ import annotations

import os
import shutil
import signal
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.exits import Exit
from chunksink.rebuild import executor
from chunksink.sinks.contract import Sink
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.postgres import PostgresOptions
from chunksink.sinks.postgres.sink import PostgresSink
from tests.conftest import HEAVY
from tests.crash import dying
from tests.crash.steps import OURS, SINK_METHODS, Step
from tests.support.bus import FEBRUARY, commit, projected, source
from tests.support.forking import FORKING, wait_until_stopped
from tests.support.home import Home, Wrap, sinks_with
from tests.support.local_engines import chroma, fts
from tests.support.meilisearch import SETTINGS
from tests.support.watched_sinks import Moment, watching

pytestmark = pytest.mark.promise(2)

SCENARIOS = SINK_METHODS | {"sign": "sync"}
KILLS = [(method, when) for method in SCENARIOS for when in ("before", "after")]
ENGINES = ("chroma", "meilisearch", "postgres")
QUICK = [
    ("chroma", "replace", "after"),
    ("meilisearch", "replace", "after"),
    ("meilisearch", "flip", "after"),
    ("postgres", "replace", "after"),
]
STEPS = [
    (step, when)
    for step in OURS
    for when in ("before", "after")
    if step.scenario in ("sync", "rebuild", "repair", "projection") and step.owner != "FtsBuild"
]
WARM_UP = ("chroma", Step("chunksink.sinks.chroma.build", "ChromaBuild", "warm_up", "sync"), "after")
QUICK_STEPS = [
    ("meilisearch", Step("chunksink.rebuild.receipts", "Receipts", "confirm", "sync"), "before"),
    ("chroma", Step("chunksink.rebuild.state", "State", "flip", "rebuild"), "before"),
    WARM_UP,
]

OLD = [source(f"docs/{number}.md", f"okapi {number}", f"lemur {number}") for number in range(6)]
EDITED = [source(f"docs/{number}.md", f"tapir {number}", version="2", at=FEBRUARY) for number in range(3)]
NEW = [*EDITED, OLD[3], OLD[4], source("docs/new.md", "brand new", "zebra", at=FEBRUARY)]

NO_SERVER = ("", "", "")


def home_in(folder: Path, engine: str, server: tuple[str, str, str]) -> Home:
    url, key, index = server
    makers: dict[str, Callable[[Path], Sink]] = {
        "fts": fts,
        "chroma": chroma,
        "meilisearch": lambda _home: MeilisearchSink(url, key, settings=SETTINGS, index=index),
        "postgres": lambda _home: PostgresSink(PostgresOptions(url, schema=index)),
    }
    return Home(folder / "home", FolderRoot(folder / "chunks"), fts, makers[engine], engines=makers)


def run(home: Home, scenario: str, wrap: Wrap | None = None) -> None:
    executor.EMBEDDED_AT_ONCE = executor.WRITTEN_AT_ONCE = 2
    if wrap is not None:
        getattr(home, scenario)(wrap=wrap)
    else:
        dying.SCENARIOS[scenario](home)


def run_and_act(
    folder: Path, engine: str, server: tuple[str, str, str], method: str, when: str, act: str = "dies"
) -> None:
    """Runs in its own process."""
    moment = Moment(method, 1, dying.ACTS[act], after=when == "after")
    with dying.ending_as_a_command():
        run(home_in(folder, engine, server), SCENARIOS[method], watching(engine, moment))


def run_and_die_at(folder: Path, engine: str, server: tuple[str, str, str], step: Step, when: str) -> None:
    """Runs in its own process."""
    dying.act_at(step.module, step.owner, step.method, step.call, when)
    run(home_in(folder, engine, server), step.scenario)


def commit_all(home: Home, sources: list[list[Record]], at: str, partition: str = "p1") -> None:
    commit(home.root, partition, [record for records in sources for record in records], at=at)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(engine: str, request: pytest.FixtureRequest) -> tuple[str, str, str]:
    if engine not in ("meilisearch", "postgres"):
        return NO_SERVER
    real = request.getfixturevalue(f"{engine}_server")
    return real.url, real.key, f"e{uuid.uuid4().hex[:10]}"


def prepare(home: Home) -> None:
    """Two generations, and a bus that has changed since: a partition was rewritten, another one is new."""
    commit_all(home, OLD, at="2026-01-01T00:00:00Z")
    home.rebuild()
    home.rebuild()
    commit_all(home, NEW[:-1], at=FEBRUARY)
    commit_all(home, NEW[-1:], at=FEBRUARY, partition="p2")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For an engine whose data are in the home, a copy of a prepared home."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare(home_in(folder, "chroma", NO_SERVER))
    return folder


@pytest.fixture
def home(
    engine: str,
    server: tuple[str, str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Home:
    for name in ("EMBEDDED_AT_ONCE", "WRITTEN_AT_ONCE"):  # set by `run`
        monkeypatch.setattr(executor, name, getattr(executor, name))
    home = home_in(tmp_path, engine, server)
    if engine == "chroma":
        shutil.copytree(request.getfixturevalue("prepared"), tmp_path, symlinks=True, dirs_exist_ok=True)
    else:
        prepare(home)
    return home


@pytest.mark.parametrize(
    ("engine", "method", "when"),
    [(engine, *kill) for engine in ENGINES for kill in KILLS] if HEAVY else QUICK,
    indirect=["engine"],
)
def test_run_when_killed_at_an_engine_call_converges(
    method: str, when: str, home: Home, engine: str, server: tuple[str, str, str], tmp_path: Path
) -> None:
    is_killed(run_and_act, tmp_path, engine, server, method, when)
    converges(home, engine, SCENARIOS[method])


@pytest.mark.parametrize(
    ("engine", "step", "when"),
    [*((engine, *step) for engine in ENGINES for step in STEPS), WARM_UP] if HEAVY else QUICK_STEPS,
    ids=str,
    indirect=["engine"],
)
def test_run_when_killed_at_a_step_converges(
    step: Step, when: str, home: Home, engine: str, server: tuple[str, str, str], tmp_path: Path
) -> None:
    is_killed(run_and_die_at, tmp_path, engine, server, step, when)
    converges(home, engine, step.scenario)


LONG_FORM = pytest.mark.parametrize(("method", "when"), KILLS if HEAVY else [])


@LONG_FORM
def test_run_when_stopped_at_an_engine_call_ends_as_usual(
    method: str, when: str, home: Home, engine: str, server: tuple[str, str, str], tmp_path: Path
) -> None:
    """When it is continued, it ends as usual."""
    process = FORKING.Process(target=run_and_act, args=(tmp_path, engine, server, method, when, "stops"))
    process.start()
    wait_until_stopped(process)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGCONT)
    process.join(120)
    assert process.exitcode == Exit.OK
    converges(home, engine, SCENARIOS[method])


@LONG_FORM
@pytest.mark.parametrize("act", dying.SHORTAGES if HEAVY else [])
def test_run_when_short_of_a_resource_at_an_engine_call_recovers(
    method: str, when: str, act: str, home: Home, engine: str, server: tuple[str, str, str], tmp_path: Path
) -> None:
    process = FORKING.Process(target=run_and_act, args=(tmp_path, engine, server, method, when, act))
    process.start()
    process.join(30 if act == "no memory" else 120)
    process.kill()
    process.join()
    # A library that gets no memory may end its process or wait forever.
    without_memory = [-signal.SIGABRT, -signal.SIGKILL] if act == "no memory" else []
    assert process.exitcode in (Exit.OK, Exit.ENGINE, *without_memory)
    converges(home, engine, SCENARIOS[method])


def is_killed(target: Callable[..., None], *arguments: object) -> None:
    process = FORKING.Process(target=target, args=arguments)
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL, "it came by that"


def converges(home: Home, engine: str, scenario: str) -> None:
    run(home, scenario)
    for name in ("fts", engine):
        assert home.contents()[name] == projected(*NEW), name
    assert home.verify(deep=True).ok
    assert {name: len(builds) for name, builds in home.builds().items()} == {"fts": 2, engine: 2}
    again = home.sync()
    assert (again.chunks_written, again.chunks_deleted, sinks_with(again, "scanned")) == (0, 0, [])
