"""When `chunksink sync --watch` syncs. tests/journey/test_watch.py runs it as a process."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.chunkbus.errors import StorageError
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.watch import BusWatch


class Watched:
    """A watch after its first sync, with a clock that the test moves."""

    def __init__(self, root: FolderRoot) -> None:
        self.root = root
        self.now = 0.0
        self.reports: list[str] = []
        self.while_it_rests: Callable[[], None] = lambda: None
        self.watch = BusWatch(root, self.reports.append, clock=lambda: self.now, sleep=lambda _: self.while_it_rests())
        self.steps = iter(self.watch)
        next(self.steps)

    def is_due(self) -> bool:
        return self.watch.is_due()


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    (tmp_path / "chunks" / "canonical").mkdir(parents=True)
    return Watched(FolderRoot(tmp_path / "chunks"))


def commit(root: FolderRoot, name: str) -> None:
    waiting = root.manifests / f".{name}"
    waiting.write_text("{}")
    waiting.rename(root.manifests / name)


def test_a_commit_during_a_sync_is_followed_by_another_one(watched: Watched) -> None:
    commit(watched.root, "p1.manifest.json")
    next(watched.steps)
    assert not watched.is_due()


def test_only_commits_are_due_and_simultaneous_ones_count_once(watched: Watched) -> None:
    commit(watched.root, "p1.manifest.json")
    watched.while_it_rests = lambda: commit(watched.root, "p2.manifest.json")
    assert watched.is_due()
    assert not watched.is_due()
    for name in (".p1.manifest.json", "notes.txt"):
        (watched.root.manifests / name).write_text("{}")
    assert not watched.is_due()
    commit(watched.root, "p1.manifest.json")
    assert watched.is_due()


def test_failures_are_retried_with_growing_waits(watched: Watched) -> None:
    assert [watched.watch.failed() for _ in range(6)] == [5, 10, 20, 40, 60, 60]
    watched.now += 59
    assert not watched.is_due()
    watched.now += 1
    assert watched.is_due()
    watched.watch.settled()
    watched.now += 1000
    assert not watched.is_due()
    assert watched.watch.failed() == 5


def test_commit_is_due_before_the_next_retry(watched: Watched) -> None:
    watched.watch.failed()
    commit(watched.root, "p1.manifest.json")
    assert watched.is_due()


def test_any_new_file_is_due_while_a_partition_is_held(watched: Watched) -> None:
    """Files that are copied by hand may arrive in any order."""
    watched.watch.held()
    watched.now += 100
    assert not watched.is_due()
    (watched.root.canonical / "p1.jsonl").write_text("{}\n")
    watched.now += 100
    assert watched.is_due()
    watched.watch.settled()
    watched.now += 100
    (watched.root.canonical / "p2.jsonl").write_text("{}\n")
    assert not watched.is_due()


def replace_the_manifests(root: FolderRoot) -> None:
    root.manifests.rename(root.path / "old")
    root.manifests.mkdir()


def replace_the_root(root: FolderRoot) -> None:
    root.path.rename(root.path.with_name("old"))
    root.manifests.mkdir(parents=True)


def link_a_release(root: FolderRoot) -> None:
    root.path.rename(root.path.with_name("old"))
    shutil.copytree(root.path.with_name("old"), root.path.with_name("new"))
    root.path.symlink_to("new")


@pytest.mark.parametrize("replace", [replace_the_manifests, link_a_release, replace_the_root])
def test_replaced_folder_is_synced_and_watched(replace: Callable[[FolderRoot], None], watched: Watched) -> None:
    replace(watched.root)
    assert watched.is_due()
    assert not watched.is_due()
    commit(watched.root, "p1.manifest.json")
    assert watched.is_due()


def test_missing_folder_is_reported_once_and_watched_until_it_returns(watched: Watched) -> None:
    commit(watched.root, "p1.manifest.json")
    assert watched.is_due()
    shutil.rmtree(watched.root.path)
    assert not watched.is_due()
    assert not watched.is_due()
    [report] = watched.reports
    assert str(watched.root.manifests) in report
    watched.root.manifests.mkdir(parents=True)
    assert watched.is_due()


@pytest.mark.parametrize(
    ("seconds", "fails", "pause"), [(0, False, 0.5), (2, False, 40), (240, False, 60), (240, True, 0.5)]
)
def test_pause_after_a_check_is_limited_and_does_not_follow_a_failed_check(
    seconds: float, fails: bool, pause: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The storage answers after some seconds, or fails after them."""
    (tmp_path / "canonical").mkdir()
    root, now, pauses = FolderRoot(tmp_path), [0.0], list[float]()

    class Ended(Exception):
        pass

    def rest(wanted: float) -> None:
        pauses.append(wanted)
        if len(pauses) == 2:
            raise Ended

    watch = BusWatch(root, lambda _: None, clock=lambda: now[0], sleep=rest)
    steps = iter(watch)
    next(steps)
    committed = root.committed

    def late() -> frozenset[object]:
        now[0] += seconds
        if fails:
            raise StorageError("unreachable")
        return committed()

    monkeypatch.setattr(root, "committed", late)
    with pytest.raises(Ended):
        next(steps)
    assert pauses == [root.poll_seconds, pause]
