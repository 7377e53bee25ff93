"""A killed backup leaves the old file. A killed restore can be repeated or completed by the next run."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chunksink.backup import backup, restore
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.exits import Exit
from tests.conftest import HEAVY
from tests.crash import dying
from tests.crash.homes import committed_texts, copied, found_by_readers, home_in, move_on, prepare
from tests.support.forking import FORKING
from tests.support.home import Home, digests

pytestmark = pytest.mark.promise(2)

OURS = "chunksink.backup"
WRITING = [
    ("_copy_database", 1),
    ("_copy_database", 2),
    ("_digest", 1),
    ("_digest", 3),
    ("make_durable", 1),
    ("make_durable", 2),
]
RESTORING = [
    *(("_digest", call) for call in (1, 3)),
    *(("_set_aside", call) for call in range(1, 7)),
    ("_swap", 1),
]
RUNS: dict[str, Callable[[Path, Path], object]] = {
    "backup": backup,
    "restore": restore,
    "force": lambda home, file: restore(home, file, force=True),
}


def run(which: str, home: str, file: str, method: str, call: int, when: str, act: str) -> None:
    """Runs in the other process."""
    dying.act_at(OURS, "", method, call, when, act)
    with dying.ending_as_a_command():
        RUNS[which](Path(home), Path(file))


def ended(which: str, home: Home, file: Path, method: str, call: int, when: str, act: str = "dies") -> int | None:
    process = FORKING.Process(target=run, args=(which, str(home.folder), str(file), method, call, when, act))
    process.start()
    process.join(120)
    return process.exitcode


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Copies of a home that has changed since it was backed up to `backup.tar.gz`."""
    home = prepare(tmp_path_factory.mktemp("prepared"))
    backup(home.folder, home.folder.parent / "backup.tar.gz")
    move_on(home, "sync")
    home.sync()
    return lambda: copied(home, tmp_path_factory.mktemp("copy") / "of")


@pytest.fixture(scope="module")
def expected(prepared: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    fresh = home_in(tmp_path_factory.mktemp("fresh") / "home", FolderRoot(prepared().root.path))
    fresh.rebuild()
    return digests(fresh)


def kills(steps: list[tuple[str, int]]) -> list[Any]:
    return [
        pytest.param(method, call, when, id=f"{method}-{call}-{when}")
        for number, (method, call) in enumerate(steps)
        for when in (("before", "after") if HEAVY else (("before", "after")[number % 2],))
    ]


@pytest.mark.parametrize(("method", "call", "when"), kills(WRITING))
def test_backup_when_killed_leaves_the_old_file(
    method: str, call: int, when: str, prepared: Any, expected: dict[str, str]
) -> None:
    home: Home = prepared()
    file = home.folder.parent / "backup.tar.gz"
    before = file.read_bytes()
    assert ended("backup", home, file, method, call, when) == -signal.SIGKILL
    assert (file.read_bytes() == before) == ((method, call) != ("make_durable", 2))
    assert digests(home) == expected
    backup(home.folder, file)
    assert not list(file.parent.glob("*.partial")) and not list(file.parent.glob(".*.partial"))
    shutil.rmtree(home.folder)
    restore(home.folder, file)
    home.sync()
    assert digests(home) == expected


@pytest.mark.parametrize("which", ["restore", "force"])
@pytest.mark.parametrize(("method", "call", "when"), kills(RESTORING))
def test_restore_when_killed_is_repeated_or_left_to_the_next_run(
    method: str, call: int, when: str, which: str, prepared: Any, expected: dict[str, str], tmp_path: Path
) -> None:
    home: Home = prepared()
    file = home.folder.parent / "backup.tar.gz"
    if which == "restore":
        shutil.rmtree(home.folder)
    assert ended(which, home, file, method, call, when) == -signal.SIGKILL
    left = copied(home, tmp_path / "left")
    left.sync() if (left.folder / "state.db").exists() else left.rebuild()
    assert digests(left) == expected
    has_index = (home.folder / "state.db").exists()
    restore(home.folder, file, force=has_index)
    assert not (home.folder / "restore.partial").exists()
    assert committed_texts(home, {"okapi 3"}) == {"okapi 3"}
    home.sync()
    assert digests(home) == expected
    assert found_by_readers(home)


@pytest.mark.parametrize(("method", "call"), [("_copy_database", 1), ("_copy_database", 2), ("_digest", 1)])
def test_backup_on_a_full_disk_is_an_error_and_leaves_no_file(method: str, call: int, prepared: Any) -> None:
    """From then on no file of the process can grow."""
    home: Home = prepared()
    file = home.folder.parent / "other.tar.gz"
    assert ended("backup", home, file, method, call, "before", "no room") == Exit.ENGINE
    assert not list(file.parent.glob("*other*"))
    backup(home.folder, file)


@pytest.mark.parametrize(("method", "code"), [("_digest", Exit.ENGINE), ("_set_aside", Exit.OK)])
def test_restore_on_a_full_disk_changes_nothing_or_is_complete(
    method: str, code: Exit, prepared: Any, expected: dict[str, str]
) -> None:
    home: Home = prepared()
    assert ended("force", home, home.folder.parent / "backup.tar.gz", method, 1, "before", "no room") == code
    assert not (home.folder / "restore.partial").exists()
    home.sync()
    assert digests(home) == expected
