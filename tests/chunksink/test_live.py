"""A search that stays open follows what other processes write and which generation is live, without an error."""

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

import chunksink
import chunksink.live as live_module
from chunksink.command_line.exits import Exit
from chunksink.live import LiveSearch
from chunksink.rebuild.errors import NoGeneration
from chunksink.rebuild.locks import removing
from chunksink.rebuild.state import State
from chunksink.search.access import EVERYTHING, Access
from chunksink.search.answer import Answer
from chunksink.search.errors import InvalidQuestion
from chunksink.search.legs import Legs
from chunksink.search.query_vectors import QueryEncoder
from chunksink.search.question import Question
from chunksink.settings.config import Config
from chunksink.settings.load import load_config
from chunksink.sinks.chroma.reader import ChromaReader
from chunksink.sinks.reader import Hit
from chunksink.views import View, open_view
from tests.chunksink.shell import Shell
from tests.conftest import HEAVY
from tests.support.bus import parent_of, source
from tests.support.waiting import eventually

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


@pytest.fixture
def built(shell: Shell) -> Shell:
    return shell.begin("live", "sync", p1=[A])


@pytest.fixture
def live(built: Shell) -> Iterator[LiveSearch]:
    with closing(LiveSearch(Config())) as live:
        yield live


def texts(live: LiveSearch, query: str, mode: str = "hybrid") -> set[str]:
    answer = live.search(Question(query, mode=mode), EVERYTHING)  # type: ignore[arg-type]
    assert answer.unavailable == {}
    return {hit.text for hit in answer.hits}


def test_keyword_sink_supplies_the_families_of_vector_hits(live: LiveSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking Chroma for them takes ten times as long."""
    families: dict[str, str] = {}
    query = ChromaReader.query

    def watched(reader: ChromaReader, *arguments: Any) -> list[Hit]:
        hits = query(reader, *arguments)
        families.update(arguments[3]([hit.id for hit in hits]))
        return hits

    monkeypatch.setattr(ChromaReader, "query", watched)
    assert texts(live, "cat", "semantic") == {"a cat"}
    assert len(families) == 2
    assert set(families.values()) == {parent_of("a.md")}


def test_updated_at_changes_with_sync_and_rebuild(live: LiveSearch, built: Shell) -> None:
    times = [live.updated_at()]
    for command in ("sync", "rebuild"):
        built.commit("p2", source("b.md", f"a boat to {command}"))
        assert built(command).code == Exit.OK
        texts(live, "boat")
        times.append(live.updated_at())
    assert times == sorted(set(times))


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_next_question_sees_a_sync(built: Shell, live: LiveSearch, mode: str) -> None:
    assert "a boat" not in texts(live, "boat", mode)
    built.commit("p2", B)
    assert built("sync").code == Exit.OK
    assert "a boat" in texts(live, "boat", mode)
    built.commit("p2")
    assert built("sync").code == Exit.OK
    assert "a boat" not in texts(live, "boat", mode)


def test_flip_is_followed_and_old_builds_are_released(built: Shell, live: LiveSearch) -> None:
    old = built.live()
    assert texts(live, "cat")
    with State.existing(built.home) as state, removing(state, old) as alone:
        assert not alone  # a build is not removed while a reader uses it
    assert built("rebuild").code == Exit.OK
    assert live.generation() == built.live() != old
    assert texts(live, "cat")
    with State.existing(built.home) as state, removing(state, old) as alone:
        assert alone
    assert built("rollback").code == Exit.OK
    assert live.generation() == built.live()


@pytest.mark.promise(9)
def test_searches_during_syncs_and_rebuilds_have_no_errors(built: Shell, live: LiveSearch) -> None:
    """No question fails, and every answer has the documents that never change."""
    stop = threading.Event()
    wrong: list[object] = []
    answered = [0]

    def ask() -> None:
        while not stop.is_set():
            try:
                answer = live.search(Question("cat"), EVERYTHING)
            except Exception as error:
                wrong.append(error)
                return
            answered[0] += 1
            if answer.unavailable or not answer.hits or answer.hits[0].source_uri != "a.md":
                wrong.append(answer)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(3 if HEAVY else 1):
            built.commit("p2", source(f"{number}.md", f"a boat {number}"))
            assert built("sync").code == Exit.OK
            assert built("rebuild").code == Exit.OK
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert answered[0] > 10


def test_recreated_home_is_opened(built: Shell, live: LiveSearch) -> None:
    assert texts(live, "cat")
    shutil.rmtree(built.home)
    with pytest.raises(NoGeneration, match="chunksink sync"):
        live.search(Question("cat"), EVERYTHING)
    built.commit("p1", B)
    assert built("sync").code == Exit.OK
    assert texts(live, "boat") == {"a boat"}


def test_flip_after_a_failed_opening_is_followed_by_the_next_question(
    built: Shell, live: LiveSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One question fails because the disk is full. The next one sees the new generation."""
    old = live.generation()
    assert built("rebuild").code == Exit.OK

    def full(*_arguments: object) -> View:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space"):
        patched.setattr(live_module, "open_view", full)
        live.search(Question("cat"), EVERYTHING)
    assert live.generation() == built.live() != old


def test_replaced_state_file_is_watched(built: Shell, live: LiveSearch) -> None:
    """A restored copy of the file has the same content until the next flip."""
    old = live.generation()
    file = built.home / "state.db"
    shutil.copy(file, copy := file.with_name("copy.db"))
    copy.replace(file)
    assert live.generation() == old
    assert built("rebuild").code == Exit.OK
    assert live.generation() == built.live() != old


def test_unreadable_state_file_counts_as_changed_until_it_is_readable(
    built: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_given: object, **_named: object) -> None:
        raise sqlite3.OperationalError("unable to open database file")

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", refused)
        watch = live_module._HomeWatch(Config())
        assert (watch.has_changed(), watch.has_changed()) == (True, True)
    with closing(watch):
        assert (watch.has_changed(), watch.has_changed()) == (True, False)


def test_flip_noticed_by_several_threads_is_opened_once(
    built: Shell, live: LiveSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    together = threading.Barrier(4)

    def counted(config: Config, queries: QueryEncoder, needed: None) -> View:
        view = open_view(config, queries, needed)
        opened.append(view)
        return view

    def moved_for_each(legs: Legs, question: Question, access: Access) -> Answer:
        if opened:
            return answer
        together.wait(20)
        return replace(answer, moved=True)

    answer = live.search(Question("cat"), EVERYTHING)
    monkeypatch.setattr(live_module, "open_view", counted)
    monkeypatch.setattr(live_module, "search", moved_for_each)
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(live.search, Question("cat"), EVERYTHING) for _ in range(4)]:
            assert not future.result(20).moved
    assert len(opened) == 1


def test_closed_search_raises_and_opens_nothing(built: Shell, live: LiveSearch) -> None:
    assert texts(live, "cat")
    live.close()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="closed"):
            live.search(Question("cat"), EVERYTHING)
    assert live._view.newest is None


def test_first_questions_at_once_open_one_search(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    other = threading.Event()

    class Slow(LiveSearch):
        def __init__(self, config: Config) -> None:
            made.append(self)
            other.wait(0.2 if len(made) == 1 else 0)
            super().__init__(config)

    monkeypatch.setattr(live_module, "LiveSearch", Slow)
    with chunksink.open() as index, ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(index.search, "cat", mode="keyword") for _ in range(4)]:
            assert future.result(20)
    assert len(made) == 1


def test_restored_leg_is_opened_again_during_searches(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks for changes after each question do not postpone the next attempt to open the leg."""
    monkeypatch.setattr("chunksink.live._RETRY_SECONDS", 0.3)
    build = built.home / "chroma" / built.live().builds["chroma"]
    aside = build.with_name("aside")
    build.rename(aside)
    with closing(LiveSearch(Config(), every_seconds=0.01)) as live:
        assert list(live.search(Question("cat"), EVERYTHING).unavailable) == ["semantic"]
        aside.rename(build)
        eventually(lambda: not live.search(Question("cat"), EVERYTHING).unavailable)


def test_missing_build_that_a_sync_has_made_again_is_opened_at_once(built: Shell) -> None:
    shutil.rmtree(built.home / "chroma" / built.live().builds["chroma"])
    with closing(LiveSearch(Config())) as live:
        assert list(live.search(Question("cat"), EVERYTHING).unavailable) == ["semantic"]
        assert built("sync").code == Exit.OK
        assert live.search(Question("cat"), EVERYTHING).unavailable == {}


def test_query_is_embedded_without_the_engine(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with chunksink.open() as index:
        vector = index.embed_query("a cat")
    shutil.rmtree(built.home / "chroma")
    with chunksink.open() as index:
        assert (index.embed_query("a cat") == vector).all()


def test_query_is_not_embedded_if_the_index_has_no_vectors(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[A])
    with chunksink.open() as index, pytest.raises(InvalidQuestion):
        index.embed_query("a cat")


def test_index_search_and_get_chunk_return_hits(built: Shell) -> None:
    with chunksink.open() as index:
        answer = index.search("cat", mode="keyword", filters={"schema_version": "chunks.v1"}, context=1)
        (hit,) = answer
        assert (len(answer), answer[0]) == (1, hit)
        assert (hit.text, hit.source_uri, hit.ranks) == ("a cat", "a.md", {"keyword": 1})
        assert [one.text for one in hit.after] == ["a mat"]
        found = index.get_chunk(hit.chunk_id)
        assert found is not None
        assert found.document.text == "a cat"
        assert index.get_chunk("nowhere") is None
        by_position = index.search("cat", 1, "keyword", None, None, False, 1)
        assert [(hit.text, len(hit.after)) for hit in by_position] == [("a cat", 1)]
    with chunksink.open(tenants="required") as index:
        assert list(index.search("cat")) == []
        assert index.get_chunk(hit.chunk_id) is None


@pytest.mark.usefixtures("public_index")
def test_engine_mode_without_vectors_in_the_engine_is_an_error(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another sink of the index has vectors."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch,chroma")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_VECTORS", "false")
    shell.synced(p1=[A])
    with closing(LiveSearch(load_config({}))) as live:
        assert "a cat" in texts(live, "cat")
        with pytest.raises(InvalidQuestion, match="hybrid or keyword or semantic"):
            live.search(Question("cat", mode="engine"), EVERYTHING)


def test_configuration_error_of_a_sink_makes_its_leg_unavailable(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINK_CHROMA_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("CHUNKSINK_SINK_CHROMA_TOKEN_VARIABLE", "NOT_SET")
    with closing(LiveSearch(load_config({}))) as live:
        answer = live.search(Question("cat"), EVERYTHING)
    assert answer.hits
    assert "NOT_SET" in answer.unavailable["semantic"]
