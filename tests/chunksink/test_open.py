"""`chunksink.open()`: the runs of the command line for programs, with reports and exceptions and nothing printed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

import chunksink
from chunksink.index import Index
from chunksink.live import LiveSearch
from chunksink.rebuild import rebuild
from chunksink.rebuild.errors import (
    Brake,
    InvalidBus,
    NoGeneration,
    NotMissing,
    OtherPlan,
    RebuildError,
    UnknownSource,
)
from chunksink.settings.config import Config
from chunksink.sinks.chroma import EmbeddedChromaSink
from tests.chunksink.shell import Shell
from tests.support.bus import source

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


@pytest.fixture
def silent(quick_shell: Shell, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Chunks of two sources; calls are made without the command line."""
    quick_shell.commit("p1", A)
    quick_shell.commit("p2", B)
    capsys.readouterr()
    return quick_shell


@pytest.fixture(autouse=True)
def nothing_printed(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    assert tuple(capsys.readouterr()) == ("", "")


def test_an_index_that_nobody_has_lets_go_of_its_readers(silent: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[LiveSearch] = []
    done = Event()

    def close(live: LiveSearch, really: Callable[[LiveSearch], None] = LiveSearch.close) -> None:
        really(live)
        closed.append(live)
        done.set()

    monkeypatch.setattr(LiveSearch, "close", close)
    index = chunksink.open()
    index.sync()
    assert len(index.search("cat")) == 1
    index.close()
    assert len(index.search("boat")) == 1, "it opens them again"
    done.clear()
    del index
    assert done.wait(30)
    assert len(set(map(id, closed))) == len(closed) == 2


@pytest.mark.parametrize("named", ["folder", "file", "path"])
def test_a_folder_or_a_file_from_elsewhere(
    named: str, silent: Shell, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in the file is taken from where the file lies."""
    file = silent.folder / "chunksink.toml"
    file.write_text('home = "own"\nsinks = ["jsonl"]\n')
    monkeypatch.delenv("CHUNKSINK_SINKS")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    place = {"folder": str(silent.folder), "file": str(file), "path": file}[named]
    with chunksink.open(place) as index:
        assert list(index.sync().sinks) == ["jsonl"]
    assert (silent.folder / "own" / "state.db").exists()
    assert list(Path().iterdir()) == []


def test_a_config(silent: Shell) -> None:
    config = Config(home="own", sinks=("jsonl",))
    with chunksink.open(config) as index:
        assert index.config is config
        assert list(index.sync().sinks) == ["jsonl"]


def test_one_sink_is_named_without_a_list(silent: Shell) -> None:
    with chunksink.open() as index:
        index.sync()
        assert set(index.rebuild(sinks="fts").sinks) == {"fts"}


def test_every_run(silent: Shell) -> None:
    with chunksink.open() as index:
        index.sync()
        silent.commit("p3", source("c.md", "a cow"))
        plan = index.plan()
        assert (plan.families.added, plan.chunks, plan.added) == (1, 1, ("c.md",))
        assert not index.verify().ok
        assert index.repair().families.added == 1
        assert index.verify(deep=True).ok
        first = index.sync().generation
        rebuilt = index.rebuild()
        assert (rebuilt.status, rebuilt.written) == ("ok", 4)
        assert index.rollback().id == first != rebuilt.generation
        assert index.sync().families.unchanged == 3
        silent.remove("p3")
        assert (index.sync().status, index.sync().missing_partitions) == ("held", ("p3",))
        assert index.retire_partition("p3").removed == 1
        assert index.sync().families.removed == 1
        forgotten = index.forget("a.md")
        assert forgotten.still_in == ("p1",)


def cut_off(shell: Shell, _index: Index) -> None:
    shell.cut_off("p1")


def brake(shell: Shell, index: Index) -> None:
    shell.commit("p1", *(source(f"{number}.md", f"text {number}") for number in range(20)))
    index.sync()
    shell.commit("p1")


def leave(_shell: Shell, _index: Index) -> None:
    return None


@pytest.mark.parametrize(
    ("prepare", "call", "error"),
    [
        (cut_off, lambda index: index.sync(strict=True), InvalidBus),
        (cut_off, lambda index: index.rebuild(), InvalidBus),
        (brake, lambda index: index.sync(), Brake),
        (leave, lambda index: index.sync(plan="0" * 64), OtherPlan),
        (leave, lambda index: index.rollback(), NoGeneration),
        (leave, lambda index: index.retire_partition("p1"), NotMissing),
        (leave, lambda index: index.forget("nobody.md"), UnknownSource),
    ],
)
def test_what_goes_wrong_is_an_exception(
    prepare: Callable[[Shell, Index], None],
    call: Callable[[Index], object],
    error: type[RebuildError],
    silent: Shell,
) -> None:
    with chunksink.open() as index:
        index.sync()
        prepare(silent, index)
        with pytest.raises(error):
            call(index)


@pytest.mark.parametrize(("much", "processes"), [(0, 1), (2**30, 0)])
def test_a_process_for_vectors_is_started_where_there_is_much_to_write(
    shell: Shell, much: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the first sync as well as by a rebuild; for a handful of chunks it would only cost its second."""
    started: list[object] = []
    real = EmbeddedChromaSink.prepare
    monkeypatch.setattr(rebuild, "_WORTH_PREPARING", much)
    monkeypatch.setattr(EmbeddedChromaSink, "prepare", lambda sink: started.append(sink) or real(sink))
    shell.commit("p1", A)
    with chunksink.open() as index:
        assert index.sync().status == "ok"
        assert len(started) == processes
        assert index.rebuild().status == "ok"
        assert len(started) == 2 * processes
        assert index.verify().ok


def test_documents_are_ingested_and_synced_from_python(quick_shell: Shell) -> None:
    notes = quick_shell.folder / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# A\n\nabout boats")
    with chunksink.open() as index:
        assert index.ingest(notes).processed == 1
        assert index.ingest(str(notes), checksum=True).unchanged == 1
        assert index.sync().families.added == 1
        assert index.status().is_current
        (notes / "a.md").unlink()
        (notes / "b.md").write_text("# B\n\nabout ships")
        (notes / "draft.md").write_text("# Draft")
        assert index.ingest("notes", prune=True, jobs=1, exclude="draft.md").pruned == 1
        assert not index.status().is_current
        assert "1 source added" in quick_shell("sync").out
        assert [hit.source_uri for hit in index.search("ships boats", mode="keyword")] == ["notes/b.md"]
