"""Build folders: safe names and links, and builds that are created and removed as a whole."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.sinks import build_folders
from chunksink.sinks.chroma import EmbeddedChromaSink
from chunksink.sinks.contract import Marker, Sink
from chunksink.sinks.errors import BuildMissing
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.jsonl import JsonlSink


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "/etc", "a\0b", ".hidden", "x" * 65, "é", "a\n", "-x", "C:"]
)
def test_build_id_is_never_a_path(tmp_path: Path, name: str) -> None:
    for call in (
        build_folders.folder,
        build_folders.existing_folder,
        build_folders.remove,
        lambda root, name: build_folders.create(root, name, print),
    ):
        with pytest.raises(ValueError, match="invalid build id"):
            call(tmp_path, name)


def test_builds_are_listed_and_removed(tmp_path: Path) -> None:
    assert build_folders.build_ids(tmp_path / "not there") == []
    for name in ("b2", "b1", ".b3.half-made"):
        (tmp_path / name).mkdir()
    (tmp_path / "b1" / "file").write_text("x")
    (tmp_path / "a file").write_text("x")
    assert build_folders.build_ids(tmp_path) == ["b1", "b2"]
    build_folders.remove(tmp_path, "b1")
    build_folders.remove(tmp_path, "b1")
    assert build_folders.build_ids(tmp_path) == ["b2"]
    assert not list(tmp_path.glob(".b1*"))
    with pytest.raises(BuildMissing, match="chunksink sync`"):
        build_folders.existing_folder(tmp_path, "b1")


def test_remains_of_a_killed_removal_go_with_the_next(tmp_path: Path) -> None:
    (tmp_path / ".b1.0123").mkdir()
    build_folders.remove(tmp_path, "b1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("leads", ["outside", "to a build", "nowhere"])
def test_link_is_no_build_and_its_target_stays(tmp_path: Path, leads: str) -> None:
    root, outside = tmp_path / "builds", tmp_path / "precious"
    for path in (root / "b1", outside):
        path.mkdir(parents=True)
        (path / "file").write_text("x")
    (root / "b1" / "out").symlink_to(outside)
    target = {"outside": outside, "to a build": root / "b1", "nowhere": tmp_path / "gone"}[leads]
    for name in ("b2", ".b2.0123"):  # also if a removal searches for the remains of a kill
        (root / name).symlink_to(target)
    assert build_folders.build_ids(root) == ["b1"]
    with pytest.raises(BuildMissing, match="symbolic link"):
        build_folders.existing_folder(root, "b2")
    build_folders.remove(root, "b2")
    assert (root / "b2").readlink() == target
    assert (root / "b1" / "file").exists()
    build_folders.remove(root, "b1")
    assert build_folders.build_ids(root) == []
    assert (outside / "file").exists()


def test_folder_of_all_builds_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk" / "b1").mkdir(parents=True)
    root = tmp_path / "builds"
    root.symlink_to(tmp_path / "disk")
    assert (build_folders.build_ids(root), build_folders.existing_folder(root, "b1")) == (["b1"], root / "b1")
    build_folders.remove(root, "b1")
    assert list((tmp_path / "disk").iterdir()) == []


@pytest.mark.parametrize("kind", [FtsSink, JsonlSink])
def test_sink_drops_nothing_through_a_link(tmp_path: Path, kind: type[FtsSink | JsonlSink]) -> None:
    sink, elsewhere = kind(tmp_path / "ours"), kind(tmp_path / "theirs")
    elsewhere.create(Marker("home", "b1", 1)).close()
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "b1").symlink_to(tmp_path / "theirs" / "b1")
    ours: Sink = sink
    assert ours.builds() == []
    ours.drop("b1")
    with pytest.raises(BuildMissing):
        ours.open("b1")
    assert elsewhere.open("b1").marker() == Marker("home", "b1", 1)


def test_build_has_its_name_only_when_complete(tmp_path: Path) -> None:
    root = tmp_path / "new" / "builds"
    seen: list[Path] = []

    def fill(folder: Path) -> None:
        seen.append(folder)
        (folder / "file").write_text("whole")
        assert build_folders.build_ids(root) == []
        assert folder.parent == root

    build_folders.create(root, "b1", fill)
    assert build_folders.build_ids(root) == ["b1"]
    assert (root / "b1" / "file").read_text() == "whole"
    build_folders.create(root, "b1", fill)
    assert len(seen) == 1, "one that is there is left as it is"


def test_failed_creation_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_folders.create(tmp_path, "b1", fail)
    assert list(tmp_path.iterdir()) == []


def test_build_name_is_synced_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that failed to sync the name does so on its next attempt, although the build exists by then."""
    fsync = os.fsync
    synced: list[str] = []

    def noted(handle: int) -> None:
        if not synced:
            synced.append("failed")
            raise OSError("not now")
        fsync(handle)
        assert os.fstat(handle).st_ino == tmp_path.stat().st_ino
        synced.append(" ".join(build_folders.build_ids(tmp_path)))

    monkeypatch.setattr(os, "fsync", noted)
    with pytest.raises(OSError, match="not now"):
        build_folders.create(tmp_path, "b1", lambda _: None)
    build_folders.create(tmp_path, "b1", lambda _: None)
    assert synced == ["failed", "b1"]


@pytest.mark.parametrize("open_sink", [FtsSink, JsonlSink, EmbeddedChromaSink])
def test_build_is_readable_by_its_owner_only(tmp_path: Path, open_sink: Callable[[Path], Sink]) -> None:
    """Also below a folder that other users may read."""
    tmp_path.chmod(0o755)
    sink = open_sink(tmp_path)
    sink.create(Marker("home", "b1", 1), 8).close()
    sink.close()
    assert stat.S_IMODE((tmp_path / "b1").stat().st_mode) == 0o700
