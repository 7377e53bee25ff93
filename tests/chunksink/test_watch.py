"""When `chunksink sync --watch` syncs. The whole of it runs in `tests/journey/test_watch.py`."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.watch import Watch
from tests.conftest import sampled

SOON = 20
QUIET = 1.5
"""Seconds after which nothing comes any more."""


class Watched:
    """A watch with a clock that is moved by hand; what it waits for may never come."""

    def __init__(self, root: BusRoot) -> None:
        self.root = root
        self.now = 0.0
        self.told: list[str] = []
        self.watch = Watch(root, self.told.append, clock=lambda: self.now)
        self._steps = iter(self.watch)
        next(self._steps)

    def next(self) -> Future[None]:
        following: Future[None] = Future()
        threading.Thread(target=lambda: following.set_result(next(self._steps)), daemon=True).start()
        return following

    def is_due(self) -> None:
        self.next().result(SOON)

    def is_not_due(self) -> Future[None]:
        """The step that is waited for."""
        following = self.next()
        with pytest.raises(TimeoutError):
            following.result(QUIET)
        return following


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    (tmp_path / "chunks" / "canonical").mkdir(parents=True)
    return Watched(BusRoot(tmp_path / "chunks"))


def commit(root: BusRoot, name: str) -> None:
    waiting = root.manifests / f".{name}"
    waiting.write_text("{}")
    waiting.rename(root.manifests / name)


def test_what_is_committed_during_the_first_sync_is_followed_by_another(watched: Watched) -> None:
    commit(watched.root, "p1.manifest.json")
    watched.is_due()


def test_only_commits_count_and_several_at_once_are_one(watched: Watched) -> None:
    for number in range(50):
        commit(watched.root, f"p{number}.manifest.json")
    watched.is_due()
    for name in (".p1.manifest.json", "notes.txt"):
        (watched.root.manifests / name).write_text("{}")
    following = watched.is_not_due()
    commit(watched.root, "p1.manifest.json")
    following.result(SOON)


def test_what_failed_is_tried_again_later_and_later(watched: Watched) -> None:
    assert [watched.watch.failed() for _ in range(6)] == [5, 10, 20, 40, 60, 60]
    watched.now += 59
    following = watched.is_not_due()
    watched.now += 1
    following.result(SOON)
    watched.watch.settled()
    watched.now += 1000
    following = watched.is_not_due()
    commit(watched.root, "p1.manifest.json")
    following.result(SOON)
    assert watched.watch.failed() == 5


def test_a_commit_does_not_wait_for_the_next_try(watched: Watched) -> None:
    watched.watch.failed()
    commit(watched.root, "p1.manifest.json")
    watched.is_due()


def test_while_something_is_held_any_file_that_comes_counts(watched: Watched) -> None:
    """Files that were copied by hand may come in any order."""
    watched.watch.held()
    watched.now += 100
    following = watched.is_not_due()
    (watched.root.canonical / "p1.jsonl").write_text("{}\n")
    watched.now += 100
    following.result(SOON)
    watched.watch.settled()
    watched.now += 100
    (watched.root.canonical / "p2.jsonl").write_text("{}\n")
    watched.is_not_due()


def replace_the_manifests(root: BusRoot) -> None:
    shutil.rmtree(root.manifests)
    root.manifests.mkdir()


def replace_the_root(root: BusRoot) -> None:
    root.path.rename(root.path.with_name("old"))
    root.manifests.mkdir(parents=True)


def link_a_release(root: BusRoot) -> None:
    root.path.rename(root.path.with_name("old"))
    shutil.copytree(root.path.with_name("old"), root.path.with_name("new"))
    root.path.symlink_to("new")


@pytest.mark.parametrize("replace", sampled([replace_the_manifests, link_a_release, replace_the_root], 3))
def test_another_folder_is_synced_and_watched(replace: Callable[[BusRoot], None], watched: Watched) -> None:
    for _ in range(2):
        following = watched.is_not_due()
        replace(watched.root)
        following.result(SOON)
        commit(watched.root, "p1.manifest.json")
        watched.is_due()
        replace = replace_the_manifests
    assert any("another folder" in line or "No such file" in line for line in watched.told)


def test_a_link_that_is_turned_to_another_release(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "manifest").mkdir(parents=True)
    (tmp_path / "chunks").symlink_to("one")
    watched = Watched(BusRoot(tmp_path / "chunks"))
    following = watched.is_not_due()
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").rename(tmp_path / "chunks")
    following.result(SOON)
    assert watched.told == [f"{tmp_path}/chunks/manifest is another folder now; watching that one"]
    commit(BusRoot(tmp_path / "two"), "p1.manifest.json")
    watched.is_due()


def test_a_folder_that_is_gone_is_told_once_and_waited_for(watched: Watched) -> None:
    shutil.rmtree(watched.root.path)
    following = watched.is_not_due()
    with pytest.raises(TimeoutError):
        following.result(QUIET)
    assert watched.told == [
        f"{watched.root.manifests}: No such file or directory; waiting for it, the index stays as it is"
    ]
    watched.root.manifests.mkdir(parents=True)
    following.result(SOON)
    commit(watched.root, "p1.manifest.json")
    watched.is_due()
