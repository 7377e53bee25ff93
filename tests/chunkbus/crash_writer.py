"""A process that writes partitions. It can die at a chosen point, as `kill -9` would have it.

python -m tests.chunkbus.crash_writer ROOT KEY forever                       commits version after version
python -m tests.chunkbus.crash_writer ROOT KEY VERSION COUNT                 commits so many versions
"""

import os
import signal
import sys
from collections.abc import Collection
from itertools import count
from pathlib import Path

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.writer import PartitionWriter
from tests.chunkbus.faults import CALLS, Faults
from tests.chunkbus.samples import NOON, PRODUCER, chunk
from tests.support.forking import FORKING


def version(number: int) -> list[Record]:
    """The chunks of one version; versions differ in length, so that offsets move."""
    return [
        chunk(index, text=f"Version {number}, chunk {index}. " * (number % 7 + 1)) for index in range(number % 5 + 2)
    ]


def write(root: BusRoot, key: str, number: int) -> None:
    with PartitionWriter(root, key) as writer:
        for record in version(number):
            writer.add(record)
        writer.commit(documents=1, producer=PRODUCER, created_at=NOON)


def write_until(root: BusRoot, key: str, number: int, call: int, names: Collection[str] = CALLS) -> None:
    """Write in a process that dies just before its n-th call of these names."""
    process = FORKING.Process(target=_write_and_die, args=(root, key, number, call, names))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def _write_and_die(root: BusRoot, key: str, number: int, call: int, names: Collection[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        Faults(patch, call, names=names, act=lambda _: os.kill(os.getpid(), signal.SIGKILL))
        write(root, key, number)


def main(root: FolderRoot, key: str, arguments: list[str]) -> None:
    match arguments:
        case ["forever"]:
            for number in count(1):
                write(root, key, number)
                print(number, flush=True)  # noqa: T201 (shows the test its progress)
        case [first, times]:
            for number in range(int(first), int(first) + int(times)):
                write(root, key, number)


if __name__ == "__main__":
    main(FolderRoot(Path(sys.argv[1])), sys.argv[2], sys.argv[3:])
