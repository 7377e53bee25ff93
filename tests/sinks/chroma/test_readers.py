"""Readers of an embedded build, beside a writer in another process."""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromadb.api.shared_system_client import SharedSystemClient

from chunksink.sinks.chroma import ChromaBuild, ChromaSink
from chunksink.sinks.chroma.reader import ChromaReader
from chunksink.sinks.conformance.samples import family, vector
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import Transient
from chunksink.sinks.reader import Filter
from tests.conftest import HEAVY, ROOT
from tests.support.chroma import folder
from tests.support.forking import FORKING, execute, run_program

WRITER = """
import sys
from pathlib import Path
from chunksink.sinks.chroma import ChromaSink, EmbeddedChromaSink
from chunksink.sinks.conformance.samples import family

build = EmbeddedChromaSink(Path(sys.argv[1])).open(sys.argv[2])
for line in sys.stdin:
    version, *texts = line.split()
    build.replace([family("a", texts, version=version)])
    build.flush()
    print("done", flush=True)
build.close()
"""


def test_reader_continues_while_another_process_replaces(sink: ChromaSink, build: ChromaBuild, signed: Marker) -> None:
    """The reader's vectors are as old as its opening. If an answer shows that, it opens the build again, and no family
    is missing."""
    families = [family("a", ["first", "second"]), *(family(f"f{number}", ["x"]) for number in range(20))]
    build.replace(families)
    build.close()
    reader = sink.reader(signed.build_id)
    command = [sys.executable, "-c", WRITER, str(sink._place._root), signed.build_id]  # type: ignore[union-attr]
    ours = [Filter("parent_id", any_of=(families[0].parent_id,))]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin and writer.stdout
        for version, texts in (("2", ["third"]), ("3", ["fourth", "fifth"])):
            writer.stdin.write(" ".join([version, *texts]) + "\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "done\n"
            now = {document.id for document in family("a", texts, version=version).documents}
            assert {hit.id for hit in reader.query(vector("first"), 5, ours)} == now
            assert now <= {hit.id for hit in reader.query(vector(texts[0]), 30)}
            assert {document.id for document in reader.get(sorted(now))} == now
        writer.stdin.close()
        assert writer.wait(30) == 0
    reader.close()


def test_reader_that_cannot_reopen_keeps_its_view(
    sink: ChromaSink, build: ChromaBuild, signed: Marker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise Transient("somebody writes")

    build.replace([family("a", ["x"])])
    reader = sink.reader(signed.build_id)
    build.replace([family("b", ["y"])])
    with monkeypatch.context() as patch:
        patch.setattr(sink._place, "open", busy)
        with pytest.raises(Transient, match="somebody writes"):
            reader.refresh()
        assert len(reader.query(vector("x"), 1)) == 1
    reader.refresh()
    assert len(reader.query(vector("x"), 1)) == 1
    reader.close()


def test_similarities_include_documents_that_were_added_later(
    sink: ChromaSink, build: ChromaBuild, signed: Marker
) -> None:
    """Keyword search may name them before this reader has their vectors."""
    build.replace([family("a", ["x"])])
    build.flush()
    reader = sink.reader(signed.build_id)
    assert len(reader.query(vector("x"), 1)) == 1
    new = family("b", ["y"])
    build.replace([new])
    build.flush()
    assert reader.similarities(vector("y"), [new.documents[0].id]) == {new.documents[0].id: pytest.approx(1, abs=1e-4)}
    reader.close()


def test_cached_vectors_are_not_used_after_a_write(sink: ChromaSink, build: ChromaBuild, signed: Marker) -> None:
    old, kept = family("a", ["x"]), family("b", ["y"])
    build.replace([old, kept])
    build.flush()
    ids = [one.documents[0].id for one in (old, kept)]
    with closing(sink.reader(signed.build_id)) as reader:
        first, second, cached = (reader.similarities(vector("y"), ids) for _ in range(3))
        assert first == second == cached
        assert cached[ids[1]] == pytest.approx(1, abs=1e-4)
        assert reader._handle.newest is not None and reader._handle.newest.vectors.keys() == set(ids)
        build.replace([family("a", ["z"])])
        build.flush()
        assert reader.similarities(vector("y"), ids).keys() == {ids[1]}


WRITER_ONCE = """
import sys
from pathlib import Path
from chunksink.sinks.chroma import ChromaSink, EmbeddedChromaSink
from chunksink.sinks.conformance.samples import family

build = EmbeddedChromaSink(Path({root!r})).open({build!r})
build.replace([family("more" + sys.argv[1], ["x"])])
build.flush()
build.close()
"""

BUSY_WRITER = """
import sys, time
from pathlib import Path
from chunksink.sinks.chroma import ChromaSink, EmbeddedChromaSink
from chunksink.sinks.conformance.samples import family

build = EmbeddedChromaSink(Path(sys.argv[1])).open(sys.argv[2])
end, version = time.monotonic() + float(sys.argv[3]), 0
while time.monotonic() < end:
    version += 1
    some = range(version % 3, 60, 3)
    texts = [f"{version} {chunk}" for chunk in range(20)]
    build.replace([family(f"f{number}", texts, version=str(version)) for number in some])
    build.flush()
    time.sleep(0.05)
build.close()
"""

BUSY_READER = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from chunksink.sinks.chroma import ChromaSink, EmbeddedChromaSink
from chunksink.sinks.conformance.samples import vector

sink = EmbeddedChromaSink(Path(sys.argv[1]))
reader, end, asked = sink.reader(sys.argv[2]), time.monotonic() + float(sys.argv[3]), 0
while time.monotonic() < end or asked < 5:
    if sys.argv[4] == "new":
        reader.close()
        reader = sink.reader(sys.argv[2])
    with ThreadPoolExecutor(8) as threads:
        for hits in threads.map(lambda _: reader.query(vector("1 1"), 10), range(8)):
            assert len(hits) == 10
    asked += 1
reader.close()
"""


@pytest.mark.promise(9)
def test_readers_in_other_processes_survive_many_writes(sink: ChromaSink, build: ChromaBuild, signed: Marker) -> None:
    """Chroma saves its vectors in place. Without turns, each of these readers died of a signal within seconds."""
    build.replace([family(f"f{number}", [f"0 {chunk}" for chunk in range(20)]) for number in range(60)])
    build.flush()
    build.close()
    seconds = "20" if HEAVY else "1.5"
    arguments = [str(sink._place._root), signed.build_id, seconds]  # type: ignore[union-attr]
    programs = [[BUSY_WRITER], [BUSY_READER, "new"], [BUSY_READER, "kept"]]
    running = [FORKING.Process(target=execute, args=(program, *arguments, *more)) for program, *more in programs]
    for process in running:
        process.start()
    for process in running:
        process.join(120)
    assert [process.exitcode for process in running] == [0, 0, 0]


def test_many_refreshes_leave_nothing_open(
    sink: ChromaSink, build: ChromaBuild, signed: Marker, tmp_path: Path
) -> None:
    build.replace([family("a", ["x"])])
    readers = [sink.reader(signed.build_id) for _ in range(3)]
    for number in range(5):
        build.replace([family("b", [f"y {number}"])])
        for reader in readers:
            reader.refresh()
            assert reader.query(vector("x"), 1)
    for reader in readers:
        reader.close()
    build.close()
    assert engines(folder(tmp_path, signed)) == []


def engines(path: Path) -> list[str]:
    """The engines that chromadb keeps for a folder."""
    return [spelling for spelling in SharedSystemClient._identifier_to_system if spelling.startswith(str(path))]


Requests = list[tuple[int, list[str]]]


def handle_of(reader: ChromaReader) -> Any:
    return reader._handle.newest


@contextmanager
def watched(
    sink: ChromaSink, signed: Marker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[ChromaReader, Requests]]:
    """A reader, and its requests by id: the number of ids and the requested parts."""
    with closing(sink.reader(signed.build_id)) as reader:
        requests: Requests = []
        get = handle_of(reader).opened().collection.get

        def recorded(ids: list[str], include: list[str]) -> Any:
            requests.append((len(ids), include))
            return get(ids=ids, include=include)  # type: ignore[arg-type]

        monkeypatch.setattr(handle_of(reader).opened().collection, "get", recorded)
        yield reader, requests


@contextmanager
def writing(sink: ChromaSink, signed: Marker) -> Iterator[ChromaBuild]:
    with closing(sink.open(signed.build_id)) as build:
        yield build
        build.flush()


@pytest.fixture
def written(build: ChromaBuild) -> None:
    build.replace([family(f"f{number}", ["x", "y"]) for number in range(5)])
    build.flush()
    build.close()


@pytest.mark.usefixtures("written")
def test_metadata_already_read_is_not_requested_again(
    sink: ChromaSink, signed: Marker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading metadata takes ten times as long as the search."""
    with watched(sink, signed, monkeypatch) as (reader, requests):
        first = reader.query(vector("x"), 6)
        assert requests == [(6, ["metadatas"])]
        assert reader.query(vector("x"), 6) == first
        assert len(reader.query(vector("x"), 8)) == 8
        assert requests[1:] == [(2, ["metadatas"])]
        with writing(sink, signed) as build:
            build.delete([first[0].parent_id])
        left = reader.query(vector("x"), 6)
        assert first[0].parent_id not in {hit.parent_id for hit in left}
        assert requests[2] == (6, []), "somebody wrote: are they there still?"


@pytest.mark.usefixtures("written")
def test_marker_is_read_again_only_after_a_write(
    sink: ChromaSink, signed: Marker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sink.reader(signed.build_id)) as reader:
        time.sleep(0.05)  # a document that was just written may be rewritten at the same time
        assert reader.marker() == signed
        with monkeypatch.context() as patch:
            patch.setattr(handle_of(reader).opened().client, "get_collection", None)
            assert reader.marker() == signed
        other = replace(signed, home_id="another")
        with writing(sink, signed) as build:
            build.sign(other)
        assert reader.marker() == other


@pytest.mark.usefixtures("written")
def test_unchanged_build_is_not_opened_again(sink: ChromaSink, signed: Marker) -> None:
    with closing(sink.reader(signed.build_id)) as reader:
        assert len(reader.query(vector("x"), 20)) == 10
        before = handle_of(reader)
        reader.refresh()
        assert handle_of(reader) is before
        with writing(sink, signed) as build:
            build.replace([family("more", ["x"])])
        reader.refresh()
        assert handle_of(reader) is not before
        assert len(reader.query(vector("x"), 20)) == 11


@pytest.mark.usefixtures("written")
def test_database_with_a_log_survives_readers_and_writers(sink: ChromaSink, signed: Marker) -> None:
    """SQLite keeps locks between calls, and closing the file releases those of the whole process."""
    folder = Path(sink.address(signed.build_id)["path"])
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as database:
        database.execute("pragma journal_mode = wal")
    program = WRITER_ONCE.format(root=str(folder.parent), build=signed.build_id)
    with closing(sink.reader(signed.build_id)) as reader:
        for number in range(3):
            assert reader.query(vector("x"), 3)
            with closing(sink.reader(signed.build_id)) as other:
                assert other.query(vector("x"), 3)
            run_program(program, number)
            reader.refresh()
            assert len(reader.query(vector("x"), 50)) == 10 + number + 1
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)


def test_closed_reader_opens_nothing(
    sink: ChromaSink, build: ChromaBuild, signed: Marker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread's question was about to open it again."""
    build.replace([family("a", ["x"])])
    build.close()
    reader = sink.reader(signed.build_id)
    ask = ChromaReader._search

    def closed_meanwhile(*given: Any) -> Any:
        reader.close()
        monkeypatch.setattr(ChromaReader, "_search", ask)
        return [], 1

    monkeypatch.setattr(ChromaReader, "_search", closed_meanwhile)
    with pytest.raises(RuntimeError, match="closed"):
        reader.query(vector("x"), 1)
    assert engines(folder(tmp_path, signed)) == []


def test_reader_beside_an_open_writer_shows_no_removed_documents(
    sink: ChromaSink, build: ChromaBuild, signed: Marker
) -> None:
    """The writer's engine loaded the vectors before the reader was opened, and before another program removed some."""
    families = [family(f"f{number}", ["x", "y"]) for number in range(5)]
    build.replace(families)
    build.flush()
    everything = {document.id: one.parent_id for one in families for document in one.documents}
    with closing(sink.reader(signed.build_id)) as early:
        assert len(early.query(vector("x"), 20)) == 10
    removed = list(everything)[:4]
    program = (
        "import sys, chromadb; "
        "chromadb.PersistentClient(sys.argv[1]).get_collection('chunks').delete(ids=sys.argv[2].split())"
    )
    folder = sink.address(signed.build_id)["path"]
    run_program(program, folder, " ".join(removed))
    with closing(sink.reader(signed.build_id)) as reader:
        shown = reader.query(vector("x"), 20, families=lambda ids: {id: everything[id] for id in ids})
        assert {hit.id for hit in shown} == everything.keys() - removed


def test_rows_of_another_program_and_empty_texts_take_no_place_among_hits(
    sink: ChromaSink, build: ChromaBuild, signed: Marker
) -> None:
    """The nearest are four foreign rows without metadata and a document without text."""
    build.replace([family("empty", [""]), *(family(f"f{number}", ["x"]) for number in range(20))])
    build.close()
    program = (
        "import sys, chromadb; near = list(map(float, sys.argv[2].split())); "
        "chromadb.PersistentClient(sys.argv[1]).get_collection('chunks')"
        ".add(ids=['1', '2', '3', '4'], embeddings=[near] * 4)"
    )
    run_program(program, sink.address(signed.build_id)["path"], " ".join(map(str, vector(""))))
    with closing(sink.reader(signed.build_id)) as reader:
        assert len({hit.parent_id for hit in reader.query(vector(""), 10)}) == 10
