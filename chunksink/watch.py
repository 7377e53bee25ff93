"""Decides when `chunksink sync --watch` syncs: at once, after each commit, and again after a failure that may pass.

The folder of manifests is polled by path, so replaced folders, links and network disks need no special case. A bucket
is listed every few seconds.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from chunksink.chunkbus.errors import StorageError
from chunksink.chunkbus.layout import BusRoot

FIRST_WAIT_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.5
_POLL_BUCKET_SECONDS = 5.0
_PAUSE_FACTOR = 20
"""The least pause after a check, in multiples of its duration: checking 100,000 partitions takes a moment."""

_Files = frozenset[tuple[object, ...]]


class BusWatch:
    """Each iteration waits until a sync is due. Then call `settled`, `failed` or `held`. Ctrl-C ends it."""

    def __init__(
        self,
        root: BusRoot,
        report: Callable[[str], object],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._root = root
        self._report = report
        self._clock = clock
        self._sleep = sleep
        self._manifests: _Files | None = None
        self._all_files: _Files = frozenset()
        self._is_gone = False
        self.settled()

    def settled(self) -> None:
        """The sync has ended, and only another commit makes the next one due."""
        self._wait = FIRST_WAIT_SECONDS
        self._retry_at: float | None = None
        self._check_all_at: float | None = None

    def failed(self) -> float:
        """The sync failed and may succeed later: the next one is due in the returned seconds, or with a commit."""
        seconds, self._wait = self._wait, min(2 * self._wait, LONGEST_WAIT_SECONDS)
        self._retry_at, self._check_all_at = self._clock() + seconds, None
        return seconds

    def held(self) -> None:
        """A partition is incomplete. Its chunks file may arrive without a commit, so any change makes a sync due."""
        self.settled()
        self._check_all_at = self._clock() + FIRST_WAIT_SECONDS

    def __iter__(self) -> Iterator[None]:
        if self._root.bucket is None:
            self._root.manifests.mkdir(exist_ok=True)
        while True:
            started = time.monotonic()
            if self.is_due():
                yield
                started = time.monotonic()
            poll_seconds = _POLL_BUCKET_SECONDS if self._root.bucket else _POLL_SECONDS
            self._sleep(max(poll_seconds, _PAUSE_FACTOR * (time.monotonic() - started)))

    def is_due(self) -> bool:
        """Check once. Commits at about the same time count as one."""
        try:
            files = self._committed()
            has_commit = files != self._manifests
            if has_commit and self._manifests is not None:
                self._sleep(_POLL_SECONDS)
                files = self._committed()
        except (OSError, StorageError) as error:
            if not self._is_gone:
                reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
                self._report(f"{reason}; waiting for it, the index is unchanged")
            self._is_gone = True
            return False
        self._is_gone = False
        if not (has_commit or self._is_check_due()):
            return False
        self._manifests, self._all_files = files, self._files()
        return True

    def _committed(self) -> _Files:
        if self._root.bucket is not None:
            return frozenset(self._root.bucket.versions())
        folder = os.stat(self._root.manifests)  # noqa: PTH116 (its error has the file's name, which `is_due` reports)
        files = _files_of(self._root.manifests, lambda name: name.endswith(".manifest.json") and name[0] != ".")
        return files | {(folder.st_dev, folder.st_ino)}

    def _is_check_due(self) -> bool:
        now = self._clock()
        if self._check_all_at is not None and now >= self._check_all_at:
            self._check_all_at = now + FIRST_WAIT_SECONDS
            return self._files() != self._all_files
        return self._retry_at is not None and now >= self._retry_at

    def _files(self) -> _Files:
        if self._root.bucket is not None:
            return frozenset((key, self._root.signature(key)) for key in self._root.partition_keys())
        files: _Files = frozenset()
        for folder in (self._root.canonical, self._root.manifests):
            with suppress(OSError):
                files |= _files_of(folder, lambda _: True)
        return files


def _files_of(folder: Path, counts: Callable[[str], bool]) -> _Files:
    """What identifies a version of each of these files."""
    files = set()
    with os.scandir(folder) as entries:
        for entry in entries:
            if counts(entry.name):
                with suppress(OSError):
                    stat = entry.stat()
                    files.add((entry.path, stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return frozenset(files)
