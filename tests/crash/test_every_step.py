"""A run killed before or after a changing step converges with the next plain run.

`make soak` kills both before and after each step; else every fifth step is tested, either before or after it. The
expected result is a clean rebuild into an empty home, read back from each sink through its own interface.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import signal
import time
from dataclasses import replace
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.exits import Exit
from chunksink.rebuild import executor
from chunksink.rebuild.errors import HomeLocked
from chunksink.rebuild.locks import WriterLock, held_locks
from chunksink.sinks.contract import Build, Sink
from tests.conftest import HEAVY, ROOT
from tests.crash import dying
from tests.crash.homes import (
    ADDED,
    EDITED,
    OLD,
    committed_texts,
    copied,
    found_by_readers,
    home_in,
    move_on,
    prepare,
    rewrite_one,
    settle,
    undo,
    withdraw,
)
from tests.crash.steps import NO_STEPS, SINK_METHODS, STEPS, Step
from tests.support.bus import parent_of
from tests.support.forking import FORKING, wait_until_stopped
from tests.support.home import Home, each, sinks_with

pytestmark = [pytest.mark.promise(2), pytest.mark.promise(3)]

KILLS = [
    pytest.param(step, when, id=f"{step}-{when}")
    for number, step in enumerate(STEPS)
    for when in (("before", "after") if HEAVY else (("before", "after")[number % 2],))
    if HEAVY or number % 5 == 4
]
COMES_AGAIN = ("confirm", "flush", "flip")
"""Steps that a run which was killed at them comes to again."""
TAKES_AWAY = ("forget", "lost", "recovered")
"""Scenarios in which somebody means a source or a build to go."""
READERS_WAIT = 2.0  # seconds at most
READING = {"marker", "count", "of_families", "scan", "close", "open", "builds"}
TEXTS = {str(record["text"]) for records in (*EDITED, ADDED) for record in records}


def run_until(home: Home, step: Step, when: str, call: int | None = None, act: str = "dies") -> int:
    return ended(begin(home, step, when, call, act))


def begin(home: Home, step: Step, when: str, call: int | None, act: str) -> BaseProcess:
    number = step.call if call is None else call
    where = (step.scenario, step.module, step.owner, step.method, number, when, act)
    process = FORKING.Process(target=dying.main, args=(str(home.folder), str(home.root.path), *where))
    process.start()
    return process


def ended(process: BaseProcess) -> int:
    process.join(120)
    assert process.exitcode is not None
    return process.exitcode


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Copies of a home, made once for each scenario, and a bus that has changed since."""

    @cache
    def before(scenario: str) -> Home:
        home = prepare(tmp_path_factory.mktemp("prepared"))
        move_on(home, scenario)
        return home

    return lambda scenario: copied(before(scenario), tmp_path_factory.mktemp("copy") / "of")


@pytest.fixture(scope="module")
def prepared_before(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Copies of a home whose bus has not changed yet."""
    home = prepare(tmp_path_factory.mktemp("prepared"))
    return lambda: copied(home, tmp_path_factory.mktemp("copy") / "of")


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "EMBEDDED_AT_ONCE", 2)
    monkeypatch.setattr(executor, "WRITTEN_AT_ONCE", 2)


def digests(home: Home) -> dict[str, str]:
    verified = home.verify()
    assert verified.ok, verified
    return {name: sink.digest for name, sink in verified.sinks.items()}


_oracles: dict[str, dict[str, str]] = {}


def oracle(root: FolderRoot, folder: Path) -> dict[str, str]:
    """The content after a rebuild into an empty home. It is computed once for a bus with the same bytes."""
    files = sorted(path for path in root.path.rglob("*") if path.is_file())
    content = hashlib.sha256(repr([(path.relative_to(root.path), path.read_bytes()) for path in files]).encode())
    if content.hexdigest() not in _oracles:
        fresh = home_in(folder, root)
        fresh.rebuild()
        _oracles[content.hexdigest()] = digests(fresh)
    return _oracles[content.hexdigest()]


def readers_find_every_source(home: Home) -> None:
    """Every source is complete in one version, and sources that do not change are present."""
    found = found_by_readers(home)
    for number in (0, 1, 2):
        old = {str(record["text"]) for record in OLD[number]}
        new = {str(record["text"]) for record in EDITED[number]}
        assert found.get(parent_of(f"docs/{number}.md")) in (old, new, old | new)
    assert found[parent_of("docs/3.md")] == {"okapi 3", "lemur 3"}


@pytest.mark.parametrize(("step", "when"), KILLS)
def test_run_when_killed_at_a_step_converges(
    step: Step, when: str, prepared: Any, tmp_path: Path, small_batches: None
) -> None:
    home: Home = prepared(step.scenario)
    assert run_until(home, step, when) == -signal.SIGKILL
    if step.scenario not in TAKES_AWAY:
        readers_find_every_source(home)
    committed = committed_texts(home, TEXTS)
    settle(home, step.scenario)
    if step.method in ("intend", "confirm", "replace", "flush"):
        withdraw(home)  # documents of the killed run that must be removed
    home.sync()
    assert not set(home.encoder.asked) & committed, "a committed vector was computed again"
    assert digests(home) == oracle(home.root, tmp_path / "fresh")
    again = home.sync()
    assert (again.families.added, again.families.changed, again.families.removed) == (0, 0, 0)
    assert sum(each(again, "written").values()) == 0
    # A rebuild also removes all remains: only the live and the previous generation are left.
    home.rebuild()
    assert digests(home) == oracle(home.root, tmp_path / "fresh again")
    assert {name: len(builds) for name, builds in home.builds().items()} == {"fts": 2, "jsonl": 2}


R = "rebuild"
# The third batch is the first with new texts. They are embedded while the second batch is written.
REBUILT = (
    (Step("chunksink.rebuild.catalog_rows", "", "_values", R, 3), "before"),
    (Step("chunksink.sinks.fts.sink", "FtsSink", "create", R), "after"),
    (Step("chunksink.sinks.fts.sink", "FtsBuild", "replace", R, 3), "before"),
    (Step("chunksink.sinks.fts.sink", "FtsBuild", "flush", R, 3), "before"),
    (Step("chunksink.sinks.fts.sink", "FtsBuild", "flush", R, 3), "after"),
    (Step("chunksink.rebuild.rebuild", "Rebuild", "_verify", R), "before"),
    (Step("chunksink.sinks.fts.sink", "FtsSink", "flip", R), "before"),
    (Step("chunksink.rebuild.state", "State", "flip", R), "before"),
    (Step("chunksink.rebuild.state", "State", "flip", R), "after"),
)


@pytest.mark.promise(5)
@pytest.mark.parametrize(("step", "when"), REBUILT, ids=str)
def test_rebuild_when_killed_is_continued_by_the_next_run(step: Step, when: str, prepared: Any, tmp_path: Path) -> None:
    """Readers use the previous generation until the pointer moves; a filled build not yet shown is continued."""
    home: Home = prepared(R)
    before, texts = home.live(), found_by_readers(home)
    assert run_until(home, step, when) == -signal.SIGKILL
    shown = (step.method, when) == ("flip", "after")
    assert (home.live() != before) == shown
    assert shown or found_by_readers(home) == texts
    committed, begun = committed_texts(home, TEXTS), home.unfinished()
    assert bool(committed) == (step.method not in ("_values", "create"))
    report = home.rebuild()
    assert (report.generation == begun) == (step.method not in ("_values", "flip"))
    assert sorted(home.encoder.asked) == sorted(TEXTS - committed)
    assert digests(home) == oracle(home.root, tmp_path / "fresh")
    for engine in ("fts", "jsonl"):
        assert len(home.builds()[engine]) == 2, "live and previous, and nothing that the dead run left"


@pytest.mark.parametrize(
    ("step", "when"), [kill for kill in KILLS if kill.values[0].method in ("confirm", "replace", "flush")]
)
def test_edit_when_killed_and_then_undone_converges(
    step: Step, when: str, tmp_path: Path, prepared_before: Any, small_batches: None
) -> None:
    """Receipts and counts describe the old version, the engine may have the new one: only intents show it."""
    home: Home = prepared_before()
    rewrite_one(home)
    assert run_until(home, replace(step, scenario="sync", call=1), when) == -signal.SIGKILL
    undo(home)
    home.sync()
    assert digests(home) == oracle(home.root, tmp_path / "fresh")


@pytest.mark.parametrize(
    "step", [step for step in STEPS if HEAVY or (step.owner != "FtsBuild" and step.method in COMES_AGAIN)], ids=str
)
def test_recovery_when_killed_again_converges(step: Step, prepared: Any, tmp_path: Path, small_batches: None) -> None:
    """Killed at the same step again, when the next run reaches it, and then in a repair."""
    home: Home = prepared(step.scenario)
    assert run_until(home, step, "after") == -signal.SIGKILL
    settle(home, step.scenario)
    again = step if step.method in COMES_AGAIN else replace(step, scenario="sync")
    assert run_until(home, again, "after") in (-signal.SIGKILL, *([] if step.method in COMES_AGAIN else [0]))
    if step.scenario not in TAKES_AWAY:
        readers_find_every_source(home)
    repair = Step("chunksink.rebuild.receipts", "Receipts", "confirm", "repair")
    assert run_until(home, repair, "before") in (-signal.SIGKILL, 0)
    home.sync()
    assert digests(home) == oracle(home.root, tmp_path / "fresh")


STOPS = KILLS if HEAVY else [kill for kill in KILLS if kill.values[0].method == "confirm"][:1]
SHORTAGES = [
    pytest.param(*kill.values, act, id=f"{kill.id}-{act}")
    for kill in (KILLS if HEAVY else STOPS)
    for act in dying.SHORTAGES
]


@pytest.mark.promise(9)
@pytest.mark.parametrize("then", [signal.SIGCONT, signal.SIGKILL])
@pytest.mark.parametrize(("step", "when"), STOPS)
def test_run_when_stopped_at_a_step_keeps_readers_served(
    step: Step, when: str, then: signal.Signals, prepared: Any, tmp_path: Path, small_batches: None
) -> None:
    """As in a paused container or a suspended laptop: readers get answers, and another writer exits. Then the run is
    continued or killed."""
    home: Home = prepared(step.scenario)
    process = begin(home, step, when, None, "stops")
    assert process.pid is not None
    wait_until_stopped(process)
    started = time.monotonic()
    if step.scenario not in TAKES_AWAY:
        readers_find_every_source(home)
    if "writer" in held_locks(home.folder):
        with pytest.raises(HomeLocked), WriterLock(home.folder)(0):
            pass
    assert time.monotonic() - started < READERS_WAIT
    os.kill(process.pid, then)
    assert ended(process) == (0 if then == signal.SIGCONT else -signal.SIGKILL)
    settle(home, step.scenario)
    home.sync()
    assert digests(home) == oracle(home.root, tmp_path / "fresh")


@pytest.mark.parametrize(("step", "when", "act"), SHORTAGES)
def test_run_when_short_of_a_resource_is_reported_and_recovers(
    step: Step, when: str, act: str, prepared: Any, tmp_path: Path, small_batches: None
) -> None:
    """The run reports the shortage, nothing is reported as broken, and the next plain run converges.

    Python's thread pools can lose a task if memory is short, and then wait for it forever. In that case the process is
    killed.
    """
    home: Home = prepared(step.scenario)
    process = begin(home, step, when, None, act)
    if act == "no memory":
        process.join(10)
        process.kill()
    assert ended(process) in (Exit.OK, Exit.ENGINE, *([-signal.SIGKILL] if act == "no memory" else []))
    if step.scenario not in TAKES_AWAY:
        readers_find_every_source(home)
    settle(home, step.scenario)
    outcome = home.sync()
    assert outcome.failed == {}
    assert step.scenario in TAKES_AWAY or sinks_with(outcome, "made_again") == []
    assert digests(home) == oracle(home.root, tmp_path / "fresh")


def test_run_when_not_killed_ends_normally(prepared: Any) -> None:
    """Otherwise the tests above would not prove that they kill at the right steps."""
    for scenario in sorted({step.scenario for step in STEPS})[:: 1 if HEAVY else 6]:
        step = next(step for step in STEPS if step.scenario == scenario)
        assert run_until(prepared(scenario), step, "before", call=0) == 0, scenario


def test_every_transaction_of_rebuild_is_a_tested_step() -> None:
    """Every function of rebuild/ that opens a transaction is a step or is listed as an exception with its reason."""
    known = {(Path(*step.module.split(".")).name + ".py", step.method) for step in STEPS}
    missing = [
        place
        for file in sorted((ROOT / "rebuild").glob("*.py"))
        for place, method in _writing(file)
        if (file.name, method) not in known and place not in NO_STEPS
    ]
    assert missing == []
    offered = {name for protocol in (Build, Sink) for name, _ in inspect.getmembers(protocol, inspect.isfunction)}
    assert {name for name in offered if not name.startswith("_")} - READING == set(SINK_METHODS)


def _writing(file: Path) -> list[tuple[str, str]]:
    writes = ("insert ", "update ", "delete ", "replace ", "vacuum")
    found = []
    for function in ast.walk(ast.parse(file.read_text())):
        if isinstance(function, ast.FunctionDef):
            texts = [node.value for node in ast.walk(function) if isinstance(node, ast.Constant)]
            names = {getattr(node, "attr", getattr(node, "id", "")) for node in ast.walk(function)}
            atomic = bool(names & {"atomic", "write_transaction"})
            if atomic or any(isinstance(text, str) and text.lower().startswith(writes) for text in texts):
                found.append((f"{file.name}:{function.name}", function.name))
    return found
