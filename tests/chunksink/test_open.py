"""`chunksink.open()` offers the runs of the command line to programs: reports and exceptions, and no printed output."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import chunksink
from chunksink import errors
from chunksink.index import Index
from chunksink.live import LiveSearch
from chunksink.rebuild import rebuild
from chunksink.settings.config import Config
from chunksink.sinks.chroma import EmbeddedChromaSink
from tests.chunksink.shell import Shell, write
from tests.support.bus import source

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


@pytest.fixture
def silent(quick_shell: Shell, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Chunks of two sources, used without the command line."""
    quick_shell.commit("p1", A)
    quick_shell.commit("p2", B)
    capsys.readouterr()
    return quick_shell


@pytest.fixture(autouse=True)
def nothing_printed(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    assert tuple(capsys.readouterr()) == ("", "")


def test_garbage_collected_index_closes_its_readers(silent: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_open_index_keeps_its_paths_if_the_process_changes_its_folder(
    silent: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with chunksink.open() as index:
        index.sync()
        monkeypatch.chdir(elsewhere)
        assert index.sync().status == "ok"
        assert len(index.search("cat")) == 1
        assert str(silent.home.resolve()) in repr(index)
    assert not any(elsewhere.iterdir())


def test_paths_in_tables_become_absolute(silent: Shell) -> None:
    write(silent, "chunksink.toml", 'engine = "ray"\n[ray]\nsegments = "shared"\n[sink.fts]\nfolder = "words"\n')
    config = chunksink.open().config
    here = silent.folder.resolve()
    assert config.ray is not None
    assert (config.ray.segments, config.sink["fts"]["folder"]) == (str(here / "shared"), str(here / "words"))
    assert config.origin.file == str(here / "chunksink.toml")


def test_a_path_names_a_source(silent: Shell) -> None:
    with chunksink.open() as index:
        index.sync()
        assert index.why(Path("a.md")).source == "a.md"


@pytest.mark.parametrize("named", ["folder", "file", "path"])
def test_open_with_a_folder_or_file_elsewhere_uses_its_paths(
    named: str, silent: Shell, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths start at the folder of the file."""
    file = silent.folder / "chunksink.toml"
    file.write_text('home = "own"\nsinks = ["jsonl"]\n')
    monkeypatch.delenv("CHUNKSINK_SINKS")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    place = {"folder": str(silent.folder), "file": str(file), "path": file}[named]
    with chunksink.open(place) as index:
        assert list(index.sync().sinks) == ["jsonl"]
    assert (silent.folder / "own" / "state.db").exists()
    assert list(Path().iterdir()) == []


def test_open_with_a_config_and_rebuild_with_one_sink_as_a_string(silent: Shell) -> None:
    config = Config(home="own", sinks=("jsonl",))
    with chunksink.open(config) as index:
        assert (type(index), index.config.sinks) == (chunksink.Index, config.sinks)
        assert list(index.sync().sinks) == ["jsonl"]
        assert set(index.rebuild(sinks="jsonl").sinks) == {"jsonl"}


def test_open_with_a_config_and_settings_raises(silent: Shell) -> None:
    with pytest.raises(TypeError, match="home"):
        chunksink.open(Config(), home="own")


def test_doctor_names_the_file_that_was_opened(
    silent: Shell, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(silent, "chunksink.toml", 'sinks = ["jsonl"]\n')
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with chunksink.open(file) as index:
        monkeypatch.setenv("CHUNKSINK_CONFIG", "missing.toml")  # read by `open` alone
        found = next(check for check in index.doctor() if check.name == "configuration")
    assert found.found.startswith(f"{file} can be read")


def test_doctor_of_a_config_made_in_python_reads_no_file(silent: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_CONFIG", "missing.toml")
    with chunksink.open(Config(home="own", sinks=("jsonl",))) as index:
        found = next(check for check in index.doctor() if check.name == "configuration")
    assert (found.verdict, "toml" in found.found) == ("ok", False)


def test_every_method_makes_its_run(silent: Shell) -> None:
    with chunksink.open() as index:
        index.sync()
        silent.commit("p3", source("c.md", "a cow"))
        plan = index.plan()
        assert (plan.families.added, plan.chunks, plan.added) == (1, 1, ("c.md",))
        assert not index.verify().ok
        assert index.repair().families.added == 1
        assert index.verify(deep=True).ok
        assert set(index.prove()["sinks"]) == set(silent.live().builds)
        assert {check.name for check in index.doctor()} >= {"home", "chunks", "index"}
        explained = index.why("c.md")
        assert (explained.source, explained.sinks.keys()) == ("c.md", silent.live().builds.keys())
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


@pytest.mark.parametrize(
    ("prepare", "call", "error"),
    [
        (cut_off, lambda index: index.sync(strict=True), errors.InvalidBus),
        (cut_off, lambda index: index.rebuild(), errors.InvalidBus),
        (brake, lambda index: index.sync(), errors.Brake),
        (None, lambda index: index.sync(plan="0" * 64), errors.OtherPlan),
        (None, lambda index: index.rollback(), errors.NoGeneration),
        (None, lambda index: index.retire_partition("p1"), errors.NotMissing),
        (None, lambda index: index.forget("nobody.md"), errors.UnknownSource),
        (None, lambda index: index.why("nobody.md"), errors.RebuildError),
        (cut_off, lambda index: index.prove(), errors.InvalidBus),
    ],
)
def test_failed_run_raises_its_error_class(
    prepare: Callable[[Shell, Index], None] | None,
    call: Callable[[Index], object],
    error: type[errors.ChunksinkError],
    silent: Shell,
) -> None:
    with chunksink.open() as index:
        index.sync()
        if prepare is not None:
            prepare(silent, index)
        with pytest.raises(error):
            call(index)


@pytest.mark.parametrize(("much", "processes"), [(0, 1), (2**30, 0)])
def test_process_for_vectors_is_started_only_for_many_chunks(
    shell: Shell, much: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both by the first sync and by a rebuild."""
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


def test_ingest_reads_skips_and_prunes_documents(silent: Shell) -> None:
    for name in ("a.md", "b.md", "draft.md"):
        write(silent, f"notes/{name}", f"# {name}")
    with chunksink.open() as index:
        index.sync()
        with pytest.raises(errors.IngestRefused, match="source"):
            index.ingest()
        assert index.ingest(silent.folder / "notes").processed == 3
        assert index.ingest("notes", checksum=True).unchanged == 3
        assert index.ingest("notes", prune=True, jobs=1, exclude="draft.md").pruned == 1
        assert not index.status().is_current
        index.sync()
        assert index.status().is_current


def test_stage_displays_each_stage_of_a_run(silent: Shell) -> None:
    stages = []

    def stage(name: str, total: int | None, unit: str) -> AbstractContextManager[None]:
        stages.append((total, unit))
        return nullcontext()

    with chunksink.open(stage=stage) as index:
        index.sync()
    assert (3, "chunks") in stages
    assert set(chunksink.__all__) == set(dir(chunksink))


# -- invalid arguments ------------------------------------------------------------------------------------------------


@pytest.fixture
def index(silent: Shell) -> Iterator[Index]:
    with chunksink.open() as index:
        index.sync()
        yield index


@pytest.mark.parametrize("chunk_id", [None, 7], ids=repr)
def test_get_chunk_when_the_id_is_no_string_is_an_error(chunk_id: Any, index: Index) -> None:
    with pytest.raises(errors.InvalidQuestion):
        index.get_chunk(chunk_id)


@pytest.mark.parametrize("context", [-1, 21, True, "1"], ids=repr)
def test_get_chunk_context_has_the_limits_of_a_search(context: Any, index: Index) -> None:
    with pytest.raises(errors.InvalidQuestion, match="context") as of_chunk:
        index.get_chunk("x", context=context)
    with pytest.raises(errors.InvalidQuestion, match="context") as of_search:
        index.search("cat", context=context)
    assert str(of_chunk.value) == str(of_search.value)


def test_embed_query_without_vectors_is_an_error(index: Index) -> None:
    with pytest.raises(errors.InvalidQuestion):
        index.embed_query("cat")


def test_search_facets_are_one_field_several_or_none(index: Index) -> None:
    for facets, counted in ((None, set()), ("language", {"language"}), (["language", "year"], {"language", "year"})):
        assert set(index.search("cat", mode="keyword", facets=facets).facets) == counted
    with pytest.raises(errors.InvalidQuestion, match="facets"):
        index.search("cat", facets=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [-1, 2.5, "3", True, None])
def test_allow_deletions_when_not_a_number_of_deletions_is_an_error(number: Any, silent: Shell) -> None:
    with chunksink.open() as index:
        for run in (index.sync, index.repair, index.rebuild):
            with pytest.raises(errors.RebuildError, match="allow_deletions"):
                run(allow_deletions=number)
        assert not silent.home.exists()
        with pytest.raises(errors.IngestRefused, match="allow_deletions"):
            index.ingest(silent.folder, allow_deletions=number)
