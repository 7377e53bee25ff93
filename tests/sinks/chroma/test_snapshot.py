"""The seal describes a build that is unchanged since it was closed. Any other build is read through Chroma."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chunksink.command_line.exits import Exit
from chunksink.sinks.chroma import EmbeddedChromaSink, seal
from chunksink.sinks.chroma.folder import Folder
from chunksink.sinks.conformance.samples import DIMENSIONS, family, hashes_in, hashes_of
from chunksink.sinks.contract import Build, Marker
from tests.chunksink.conftest import models, shell
from tests.chunksink.shell import Shell
from tests.conftest import sampled
from tests.journey.support import environment
from tests.support.bus import source
from tests.support.chroma import FEW
from tests.support.forking import run_program

__all__ = ["models", "shell"]

OTHER_PROGRAM = """
import sys, chromadb
chromadb.PersistentClient(sys.argv[1]).get_collection("chunks").delete(ids=sys.argv[2:])
"""
SIGNING_PROGRAM = """
import sys, chromadb
chromadb.PersistentClient(sys.argv[1]).get_collection("chunks").modify(metadata={"home_id": "theirs"})
"""


@pytest.fixture
def folder(tmp_path: Path, signed: Marker) -> Path:
    """The folder of a build that was counted and closed, as in every run."""
    with closing(EmbeddedChromaSink(tmp_path).create(signed, DIMENSIONS)) as build:
        build.replace(FEW)
        build.flush()
        assert build.count() == 2
    return tmp_path / signed.build_id


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Builds that were opened in Chroma."""
    seen: list[Path] = []
    real = Folder._connect

    def connect(place: Any, path: Path, **given: Any) -> Any:
        seen.append(path)
        return real(place, path, **given)

    monkeypatch.setattr(Folder, "_connect", connect)
    return seen


def opened(folder: Path) -> Build:
    return EmbeddedChromaSink(folder.parent).open(folder.name)


def test_sealed_build_is_described_without_chroma(folder: Path, signed: Marker, connections: list[Path]) -> None:
    for _ in range(2):
        with closing(opened(folder)) as build:
            assert (build.marker(), build.count(), build.flush()) == (signed, 2, [])
    assert connections == []
    with closing(opened(folder)) as build:
        assert hashes_in(build) == hashes_of(FEW)
        assert (build.marker(), build.count()) == (signed, 2)
    assert connections == [folder], "once for all that is asked then"


def test_writes_through_a_sealed_build_are_stored(folder: Path, signed: Marker, connections: list[Path]) -> None:
    more, again = family("more", ["three"]), replace(signed, stamp="again")
    with closing(opened(folder)) as build:
        build.replace([more])
        build.delete([FEW[0].parent_id])
        assert build.flush() == []
        build.sign(again)
        assert (build.marker(), build.count()) == (again, 1)
    assert connections == [folder]
    with closing(opened(folder)) as build:
        assert (build.marker(), build.count()) == (again, 1)
        assert connections == [folder]
        assert hashes_in(build) == hashes_of([more])


def by_another_program(folder: Path) -> None:
    ids = [document.id for document in FEW[0].documents[:1]]
    run_program(OTHER_PROGRAM, folder, *ids)


def signed_by_another_program(folder: Path) -> None:
    run_program(SIGNING_PROGRAM, folder)


def of_an_older_version(folder: Path) -> None:
    sealed = json.loads((folder / seal.FILE).read_text())
    del sealed["snapshot"]
    (folder / seal.FILE).write_text(json.dumps(sealed))


def without_seal(folder: Path) -> None:
    (folder / seal.FILE).unlink()


def in_doubt(folder: Path) -> None:
    (folder / f"{seal.DATABASE}-journal").touch()


def another_time(folder: Path) -> None:
    os.utime(next(folder.glob("*/data_level0.bin")), (1, 1))


def another_time_of_the_database(folder: Path) -> None:
    os.utime(folder / seal.DATABASE, (1, 1))


def damaged_seal(folder: Path) -> None:
    sealed = json.loads((folder / seal.FILE).read_text())
    (folder / seal.FILE).write_text(json.dumps(sealed | {"snapshot": "x"}))


@pytest.mark.promise(4)
@pytest.mark.parametrize(
    ("touch", "left"),
    sampled(
        [
            (by_another_program, 1),
            (signed_by_another_program, 2),
            (of_an_older_version, 2),
            (without_seal, 2),
            (in_doubt, 2),
            (another_time, 2),
            (another_time_of_the_database, 2),
            (damaged_seal, 2),
        ],
        2,
    ),
)
@pytest.mark.parametrize("is_open", [False, True])
def test_touched_build_is_read_through_chroma(
    folder: Path,
    signed: Marker,
    connections: list[Path],
    touch: Callable[[Path], None],
    left: int,
    is_open: bool,
) -> None:
    """Touched before it is opened, or afterwards."""
    expected = None if touch is signed_by_another_program else signed
    if is_open:
        with closing(opened(folder)) as build:
            touch(folder)
            assert (build.marker(), build.count()) == (expected, left)
    else:
        touch(folder)
        with closing(opened(folder)) as build:
            assert connections == [folder]
            assert (build.marker(), build.count()) == (expected, left)
    assert connections == [folder]


def test_build_open_for_writing_is_read_through_chroma(folder: Path, connections: list[Path]) -> None:
    with closing(opened(folder)) as writer, closing(opened(folder)) as other:
        assert connections == []
        writer.delete([FEW[0].parent_id])
        writer.flush()
        assert other.count() == 0
        with closing(opened(folder)) as third:
            assert connections == [folder] * 3
            assert third.count() == 0


def test_commands_without_vectors_do_not_load_chroma(shell: Shell) -> None:
    shell.commit("p1", source("pets.md", "the cat sleeps"))
    assert shell("sync").code == Exit.OK
    program = (
        "import sys; from chunksink.command_line.cli import run; "
        "commands = (['sync'], ['plan'], ['status'], ['search', 'cat', '--mode', 'keyword']); "
        "assert [run(command) for command in commands] == [0, 0, 0, 0]; "
        "assert 'chromadb' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=shell.folder, env=environment(), check=True)
