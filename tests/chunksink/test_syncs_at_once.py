"""Two syncs at once that would both build: the second one waits, and then finds the build complete."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest

import chunksink
from chunksink.rebuild.locks import RebuildLock
from chunksink.rebuild.report import RunReport
from chunksink.rebuild.state import State
from tests.chunksink.shell import Models, Shell
from tests.support.bus import source

TAKE = RebuildLock.__call__

pytestmark = pytest.mark.promise(9)

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


@pytest.fixture
def both_would_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sync waits with its build until the second one wants to build, too."""
    wanting: set[int] = set()
    both = Event()

    @contextmanager
    def watched(lock: RebuildLock) -> Iterator[None]:
        wanting.add(id(lock))
        if len(wanting) == 2:
            both.set()
        with TAKE(lock, 20):
            assert both.wait(20)
            yield

    monkeypatch.setattr(RebuildLock, "at_start", watched)


def sync_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, chunksink.open() as index:
        patched.setattr(RebuildLock, "at_start", lambda lock: TAKE(lock, 0))
        index.sync()


def sync_twice(*, rebuild: bool = False) -> list[RunReport]:
    def sync() -> RunReport:
        with chunksink.open() as index:
            return index.sync(rebuild=rebuild)

    with ThreadPoolExecutor(2) as threads:
        reports = [run.result(60) for run in [threads.submit(sync), threads.submit(sync)]]
    return sorted(reports, key=lambda report: report.written)


def generations(shell: Shell) -> int:
    with State.existing(shell.home) as state:
        return len(state.generations())


@pytest.mark.usefixtures("both_would_build")
def test_two_first_syncs_build_one_index(shell: Shell, models: Models) -> None:
    shell.commit("p1", A, B)
    second, first = sync_twice()
    assert (first.families.added, first.written) == (2, 3)
    assert (second.status, second.families.unchanged, second.written) == ("ok", 2, 0)
    assert (generations(shell), sorted(models.take_texts())) == (1, ["a boat", "a cat", "a mat"])


@pytest.mark.usefixtures("both_would_build")
def test_two_syncs_with_a_new_model_rebuild_once(shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.commit("p1", A, B)
    sync_alone(monkeypatch)
    monkeypatch.setenv("CHUNKSINK_MODEL", "other")
    models.take_texts()
    second, first = sync_twice(rebuild=True)
    assert (first.written, second.written, second.rebuild_due) == (3, 0, None)
    assert (generations(shell), sorted(models.take_texts())) == (2, ["a boat", "a cat", "a mat"])


@pytest.mark.usefixtures("both_would_build")
def test_two_syncs_with_a_new_sink_build_it_once(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_shell.commit("p1", A, B)
    sync_alone(monkeypatch)
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    second, first = sync_twice()
    assert (first.written, second.written) == (3, 0)
    assert (generations(quick_shell), quick_shell.texts("jsonl")) == (2, ["a boat", "a cat", "a mat"])
