"""An engine restored from an older copy of its data is recognised, whenever the copy was made.

The copy may have the confirmed number of documents: only the stamp of its marker differs.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild.spot_check import SpotCheck
from chunksink.sinks.contract import Sink
from chunksink.sinks.meilisearch import MeilisearchSink
from tests.conftest import HEAVY
from tests.engines.servers import MeilisearchServer, run_meilisearch
from tests.support.bus import FEBRUARY, commit, source
from tests.support.home import Home, sinks_with
from tests.support.local_engines import chroma, fts, jsonl
from tests.support.meilisearch import SETTINGS
from tests.support.watched_sinks import Moment, WrappedBuild, raising, watching, with_builds

pytestmark = pytest.mark.promise(4)

ENGINES = {"fts": fts, "jsonl": jsonl, "chroma": chroma}
BATCHES = 3
CHANGES = ("replace", "delete", "flush", "sign")


@pytest.fixture(autouse=True)
def no_spot_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spot checks would also find the drift in these small builds."""
    monkeypatch.setattr(SpotCheck, "finds_drift", lambda *_: False)


class _Watched(WrappedBuild):
    """Calls `at` with a number before and after each call that changes the build."""

    def __init__(self, build: Any, at: Callable[[], object]) -> None:
        super().__init__(build)
        self._at = at

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._build, name)
        if name not in CHANGES:
            return call

        def watched(*arguments: Any) -> Any:
            self._at()
            result = call(*arguments)
            self._at()
            return result

        return watched


def indexed(folder: Path, engine: Callable[[Path], Sink], *, replaced: bool = True) -> Home:
    """A home whose bus has changed: sources are edited, one is `replaced`, and the number of chunks is the same."""
    home = Home(folder / "home", FolderRoot(folder / "chunks"), engine)
    old = [source(f"docs/{number}.md", f"a {number}", f"b {number}") for number in range(BATCHES + 1)]
    commit(home.root, "p1", [record for records in old for record in records])
    home.rebuild()
    new = [
        source(f"docs/{number}.md", f"a {number}", f"edited {number}", version="2", at=FEBRUARY)
        for number in range(BATCHES)
    ]
    new.append(source("docs/other.md", "one", "two", at=FEBRUARY) if replaced else old[-1])
    commit(home.root, "p1", [record for records in new for record in records], at=FEBRUARY)
    return home


def copies_of(home: Home, engine: str, folder: Path, until: int | None = None) -> list[Path]:
    """Copies of the engine's data at every moment of a sync, which is interrupted at the moment `until`."""
    data, copies, numbers = home.folder / engine, list[Path](), count()

    def copy() -> None:
        number = next(numbers)
        if number == until:
            raise KeyboardInterrupt
        copies.append(folder / str(number))
        shutil.copytree(data, copies[-1], symlinks=True)

    if until is None:
        home.sync(wrap=with_builds(engine, lambda build: _Watched(build, copy)))
    else:
        with pytest.raises(KeyboardInterrupt):
            home.sync(wrap=with_builds(engine, lambda build: _Watched(build, copy)))
    return copies


def put_back(home: Home, engine: str, copy: Path) -> None:
    shutil.rmtree(home.folder / engine)
    shutil.copytree(copy, home.folder / engine, symlinks=True)


@pytest.mark.parametrize("engine", ENGINES if HEAVY else ["fts", "jsonl"])
def test_copy_from_any_moment_of_a_run_is_found_and_updated(engine: str, tmp_path: Path, small_batches: None) -> None:
    home = indexed(tmp_path, ENGINES[engine])
    copies = copies_of(home, engine, tmp_path / "copies")
    wanted = home.contents()
    shutil.copytree(home.folder, tmp_path / "after", symlinks=True)
    assert len(copies) >= 2 * 3 * (BATCHES + 1)
    every = 1 if HEAVY else 8
    for number, copy in [*list(enumerate(copies[:-1]))[::every], (len(copies) - 1, copies[-1])]:
        shutil.rmtree(home.folder)
        shutil.copytree(tmp_path / "after", home.folder, symlinks=True)
        put_back(home, engine, copy)
        is_older = copy != copies[-1]  # the last one was made when all was confirmed
        assert sinks_with(home.sync(), "scanned") == [engine] * is_older, number
        assert home.contents() == wanted, number


@pytest.mark.parametrize("repaired", [False, True])
def test_copy_is_found_after_an_interrupted_run(repaired: bool, tmp_path: Path, small_batches: None) -> None:
    """At any step. A scan in between may close the intents that the run left open."""
    first = indexed(tmp_path / "prepared", fts, replaced=not repaired)
    whole = indexed(tmp_path / "whole", fts, replaced=not repaired)
    moments = len(copies_of(whole, "fts", tmp_path / "copies"))
    before_the_last_stamp = moments - 2
    for until in {*range(1, moments, 1 if HEAVY else 9), before_the_last_stamp}:
        shutil.copytree(first.folder.parent, tmp_path / f"{until}")
        home = Home(tmp_path / f"{until}" / "home", FolderRoot(tmp_path / f"{until}" / "chunks"), fts)
        copies = copies_of(home, "fts", tmp_path / f"copies-{until}", until)
        if repaired:
            home.sync(scan=True)
        for number in {0, len(copies) // 2, len(copies) - 1}:
            shutil.copytree(home.folder.parent, again := tmp_path / f"{until}-{number}")
            other = Home(again / "home", FolderRoot(again / "chunks"), fts)
            put_back(other, "fts", copies[number])
            other.sync()
            assert other.verify().ok, (until, number)


def test_copy_is_found_after_a_scan_that_ended_before_stamping(tmp_path: Path, small_batches: None) -> None:
    home = indexed(tmp_path, fts, replaced=False)
    shutil.copytree(home.folder / "fts", tmp_path / "copy")
    for options in ({}, {"scan": True}):  # the scan closes the intents of the first run
        with pytest.raises(KeyboardInterrupt):
            home.sync(wrap=watching("fts", Moment("sign", 1, raising(KeyboardInterrupt()))), **options)
    put_back(home, "fts", tmp_path / "copy")
    assert sinks_with(home.sync(), "scanned") == ["fts"]
    assert home.verify().ok


def test_server_restored_to_the_middle_of_a_run_is_found(tmp_path: Path, small_batches: None) -> None:
    """Two batches were confirmed since the copy was made, and then the run was killed."""
    data = tmp_path / "data"
    with run_meilisearch(data=data) as server:
        home = indexed(tmp_path, partial(_meilisearch, server))
        first = Moment("flush", 1, lambda: shutil.copytree(data, tmp_path / "copy"), after=True)
        third = Moment("flush", 3, raising(KeyboardInterrupt()), after=True)
        with pytest.raises(KeyboardInterrupt):
            home.sync(wrap=lambda sink: watching("meilisearch", third)(watching("meilisearch", first)(sink)))
    shutil.rmtree(data)
    with run_meilisearch(data=tmp_path / "copy", key=server.key, port=server.port):
        assert sinks_with(home.sync(), "scanned") == ["meilisearch"]
        assert home.verify().ok


def _meilisearch(server: MeilisearchServer, _home: Path) -> Sink:
    return MeilisearchSink(server.url, server.key, settings=SETTINGS, index="copies")
