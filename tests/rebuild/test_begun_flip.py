"""An unfinished flip: the next run completes it if all builds exist, and otherwise reverses it."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild.flip import roll_back
from chunksink.rebuild.state import Generation, State
from chunksink.sinks.errors import Refused
from tests.conftest import sampled
from tests.crash.homes import jsonl
from tests.support.bus import FEBRUARY, commit, projected, source
from tests.support.home import Home
from tests.support.local_engines import chroma, fts, memory
from tests.support.tampering import require_sound
from tests.support.watched_sinks import Moment, watching

pytestmark = [pytest.mark.promise(2), pytest.mark.promise(5)]

OLD, NEW = source("docs/a.md", "a cat", "a mat"), source("docs/a.md", "a dog", version="2", at=FEBRUARY)


@pytest.fixture
def home(tmp_path: Path, root: BusRoot) -> Home:
    home = Home(tmp_path / "home", root, fts, chroma, memory())
    commit(root, "p1", OLD)
    home.rebuild()
    return home


def die(_state: State, _generation: Generation) -> None:
    raise KeyboardInterrupt


def killed_in_the_flip(home: Home, monkeypatch: pytest.MonkeyPatch) -> Generation:
    """All sinks show the new builds, but the pointer is the old one. Returns the generation of the flip."""
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(State, "flip", die)
        home.rebuild()
    with State.existing(home.folder) as state:
        begun = state.begun_flip()
    assert begun is not None
    return begun


@pytest.mark.parametrize(("engine", "run"), sampled(product(["fts", "chroma"], ["sync", "repair", "rebuild"]), 5))
def test_flip_when_one_build_is_missing_is_finished_or_undone(
    engine: str, run: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = home.live()
    commit(home.root, "p1", NEW, at=FEBRUARY)
    begun = killed_in_the_flip(home, monkeypatch)
    shutil.rmtree(home.folder / engine / begun.builds[engine])
    if run == "rebuild":
        home.rebuild()
        assert home.live().id != live.id
    else:
        home.sync(scan=run == "repair")
        assert home.live().id == live.id
    with State.existing(home.folder) as state:
        assert state.begun_flip() is None
    assert set(map(str, home.contents())) == {"fts", "chroma", "memory"}
    assert all(documents == projected(NEW) for documents in home.contents().values())
    require_sound(home, tmp_path)


def test_flip_when_all_builds_are_missing_is_reported(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_in_the_flip(home, monkeypatch)
    for engine in ("fts", "chroma"):
        shutil.rmtree(home.folder / engine)
    home.sync()
    require_sound(home, tmp_path)


def test_flip_refused_by_a_sink_counts_as_not_started(home: Home, tmp_path: Path) -> None:
    live = home.live()

    def refuse() -> None:
        raise Refused("chroma will not show that")

    with pytest.raises(Refused, match="will not show"):
        home.rebuild(wrap=watching("chroma", Moment("flip", 1, refuse)))
    with State.existing(home.folder) as state:
        assert state.begun_flip() is None
    assert home.live().id == live.id
    commit(home.root, "p1", NEW, at=FEBRUARY)
    home.sync()
    assert all(documents == projected(NEW) for documents in home.contents().values())
    require_sound(home, tmp_path)


def test_interrupted_rollback_is_finished_by_the_next(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    first = home.live()
    home.rebuild()
    with monkeypatch.context() as patched, home.session() as session, session.lock():
        patched.setattr(State, "flip", die)
        with pytest.raises(KeyboardInterrupt):
            roll_back(session)
    with home.session() as session, session.lock():
        assert roll_back(session).id == first.id
    assert home.live().id == first.id


@pytest.mark.parametrize("run", ["sync", "rebuild"])
def test_public_link_to_a_removed_build_is_repaired(
    run: str, root: BusRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "home", root, jsonl, fts)
    commit(root, "p1", OLD)
    home.rebuild()
    begun = killed_in_the_flip(home, monkeypatch)
    shutil.rmtree(home.folder / "jsonl" / begun.builds["jsonl"])
    shutil.rmtree(home.folder / "fts" / begun.builds["fts"])
    home.sync() if run == "sync" else home.rebuild()
    assert (home.folder / "jsonl" / "current").resolve().name == home.live().builds["jsonl"]
    require_sound(home, tmp_path)
