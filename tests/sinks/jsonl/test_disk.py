"""Files are synced before they count, and a failing disk is reported correctly."""

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from chunksink.sinks.conformance.samples import hashes_in, hashes_of, marker
from chunksink.sinks.errors import OutOfResources, Refused, SinkError, Transient
from chunksink.sinks.jsonl import JsonlBuild, JsonlSink
from chunksink.sinks.jsonl.build import FAMILIES
from tests.support.jsonl import BEFORE, NEW, OLD, as_files, change, file_of, fill, prepared, visible


def test_files_are_synced_before_they_count(build: JsonlBuild, folder: Path) -> None:
    """A file is renamed only after its content is on the disk, and every changed folder is synced afterwards."""
    fill(build, BEFORE)
    synced: list[int] = []
    changed: dict[int, int] = {}  # folders, each with the number of syncs before its last change
    fsync, replace, unlink = os.fsync, os.replace, os.unlink

    def noted_fsync(handle: int) -> None:
        fsync(handle)
        synced.append(os.fstat(handle).st_ino)

    def noted_replace(old: Path, new: Path) -> None:
        assert Path(old).stat().st_ino in synced, "renamed before its content was on the disk"
        replace(old, new)
        changed[Path(new).parent.stat().st_ino] = len(synced)

    def noted_unlink(path: Path) -> None:
        unlink(path)
        changed[Path(path).parent.stat().st_ino] = len(synced)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", noted_fsync)
        patch.setattr(os, "replace", noted_replace)
        patch.setattr(os, "unlink", noted_unlink)
        change(build)
    assert len(changed) == 3
    for inode, moment in changed.items():
        assert inode in synced[moment:], "a folder that changed was not synced afterwards"
    assert (folder / FAMILIES).stat().st_ino in synced, "new folders are entries of this one"


@pytest.mark.parametrize(
    ("code", "kind", "remedy"),
    [
        (errno.ENOSPC, Transient, "free disk space"),
        (errno.EDQUOT, Transient, "free disk space"),
        (errno.EIO, Transient, "check the disk"),
        (errno.EMFILE, OutOfResources, "open files"),
        (errno.ENFILE, OutOfResources, "open files"),
        (errno.ENOMEM, OutOfResources, "memory"),
        (errno.EROFS, Refused, "permissions"),
        (errno.EACCES, Refused, "permissions"),
    ],
)
def test_errors_name_the_remedy(
    build: JsonlBuild, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[SinkError], remedy: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(kind, match=remedy):
        build.replace([NEW])


def test_unknown_error_keeps_its_traceback(build: JsonlBuild, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EDOM, "nobody expects this")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="nobody expects this"):
        build.replace([NEW])


def test_read_only_folder_is_refused() -> None:
    place = Path(tempfile.mkdtemp())  # a folder that another user can reach, too
    mine = os.geteuid()
    try:
        prepared(place)
        folder = place / "b1"
        for path in (place, *place.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        if mine == 0:
            os.seteuid(65534)  # root may write everywhere
        sink = JsonlSink(place)
        build = sink.open("b1")
        assert hashes_in(build) == hashes_of(BEFORE), "reading needs no right to write"
        for call in (
            lambda: build.replace([NEW]),
            lambda: build.sign(marker()),
            lambda: sink.create(marker()),
            lambda: sink.flip(None, "b1"),
            lambda: sink.drop("b1"),
        ):
            with pytest.raises(Refused, match="correct its permissions"):
                call()
        build.delete([OLD.parent_id])
        with pytest.raises(Refused, match="correct its permissions"):
            build.flush()
        assert visible(folder) == as_files(BEFORE)
        os.seteuid(mine)
        file_of(folder, OLD).parent.chmod(0o000)
        if mine == 0:
            os.seteuid(65534)
        with pytest.raises(Refused, match="correct its permissions"):
            hashes_in(build)  # a build that cannot be read is not absent
    finally:
        os.seteuid(mine)
        for path in [place, *place.rglob("*")]:
            path.chmod(0o755)
        for path in place.rglob("*"):
            path.chmod(0o755)
        shutil.rmtree(place)
