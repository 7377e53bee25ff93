"""One writer per partition: a second one waits or fails, and a killed one does not block others."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from chunksink.chunkbus.errors import PartitionLocked
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.reader import read_partition
from chunksink.chunkbus.writer import PartitionWriter
from tests.chunkbus.crash_writer import version, write
from tests.chunkbus.samples import validate
from tests.conftest import ROOT

HOLD = """
import sys, time
from pathlib import Path
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.writer import PartitionWriter
with PartitionWriter(FolderRoot(Path(sys.argv[1])), "k"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(root: FolderRoot) -> subprocess.Popen[str]:
    """A process that holds the partition until its standard input closes."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(root.path)], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_writer_when_another_process_writes_raises_partition_locked(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    write(root, "k", 1)
    with holder(root) as process:
        with (
            pytest.raises(PartitionLocked),
            PartitionWriter(root, "k", lock_seconds=0.2),
        ):
            pass
        write(root, "other", 2)  # another partition is free
        assert [record for _, record in read_partition(root, "k")] == version(1)  # and so are readers
        process.communicate("")
    write(root, "k", 3)
    assert [record for _, record in read_partition(root, "k")] == version(3)


def test_writer_when_another_process_writes_waits(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    with holder(root) as process:
        assert process.stdin is not None
        release = threading.Timer(0.5, process.stdin.close)
        started = time.monotonic()
        release.start()
        write(root, "k", 1)
        assert time.monotonic() - started >= 0.4
        release.join()
    assert validate(root) == []


def test_writer_when_another_thread_writes_raises_partition_locked(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    with PartitionWriter(root, "k"):
        with pytest.raises(PartitionLocked), PartitionWriter(root, "k", lock_seconds=0):
            pass
        with PartitionWriter(root, "k2", lock_seconds=0):
            pass
    with PartitionWriter(root, "k", lock_seconds=0):
        pass


def test_writer_when_the_lock_is_of_a_dead_process_writes(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    with holder(root) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    started = time.monotonic()
    with PartitionWriter(root, "k", lock_seconds=0):
        pass
    assert time.monotonic() - started < 5
    assert {path.name for path in root.canonical.iterdir()} == {".k.lock"}


def test_two_writers_at_once_leave_one_complete_version(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path)
    commands = [
        [sys.executable, "-m", "tests.chunkbus.crash_writer", str(tmp_path), "k", first, "25"] for first in ("1", "101")
    ]
    processes = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    assert [process.wait() for process in processes] == [0, 0]
    assert [record for _, record in read_partition(root, "k")] in (version(25), version(125))
    assert validate(root) == []
    assert {path.name for path in root.canonical.iterdir()} == {"k.jsonl", ".k.lock"}
