"""A build is never removed under a reader, and a killed reader blocks no removal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild.locks import LEASES, reading_live, removing
from chunksink.rebuild.state import State
from tests.conftest import ROOT
from tests.support.bus import commit, source
from tests.support.home import Home
from tests.support.local_engines import fts

pytestmark = pytest.mark.promise(9)

READER = """
import sys
from pathlib import Path
from chunksink.rebuild.locks import reading_live
from chunksink.rebuild.state import State

with State.existing(Path(sys.argv[1])) as state, reading_live(state) as generation:
    print(generation.id, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), fts)
    commit(home.root, "p1", source("docs/a.md", "a cat"))
    home.rebuild()
    return home


@contextmanager
def reader(home: Home) -> Iterator[subprocess.Popen[str]]:
    """Another process that reads the live generation."""
    process = subprocess.Popen(
        [sys.executable, "-c", READER, str(home.folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == home.live().id
        yield process
    finally:
        process.kill()
        process.communicate()


def test_build_stays_until_its_reader_has_closed(home: Home) -> None:
    first = home.live()
    with reader(home):
        for _ in range(3):
            home.rebuild()
        assert first.builds["fts"] in home.builds()["fts"]
    home.rebuild()
    assert first.builds["fts"] not in home.builds()["fts"]
    assert len(home.builds()["fts"]) == 2, "the live one and the previous one"
    assert {file.stem for file in (home.folder / LEASES).glob("*")} <= {home.live().id}


def test_several_readers_and_a_remover_coexist(home: Home) -> None:
    with State.existing(home.folder) as state, reading_live(state) as one, reading_live(state) as other:
        assert one == other
        with removing(state, one) as alone:
            assert not alone
    with State.existing(home.folder) as state, removing(state, one) as alone:
        assert alone


@pytest.mark.parametrize("is_removed", [True, False])
def test_reader_of_an_outdated_pointer_gets_the_live_build(
    is_removed: bool, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The former live build was removed before the lease, or is being removed."""
    old = home.live()
    for _ in range(2 if is_removed else 1):
        home.rebuild()
    new = home.live()
    answers = [old, new]
    monkeypatch.setattr(State, "live", lambda _state: answers.pop(0))
    with State.existing(home.folder) as state, ExitStack() as stack:
        if not is_removed:
            assert stack.enter_context(removing(state, old))
        with reading_live(state) as generation:
            assert generation == new
    assert answers == []


def test_search_takes_a_lease(home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from chunksink import live
    from chunksink.command_line.cli import run

    seen: list[bool] = []
    real = live.search

    def search(*arguments: object, **named: object) -> object:
        with State.existing(home.folder) as state, removing(state, home.live()) as alone:
            seen.append(alone)
        return real(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(live, "search", search)
    assert run(["search", "cat", "--mode", "keyword", "--home", str(home.folder)]) == 0
    assert seen == [False]
