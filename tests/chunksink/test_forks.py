"""A process forked after a search gets an error instead of waiting forever."""

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

import chunksink
from chunksink import live
from chunksink.embeddings import load
from chunksink.embeddings.errors import ModelUnavailable
from chunksink.embeddings.resolve import resolve_model
from chunksink.live import LiveSearch
from chunksink.rebuild.locks import writing
from chunksink.sinks.chroma import client
from tests.chunksink.shell import Shell
from tests.support.bus import source

SECONDS = 30
_load_encoder = load.load_encoder


@pytest.fixture(autouse=True)
def nobody_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_search_process", None)
    monkeypatch.setattr(client, "_process", None)


def in_child(work: Callable[[], object]) -> bool:
    """Whether the child process was refused."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)  # ends a child that hangs
        try:
            work()
        except RuntimeError as error:
            os._exit(9 if "this process was forked" in str(error) else 1)
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9)
    return code == 9


def test_child_after_a_vector_search_is_refused(shell: Shell) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    with chunksink.open() as index:
        assert index.search("cat").hits
        assert in_child(lambda: index.search("cat"))
        assert in_child(lambda: chunksink.open().search("cat"))
        assert index.search("cat").hits


@pytest.fixture
def loaded(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> list[chunksink.Index]:
    """An index that has synced and searched with the real model, whose threads do not survive a fork."""
    try:
        resolve_model(network=False)
    except ModelUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setattr(load, "load_encoder", _load_encoder)
    shell.commit("p1", source("a.md", "a cat"))
    index = chunksink.open()
    assert index.sync().status == "ok"
    assert index.search("cat").hits
    shell.commit("p1", source("a.md", "a dog"))
    return [index]


def test_child_that_writes_is_refused_before_it_locks(loaded: list[chunksink.Index]) -> None:
    [index] = loaded
    with writing(index.config.home_path):  # a child that locks first raises HomeLocked
        assert in_child(index.sync)
        assert in_child(index.rebuild)
    assert index.sync().status == "ok"
    assert index.search("dog").hits[0].text == "a dog"
    index.close()


def test_child_can_close_or_drop_an_index_with_a_model(loaded: list[chunksink.Index]) -> None:
    assert not in_child(loaded[0].close)
    assert not in_child(lambda: (loaded.clear(), gc.collect()))
    loaded[0].close()


def test_child_that_drops_an_index_closes_no_reader(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = quick_shell.folder / "closed"
    monkeypatch.setattr(LiveSearch, "close", lambda _live: closed.touch())
    quick_shell.synced(p1=[source("a.md", "a cat")])
    kept = [chunksink.open()]
    assert kept[0].search("cat").hits

    def let_go() -> bool:
        kept.clear()
        deadline = monotonic() + 1
        while not closed.exists() and monotonic() < deadline:
            sleep(0.02)
        return closed.exists()

    assert not in_child(let_go)
    assert not closed.exists()
    assert let_go()


def test_child_after_any_use_of_chroma_is_refused(shell: Shell) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    with chunksink.open() as index:
        assert index.verify().ok
    assert in_child(lambda: chunksink.open().search("cat"))
    assert in_child(lambda: chunksink.open().verify())
    assert index.verify().ok


def test_child_after_a_keyword_search_can_search(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    with chunksink.open() as index:
        assert index.search("cat").hits
        assert not in_child(lambda: chunksink.open().search("cat"))


def test_child_of_a_parent_without_a_search_can_search(quick_shell: Shell, tmp_path: Path) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    assert not in_child(lambda: chunksink.open(tmp_path).search("cat"))
