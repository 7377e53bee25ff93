"""Everything but the chunks can be lost, in every combination; and no clock decides anything."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable, Iterator
from itertools import chain, combinations, count
from pathlib import Path
from typing import Any

import pytest

from chunkbus import runlog
from chunkbus.layout import BusRoot
from tests.rebuild.engines import chroma, fts
from tests.rebuild.support import FEBRUARY, Home, commit, source

LOSSES: dict[str, Callable[[Home], None]] = {
    "cache": lambda home: [file.unlink() for file in home.folder.glob("vectors.db*")] and None,
    "records": lambda home: [file.unlink() for file in home.folder.glob("state.db*")] and None,
    "fts": lambda home: shutil.rmtree(home.folder / "fts"),
    "chroma": lambda home: shutil.rmtree(home.folder / "chroma"),
}


def losses() -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(LOSSES, number) for number in range(1, len(LOSSES) + 1))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("built")
    home = Home(folder / "home", BusRoot(folder / "chunks"), fts, chroma)
    families = [source(f"docs/{number}.md", *(f"text {number} {part}" for part in range(3))) for number in range(4)]
    commit(home.root, "p1", [record for records in families for record in records])
    home.rebuild()
    return home


def digests(home: Home, *, deep: bool = True) -> dict[str, str]:
    verified = home.verify(deep=deep)
    assert verified.ok, verified
    return {name: sink.digest for name, sink in verified.sinks.items()}


@pytest.mark.promise(1)
@pytest.mark.parametrize("lost", list(losses()), ids="+".join)
def test_whatever_is_lost_comes_back(lost: tuple[str, ...], built: Home, tmp_path: Path) -> None:
    shutil.copytree(built.folder, tmp_path / "home")
    home = Home(tmp_path / "home", built.root, fts, chroma)
    for name in lost:
        LOSSES[name](home)
    if "records" in lost:
        home.rebuild()
    else:
        home.sync()
    # Of a cache that is lost nothing is left to compare vectors with, but where they were computed again.
    assert digests(home, deep=lost != ("cache",)) == digests(built)
    again = home.sync()
    assert sum(again.done.written.values()) == 0
    assert (again.families.added, again.families.changed, again.families.removed) == (0, 0, 0)


@pytest.fixture
def home(built: Home, tmp_path: Path) -> Home:
    """A copy, to be changed."""
    shutil.copytree(built.folder, tmp_path / "home")
    shutil.copytree(built.root.path, tmp_path / "chunks")
    return Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts, chroma)


@pytest.mark.promise(10)
@pytest.mark.parametrize("years", [-10, 10])
def test_a_clock_that_is_wrong_decides_nothing(
    years: int, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it jumps between two runs: only the chunks' own times rank them."""
    monkeypatch.setattr(runlog, "datetime", _shifted(lambda: 365 * years))
    edited = source("docs/0.md", "edited", version="2", at=FEBRUARY)
    commit(home.root, "p2", edited, at=FEBRUARY)
    outcome = home.sync()
    assert (outcome.families.changed, outcome.families.removed) == (1, 0)
    monkeypatch.setattr(runlog, "datetime", _shifted(lambda: -365 * years))
    home.rebuild()
    fresh = Home(tmp_path / "fresh", home.root, fts, chroma)
    fresh.rebuild()
    assert digests(home) == digests(fresh)


@pytest.mark.promise(10)
@pytest.mark.parametrize("how", ["sync", "rebuild"])
def test_a_clock_that_runs_backwards_in_a_run_decides_nothing(
    how: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time that it is asked it is a day earlier: whatever a run notes comes before what it noted first."""
    commit(home.root, "p2", source("docs/0.md", "edited", version="2", at=FEBRUARY), at=FEBRUARY)
    asked = count()
    monkeypatch.setattr(runlog, "datetime", _shifted(lambda: -next(asked)))
    home.sync() if how == "sync" else home.rebuild()
    assert next(asked) >= 2
    home.sync()
    fresh = Home(tmp_path / "fresh", home.root, fts, chroma)
    fresh.rebuild()
    assert digests(home) == digests(fresh)


def _shifted(days: Callable[[], int]) -> Any:
    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return datetime.datetime.now(tz) + datetime.timedelta(days=days())

    return Shifted
