"""A failing or full disk: an OSError, the old or the new partition, and a clean next run."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chunksink.chunkbus.errors import ChunkBusError
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.reader import read_partition
from chunksink.chunkbus.writer import PartitionWriter
from tests.chunkbus.crash_writer import version, write
from tests.chunkbus.faults import Faults
from tests.chunkbus.samples import validate
from tests.conftest import ROOT

KEY = "k"


def calls_of_one_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    with monkeypatch.context() as patch:
        faults = Faults(patch, fail_at=10**9, for_good=False)
        write(FolderRoot(folder), KEY, 1)
    return faults.calls


def test_faults_cover_every_call_of_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = calls_of_one_commit(tmp_path, monkeypatch)
    assert {"open", "write", "fsync", "replace"} <= set(calls)
    assert calls.count("fsync") >= 5  # chunks, manifest, and three times a folder
    assert calls.count("replace") == 3


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("existing", [True, False], ids=["replacing", "first"])
def test_commit_when_any_call_fails_leaves_one_complete_version(
    existing: bool, for_good: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = 0
    for fail_at in range(1, 100):
        root = FolderRoot(tmp_path / str(fail_at))
        if existing:
            write(root, KEY, 1)
        with monkeypatch.context() as patch:
            faults = Faults(patch, fail_at, for_good=for_good)
            try:
                write(root, KEY, 2)
            except (OSError, ChunkBusError):
                failed += 1
            else:
                assert not faults.struck or faults.calls[fail_at - 1] == "unlink", faults.calls
        _is_old_or_new(root, existing)
        # The lock is free again, and the next writer works.
        with PartitionWriter(root, KEY, lock_seconds=0):
            pass
        _is_old_or_new(root, existing)
        write(root, KEY, 3)
        assert [record for _, record in read_partition(root, KEY)] == version(3)
        assert {path.name for path in root.canonical.iterdir()} == {f"{KEY}.jsonl", f".{KEY}.lock"}
        assert {path.name for path in root.manifests.iterdir()} == {f"{KEY}.manifest.json"}
        if not faults.struck:
            break
    else:
        pytest.fail("the commit never ran to its end")
    assert failed >= 12


def _is_old_or_new(root: FolderRoot, existing: bool) -> None:
    if root.canonical.is_dir() or root.manifests.is_dir():
        assert validate(root) == []
        if root.partition_keys():
            assert [record for _, record in read_partition(root, KEY)] in (version(1), version(2))
        else:
            assert not existing


WRITE_UNDER_A_LIMIT = """
import resource, sys
from pathlib import Path
from chunksink.chunkbus.folder_partitions import FolderRoot
from tests.chunkbus.crash_writer import write
sys.dont_write_bytecode = True  # the limit would cut off these files, too
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    write(FolderRoot(Path(sys.argv[1])), "k", 6)
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.parametrize("limit", [0, 100, 1_000, 3_000])
def test_commit_when_file_size_is_limited_leaves_one_complete_version(limit: int, tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    write(root, KEY, 1)
    size = root.chunks_file(KEY).stat().st_size
    command = [sys.executable, "-c", WRITE_UNDER_A_LIMIT, str(tmp_path), str(limit)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode not in (-signal.SIGXFSZ, 1), done.stderr
    is_new = root.chunks_file(KEY).stat().st_size != size
    assert done.stdout.strip() == ("" if is_new else "File too large")
    assert [record for _, record in read_partition(root, KEY)] == version(6 if is_new else 1)
    assert is_new is (limit == 3_000)
    assert validate(root) == []
    assert not list(root.canonical.glob("*.new"))
