"""A build that was found sound is sealed, so that later processes need no new check."""

import json
import shutil
import signal
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chromadb.api.models.Collection import Collection

from chunksink.sinks.chroma import ChromaBuild, ChromaSink, EmbeddedChromaSink, folder, seal, turns
from chunksink.sinks.chroma.handle import signature_of
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import NotConfirmed
from tests.search.support import DIMENSIONS, family, meaning
from tests.support.forking import run_program

REMOVE_ONE = """
import sys, chromadb
found = chromadb.PersistentClient(sys.argv[1]).get_collection("chunks")
found.delete(ids=found.get(limit=1)["ids"])
"""


@pytest.fixture
def sink(tmp_path: Path) -> ChromaSink:
    """A sink for fewer documents than Chroma saves by itself."""
    sink = EmbeddedChromaSink(tmp_path)
    build = sink.create(Marker("home", "b", 1), DIMENSIONS)
    build.replace([family(f"{number}.md", f"a cat {number}") for number in range(20)])
    build.flush()
    build.close()
    return sink


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    calls: list[object] = []
    real = seal.subprocess.run

    def run(*arguments: object, **named: object) -> object:
        calls.append(arguments)
        return real(*arguments, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(seal.subprocess, "run", run)
    return calls


def look(sink: ChromaSink) -> None:
    reader = sink.reader("b")
    assert len(reader.query(meaning("cat"), 5)) == 5
    reader.close()


def test_early_opening_opens_the_build_and_changes_no_file_of_vectors(sink: ChromaSink, tmp_path: Path) -> None:
    def vectors() -> dict[Path, int]:
        return {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.bin")}

    before = vectors()
    with closing(sink.open("b")) as build:
        assert isinstance(build, ChromaBuild)
        assert build.is_unchanged()
        build.warm_up()
        assert not build.is_unchanged()
        assert vectors() == before != {}


def test_readers_own_call_breaks_no_seal(sink: ChromaSink, probed: list[object], tmp_path: Path) -> None:
    before = seal._files(tmp_path / "b")
    for _ in range(3):
        look(sink)
    assert probed == []
    assert seal._files(tmp_path / "b") != before, "Chroma has not written: nothing was tested here"


def test_proved_build_is_sealed(sink: ChromaSink, probed: list[object], tmp_path: Path) -> None:
    look(sink)
    (tmp_path / "b" / seal.FILE).unlink()
    for _ in range(3):
        look(sink)
    assert len(probed) == 1


def test_foreign_change_is_checked_even_after_many_calls(
    sink: ChromaSink, probed: list[object], tmp_path: Path
) -> None:
    """A call of ours must not seal changes that another program made before it."""
    look(sink)
    reader = sink.reader("b")
    file = next((tmp_path / "b").glob("*/data_level0.bin"))
    shutil.copy(file, tmp_path / "aside")
    file.write_bytes(file.read_bytes())  # another time of change
    assert len(reader.query(meaning("cat"), 5)) == 5
    reader.close()
    assert probed == []
    look(sink)
    assert len(probed) == 1


def test_vectors_saved_by_a_readers_call_are_checked_afterwards(
    sink: ChromaSink, probed: list[object], tmp_path: Path
) -> None:
    """Chroma saves the vectors of a small build, in place, when they are first requested."""
    look(sink)
    file = next((tmp_path / "b").glob("*/data_level0.bin"))
    shutil.copy2(file, tmp_path / "aside")
    with ThreadPoolExecutor(1) as another:
        with turns.turn(tmp_path / "b"):
            file.write_bytes(file.read_bytes() + b"half of more")
            looking = another.submit(look, sink)
            with pytest.raises(TimeoutError):
                looking.result(timeout=0.5)
            shutil.copy2(tmp_path / "aside", file)
        looking.result(timeout=60)
    assert probed == []


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of documents that Chroma reports."""
    answers: list[int] = []
    real = Collection.count

    def count(collection: Collection) -> int:
        answers.append(real(collection))
        return answers[-1]

    monkeypatch.setattr(Collection, "count", count)
    return answers


def count(sink: ChromaSink) -> int:
    with closing(sink.open("b")) as build:
        return build.count()


@pytest.mark.promise(4)
def test_foreign_writes_are_counted(sink: ChromaSink, counts: list[int], tmp_path: Path) -> None:
    assert count(sink) == 20
    shutil.copytree(tmp_path / "b", tmp_path / "older")
    run_program(REMOVE_ONE, tmp_path / "b")
    assert count(sink) == 19
    shutil.copy(tmp_path / "older" / seal.DATABASE, tmp_path / "b" / seal.DATABASE)  # an older state is restored
    assert count(sink) == 20
    assert counts == [19, 20]


def test_reading_changes_nothing_and_opening_changes_once(sink: ChromaSink, tmp_path: Path) -> None:
    """Otherwise another program's change could be taken for ours."""
    database = tmp_path / "b" / seal.DATABASE
    before = signature_of(database)
    with closing(sink.reader("b")) as reader:
        opened = signature_of(database)
        assert len(reader.query(meaning("cat"), 5)) == 5
        assert reader.get(["nobody"]) == []
    assert before != opened == signature_of(database)
    with closing(sink.open("b")) as build:
        assert build.count() == len(list(build.scan(content=True, vectors=True))) == 20
        opened = signature_of(database)
    assert opened == signature_of(database)


@pytest.mark.promise(4)
@pytest.mark.parametrize("when", ["while it is counted", "while it is opened", "while it is closed"])
def test_concurrent_foreign_writes_are_counted(
    sink: ChromaSink, counts: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Other programs do not take turns."""
    calls: dict[str, tuple[Any, str]] = {
        "while it is opened": (folder, "collection_in"),
        "while it is closed": (seal, "write"),
    }

    def remove_one() -> None:
        run_program(REMOVE_ONE, tmp_path / "b")

    assert count(sink) == 20
    with monkeypatch.context() as patch:
        if when in calls:
            module, name = calls[when]
            call = getattr(module, name)

            def disturbed(*given: Any, **named: Any) -> Any:
                remove_one()
                return call(*given, **named)

            patch.setattr(module, name, disturbed)
        else:
            (tmp_path / "b" / seal.FILE).write_text(json.dumps({"files": seal._files(tmp_path / "b")}))
            counted = Collection.count

            def disturbed_count(collection: Collection) -> int:
                patch.undo()
                found = counted(collection)
                remove_one()
                return found

            patch.setattr(Collection, "count", disturbed_count)
        with closing(sink.open("b")) as build:
            list(build.scan())  # the check opens it
            build.count()
    for _ in range(2):
        assert count(sink) == 19
    assert counts[-1] == 19


def test_writes_to_a_database_with_a_log_are_counted(sink: ChromaSink, counts: list[int], tmp_path: Path) -> None:
    """The database file does not show every change."""
    with closing(sqlite3.connect(tmp_path / "b" / seal.DATABASE)) as database:
        database.execute("pragma journal_mode = wal")
    for _ in range(2):
        assert count(sink) == 20
    assert len(counts) == 2


def test_killed_check_proves_nothing(sink: ChromaSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the next sync would write all documents again."""
    (tmp_path / "b" / seal.FILE).unlink()
    with monkeypatch.context() as patch:
        killed = subprocess.CompletedProcess([], -signal.SIGKILL, "", "")
        patch.setattr(seal.subprocess, "run", lambda *_, **__: killed)
        with pytest.raises(NotConfirmed, match="was killed, perhaps for lack of memory"):
            look(sink)
    look(sink)
