"""A kill at any point leaves the old partition or the new one, and the next writer cleans up."""

import hashlib
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.reader import read_partition
from chunksink.chunkbus.writer import PartitionWriter
from tests.chunkbus.crash_writer import version, write, write_until
from tests.chunkbus.faults import Faults
from tests.chunkbus.samples import chunk, commit, validate
from tests.conftest import ROOT, examples

KEY = "2026-01-31"


def calls_of_a_commit(root: FolderRoot, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with monkeypatch.context() as patch:
        faults = Faults(patch, fail_at=10**9)
        write(root, KEY, 2)
    return faults.calls


def test_commit_makes_files_durable_before_it_renames_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses no file, a crashed machine does."""
    calls = calls_of_a_commit(FolderRoot(tmp_path), monkeypatch)
    chunks, folder, manifest = (["fsync", "replace"], ["fsync"], ["fsync", "replace"])
    lasting = [call for call in calls if call in ("fsync", "replace", "rename")]
    assert lasting == [*chunks, *folder, *manifest, *folder, "replace", *folder]


def read(root: FolderRoot) -> list[Record]:
    return [record for _, record in read_partition(root, KEY)]


def names(root: FolderRoot) -> list[str]:
    return sorted(path.name for folder in (root.canonical, root.manifests) for path in folder.iterdir())


TIDY = [f".{KEY}.lock", f"{KEY}.jsonl", f"{KEY}.manifest.json"]


@pytest.mark.parametrize("existing", [True, False], ids=["replacing", "first"])
def test_writer_when_killed_before_any_call_leaves_one_complete_version(
    existing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(name: str) -> FolderRoot:
        root = FolderRoot(tmp_path / name)
        root.canonical.mkdir(parents=True)
        if existing:
            write(root, KEY, 1)
        return root

    calls = calls_of_a_commit(begun("whole"), monkeypatch)
    _, commit, _ = (number for number, call in enumerate(calls, 1) if call == "replace")
    for number in range(1, len(calls) + 1):
        root = begun(str(number))
        write_until(root, KEY, 2, number)
        is_new = number > commit
        is_there = is_new or existing
        expected = version(2 if is_new else 1)
        assert root.partition_keys() == ([KEY] if is_there else [])
        assert not is_there or read(root) == expected
        assert validate(root) == []
        # A writer that ends without a commit finishes the rename and leaves no files.
        with PartitionWriter(root, KEY):
            pass
        assert names(root) == (TIDY if is_there else TIDY[:1])
        assert not is_there or read(root) == expected
        assert validate(root) == []
        write(root, KEY, 3)
        assert names(root) == TIDY
        assert read(root) == version(3)


@pytest.mark.parametrize("second", range(1, 5))
def test_writer_when_killed_twice_leaves_one_complete_version(second: int, tmp_path: Path) -> None:
    """The second writer first finishes the rename of the first one. Its third rename is its commit."""
    root = FolderRoot(tmp_path)
    write(root, KEY, 1)
    write_until(root, KEY, 2, 3, ["replace"])
    write_until(root, KEY, 3, second, ["replace"])
    assert read(root) == version(3 if second == 4 else 2)
    assert validate(root) == []
    write(root, KEY, 4)
    assert names(root) == TIDY
    assert read(root) == version(4)


def test_writer_when_killed_at_any_instant_leaves_one_complete_version(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    chance = random.Random(1)
    write(root, KEY, 0)
    for _ in range(examples(9)):
        command = [sys.executable, "-m", "tests.chunkbus.crash_writer", str(root.path), KEY, "forever"]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()  # it is at work
            time.sleep(chance.random() / 20)
            process.kill()
            last = max(int(line) for line in ["1", *process.stdout.read().split()])
        # The last reported version is durable; the next one may be committed too.
        assert read(root) in (version(last), version(last + 1))
        assert validate(root) == []
    write(root, KEY, 3)
    assert names(root) == TIDY


def test_reader_during_commits_never_sees_a_mixture(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    write(root, KEY, 0)
    command = [sys.executable, "-m", "tests.chunkbus.crash_writer", str(root.path), KEY, "1", "200"]
    rounds, seen = 0, set[str]()
    with subprocess.Popen(command, cwd=ROOT) as process:
        while process.poll() is None:
            file, manifest = root.open(KEY)
            with file:
                data = file.read()
            assert manifest is not None
            checksum = "sha256:" + hashlib.sha256(data).hexdigest()
            assert json.loads(manifest)["checksums"]["chunks_file"] == checksum
            if rounds % 10 == 0:
                assert validate(root) == []
            seen.add(checksum)
            rounds += 1
    assert process.returncode == 0
    assert read(root) == version(200)
    assert rounds > 50
    assert len(seen) > 10


@pytest.mark.parametrize("content", [b"", b"{\n", b"not what its name says\n"])
def test_waiting_file_with_a_wrong_checksum_is_ignored(content: bytes, tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    commit(root, "p", [chunk(0), chunk(1)])
    before = root.chunks_file("p").read_bytes()
    root.waiting_file("p", hashlib.sha256(before).hexdigest()).write_bytes(content)
    assert validate(root) == []
    assert [record["chunk_id"] for _, record in read_partition(root, "p")] == ["chunk-0", "chunk-1"]
    with PartitionWriter(root, "p"):
        pass
    assert root.chunks_file("p").read_bytes() == before
    assert validate(root) == []
