"""What tells from outside that a file has changed: compared with what it was before, never with a clock alone."""

import os
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LONGEST_TICK_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Signature:
    """What changes with a file's content, as far as the system keeps it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Signature":
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def numbers(self) -> tuple[int, int, int, int]:
        """To keep and compare, as databases can hold them: there are file systems with times and inodes beyond."""
        return self.size, _as_int64(self.mtime_ns), _as_int64(self.ctime_ns), _as_int64(self.inode)

    def is_settled(self, noted_ns: int) -> bool:
        """False where a change after `noted_ns` could still have left the same times: then it proves nothing."""
        left_ns = self.settles_in_ns(noted_ns)
        return left_ns is not None and left_ns < 0

    def settles_in_ns(self, now_ns: int) -> int | None:
        """How long it takes until a change must leave other times. One time in the future was set by somebody, and the
        other one tells. None where both are: the clock that made them is another one, of which nothing is known."""
        left = (stamp + _tick(stamp) - now_ns for stamp in (self.mtime_ns, self.ctime_ns))
        return max((each for each in left if each <= _LONGEST_TICK_NS), default=None)


def signatures_of(paths: Collection[Path]) -> list[Signature]:
    """Of the files that are there and can be looked at."""
    found = []
    for path in paths:
        with suppress(OSError):
            found.append(Signature.of(path.stat()))
    return found


def settled_signatures(paths: Collection[Path]) -> tuple[list[Signature], bool]:
    """The signatures of the files that are there, and whether any later change will show in them.

    Waits for the next tick of the file system's clock where that makes the difference.
    """
    while True:
        found = signatures_of(paths)
        left = [signature.settles_in_ns(time.time_ns()) for signature in found]
        known = [each for each in left if each is not None]
        if len(known) < len(left) or max(known, default=-1) < 0:
            return found, len(known) == len(left)
        time.sleep((max(known) + 1_000_000) / 1e9)


def _as_int64(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def wait_a_tick() -> None:
    """Until a change would get another time than one that was just made."""
    time.sleep(0.025)


def _tick(stamp: int) -> int:
    """How far apart two changes may be and bear one time: some file systems keep whole, or even, seconds."""
    return _LONGEST_TICK_NS if stamp % 1_000_000_000 == 0 else 20_000_000
