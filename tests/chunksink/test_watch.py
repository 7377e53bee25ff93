"""What `chunksink sync --watch` takes for a commit. The whole of it runs in `tests/journey/test_watch.py`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from chunksink.commands.sync import _commits

QUIET = 1.5
"""Seconds after which nothing comes any more."""


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    (tmp_path / "chunks").mkdir()
    return tmp_path / "chunks" / "manifest"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor()
    yield pool
    pool.shutdown(wait=False, cancel_futures=True)


def commit(manifests: Path, name: str) -> None:
    waiting = manifests / f".{name}"
    waiting.write_text("{}")
    waiting.rename(manifests / name)


def test_what_is_committed_during_the_first_sync_is_followed_by_another(
    manifests: Path, pool: ThreadPoolExecutor
) -> None:
    commits = _commits(manifests)
    next(commits)
    commit(manifests, "p1.manifest.json")
    pool.submit(next, commits).result(20)


def test_only_commits_count_and_several_at_once_are_one(manifests: Path, pool: ThreadPoolExecutor) -> None:
    commits = _commits(manifests)
    next(commits)
    for number in range(50):
        commit(manifests, f"p{number}.manifest.json")
    pool.submit(next, commits).result(20)
    following: Future[None] = pool.submit(next, commits)
    for name in (".p1.manifest.json", "notes.txt"):
        (manifests / name).write_text("{}")
    with pytest.raises(TimeoutError):
        following.result(QUIET)
    commit(manifests, "p1.manifest.json")
    following.result(20)
