"""A process that writes a partition and dies at a chosen point, as `kill -9` would have it.

python -m tests.chunkbus.crash_writer ROOT KEY VERSION before|after STEP    dies there
python -m tests.chunkbus.crash_writer ROOT KEY forever                       commits version after version
python -m tests.chunkbus.crash_writer ROOT KEY VERSION COUNT                 commits so many versions
"""

import io
import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.writer import COMMIT_STEPS, PartitionWriter
from tests.chunkbus.samples import NOON, PRODUCER, chunk


def version(number: int) -> list[Record]:
    """The chunks of one version; versions differ in length, so that offsets move."""
    return [
        chunk(index, text=f"Version {number}, chunk {index}. " * (number % 7 + 1)) for index in range(number % 5 + 2)
    ]


def write(root: BusRoot, key: str, number: int, on_step: Callable[[str], None] = lambda step: None) -> None:
    with PartitionWriter(root, key, on_step=on_step) as writer:
        for record in version(number):
            writer.add(record)
        writer.commit(documents=1, producer=PRODUCER, created_at=NOON)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DiesBefore:
    """Dies at the first file system call after the step before the chosen one."""

    def __init__(self, step: str) -> None:
        place = COMMIT_STEPS.index(step)
        self._last = COMMIT_STEPS[place - 1] if place else None
        self._armed = False
        for module, name in ((io, "open"), (os, "fsync"), (os, "replace"), (os, "rename")):
            setattr(module, name, self._guard(getattr(module, name)))
        if self._last is None:
            self._armed = True

    def __call__(self, step: str) -> None:
        self._armed |= step == self._last

    def _guard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **options: Any) -> Any:
            if self._armed:
                die()
            return function(*arguments, **options)

        return guarded


def dies_after(chosen: str) -> Callable[[str], None]:
    return lambda step: die() if step == chosen else None


def main(root: BusRoot, key: str, arguments: list[str]) -> None:
    match arguments:
        case ["forever"]:
            for number in count(1):
                write(root, key, number)
                print(number, flush=True)  # noqa: T201 (shows the test its progress)
        case [number, "before", step]:
            write(root, key, int(number), DiesBefore(step))
        case [number, "after", step]:
            write(root, key, int(number), dies_after(step))
        case [first, times]:
            for number in range(int(first), int(first) + int(times)):
                write(root, key, number)


if __name__ == "__main__":
    main(BusRoot(Path(sys.argv[1])), sys.argv[2], sys.argv[3:])
