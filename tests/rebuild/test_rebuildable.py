"""Everything but the chunks can be lost, in every combination; and no clock decides anything."""

from __future__ import annotations

import datetime
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain, combinations, count
from pathlib import Path
from typing import Any

import pytest
import time_machine

from chunkbus import runlog
from chunkbus.layout import BusRoot
from tests.rebuild.engines import chroma, fts
from tests.rebuild.support import FEBRUARY, Home, commit, source
from tests.rebuild.wrapping import Moment, watching

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


def fresh_digests(home: Home, folder: Path) -> dict[str, str]:
    """Of an index made of the same chunks in a new home."""
    fresh = Home(Path(tempfile.mkdtemp(dir=folder)), home.root, fts, chroma)
    fresh.rebuild()
    return digests(fresh)


@pytest.mark.promise(1)
@pytest.mark.parametrize("lost", list(losses()), ids="+".join)
def test_whatever_is_lost_comes_back(lost: tuple[str, ...], built: Home, tmp_path: Path) -> None:
    shutil.copytree(built.folder, tmp_path / "home")
    home = Home(tmp_path / "home", built.root, fts, chroma)
    for name in lost:
        LOSSES[name](home)
    if "records" in lost:  # as `sync` does, where no index is known
        home.rebuild()
    else:
        home.sync()
    # Of a cache that is lost nothing is left to compare vectors with, but where they had to be computed again.
    judged = "cache" not in lost or not {"records", "chroma"}.isdisjoint(lost)
    assert digests(home, deep=judged) == digests(built)
    again = home.sync()
    assert sum(again.done.written.values()) == 0
    assert (again.families.added, again.families.changed, again.families.removed) == (0, 0, 0)


@pytest.fixture
def home(built: Home, tmp_path: Path) -> Home:
    """A copy, to be changed."""
    shutil.copytree(built.folder, tmp_path / "home")
    shutil.copytree(built.root.path, tmp_path / "chunks")
    return Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts, chroma)


YEARS = 10 * 365 * 24 * 3600
CLOCKS = {"ahead": YEARS, "behind": -YEARS}


@pytest.mark.promise(10)
@pytest.mark.parametrize("off", CLOCKS.values(), ids=CLOCKS)
def test_a_clock_that_is_wrong_decides_nothing(off: int, home: Home, tmp_path: Path) -> None:
    """Also when it jumps between two runs: only the chunks' own times rank them."""
    edited = source("docs/0.md", "edited", version="2", at=FEBRUARY)
    with time_machine.travel(time.time() + off) as clock:
        commit(home.root, "p2", edited, at=FEBRUARY)
        outcome = home.sync()
        assert (outcome.families.changed, outcome.families.removed) == (1, 0)
        clock.shift(-2 * off)
        home.rebuild()
        assert digests(home) == fresh_digests(home, tmp_path)
    assert digests(home) == fresh_digests(home, tmp_path)


@pytest.mark.promise(10)
@pytest.mark.parametrize("off", CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize("how", ["sync", "rebuild"])
def test_a_clock_that_jumps_in_mid_run_decides_nothing(how: str, off: int, home: Home, tmp_path: Path) -> None:
    commit(home.root, "p2", source("docs/0.md", "edited", version="2", at=FEBRUARY), at=FEBRUARY)
    jumped = []
    with time_machine.travel(time.time()) as clock:

        def jump() -> None:
            clock.shift(off)
            jumped.append(True)

        wrap = watching("fts", Moment("flush", 1, jump))
        home.sync(wrap=wrap) if how == "sync" else home.rebuild(wrap=wrap)
        assert jumped
        home.sync()
        assert digests(home) == fresh_digests(home, tmp_path)


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
    assert digests(home) == fresh_digests(home, tmp_path)


def _shifted(days: Callable[[], int]) -> Any:
    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return datetime.datetime.now(tz) + datetime.timedelta(days=days())

    return Shifted
