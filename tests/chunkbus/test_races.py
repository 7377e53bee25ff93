"""A writer commits between two steps of a reader. Each interleaving is forced, not random."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.chunkbus import folder_partitions
from chunksink.chunkbus.folder_partitions import FolderRoot
from tests.chunkbus.crash_writer import version, write, write_until
from tests.chunkbus.samples import lines_of

KEY = "k"
Stage = Callable[[str, Callable[[], object]], None]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Runs something once, just before the reader calls one of its functions."""

    def stage(function: str, event: Callable[[], object]) -> None:
        original = getattr(folder_partitions, function)
        events = [event]

        def interrupted(*arguments: object) -> object:
            if events:
                events.pop()()
            return original(*arguments)

        monkeypatch.setattr(folder_partitions, function, interrupted)

    return stage


def seen(root: FolderRoot) -> bytes:
    """The chunks that a reader gets; they must match its manifest."""
    file, manifest = root.open(KEY)
    with file:
        data = file.read()
    assert manifest is not None
    assert json.loads(manifest)["checksums"]["chunks_file"] == "sha256:" + hashlib.sha256(data).hexdigest()
    return data


def stop_before_the_rename(root: FolderRoot, number: int) -> None:
    """A commit whose writer was killed between the manifest and the chunks."""

    write_until(root, KEY, number, 3, ["replace"])


def test_a_whole_commit_between_manifest_and_chunks(tmp_path: Path, meanwhile: Stage) -> None:
    root = FolderRoot(tmp_path)
    write(root, KEY, 1)
    meanwhile("committed_checksum", lambda: write(root, KEY, 2))
    assert seen(root) == lines_of(version(2))


def test_half_a_commit_between_manifest_and_chunks(tmp_path: Path, meanwhile: Stage) -> None:
    root = FolderRoot(tmp_path)
    write(root, KEY, 1)
    meanwhile("committed_checksum", lambda: stop_before_the_rename(root, 2))
    assert seen(root) == lines_of(version(2))


def test_waiting_chunks_when_renamed_during_a_read_are_found(tmp_path: Path, meanwhile: Stage) -> None:
    root = FolderRoot(tmp_path)
    write(root, KEY, 1)
    stop_before_the_rename(root, 2)
    (waiting,) = root.canonical.glob(f".{KEY}.*.jsonl")
    meanwhile("_open_chunks", lambda: waiting.rename(root.chunks_file(KEY)))
    assert seen(root) == lines_of(version(2))


def test_first_commit_during_a_read_is_found(tmp_path: Path, meanwhile: Stage) -> None:
    root = FolderRoot(tmp_path)
    meanwhile("_is_at", lambda: write(root, KEY, 1))
    assert seen(root) == lines_of(version(1))


def test_manifest_replaced_and_restored_counts_as_changed(tmp_path: Path, meanwhile: Stage) -> None:
    """The manifest is the same before and after, but in between another version was committed."""
    root = FolderRoot(tmp_path)
    write(root, KEY, 1)
    meanwhile("committed_checksum", lambda: write(root, KEY, 2))
    meanwhile("_is_at", lambda: write(root, KEY, 1))
    assert seen(root) == lines_of(version(1))


def test_partition_removed_during_a_read_is_not_found(tmp_path: Path, meanwhile: Stage) -> None:
    root = FolderRoot(tmp_path)
    write(root, KEY, 1)
    meanwhile("committed_checksum", root.chunks_file(KEY).unlink)
    with pytest.raises(FileNotFoundError, match=r"k\.jsonl"):
        root.open(KEY)


def test_partition_that_is_open_does_not_change(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    write(root, KEY, 1)
    file, _ = root.open(KEY)
    with file:
        write(root, KEY, 2)
        assert file.read() == lines_of(version(1))
