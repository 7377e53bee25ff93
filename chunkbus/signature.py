"""Detects changed files by comparing size, times and inode with earlier values."""

import os
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MAX_TICK_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Signature:
    """The properties of a file that change with its content."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Signature":
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def numbers(self) -> tuple[int, int, int, int]:
        """The signature for a database. Some file systems have times and inodes beyond 64 bits; these wrap around."""
        return self.size, _as_int64(self.mtime_ns), _as_int64(self.ctime_ns), _as_int64(self.inode)

    def is_settled(self, noted_ns: int) -> bool:
        """Whether every change after `noted_ns` changes the signature; if not, an equal signature proves nothing."""
        remaining_ns = self.settles_in_ns(noted_ns)
        return remaining_ns is not None and remaining_ns < 0

    def settles_in_ns(self, now_ns: int) -> int | None:
        """Nanoseconds until any further change is certain to get another timestamp; negative if it already is.

        A timestamp far in the future is ignored: it was set explicitly, or the clock was set back. None if both
        timestamps are ignored."""
        remaining = (stamp + _tick(stamp) - now_ns for stamp in (self.mtime_ns, self.ctime_ns))
        return max((each for each in remaining if each <= _MAX_TICK_NS), default=None)


def signatures_of(paths: Collection[Path]) -> list[Signature]:
    """The signatures of those files that exist and are accessible."""
    signatures = []
    for path in paths:
        with suppress(OSError):
            signatures.append(Signature.of(path.stat()))
    return signatures


def settled_signatures(paths: Collection[Path]) -> tuple[list[Signature], bool]:
    """The signatures of the existing files, and whether every later change will change them.

    Waits for the next tick of the file system's clock if that makes the second value true.
    """
    while True:
        signatures = signatures_of(paths)
        remaining = [signature.settles_in_ns(time.time_ns()) for signature in signatures]
        waits = [each for each in remaining if each is not None]
        if len(waits) < len(remaining):  # a file whose times are in the future does not settle
            return signatures, False
        if max(waits, default=-1) < 0:
            return signatures, True
        time.sleep((max(waits) + 1_000_000) / 1e9)


def _as_int64(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def wait_a_tick() -> None:
    """Waits for one tick of a file system that stores fractions of seconds: a later change gets a later timestamp."""
    time.sleep(0.025)


def _tick(stamp: int) -> int:
    """The longest time between two changes that can get the same timestamp. Some file systems store only whole seconds,
    or only even ones."""
    return _MAX_TICK_NS if stamp % 1_000_000_000 == 0 else 20_000_000
