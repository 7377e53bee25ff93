"""Decides when `chunksink sync --watch` syncs: at once, after each commit, and again after a temporary failure.

It checks the manifests every half second, those in a bucket every few seconds.
"""

import time
from collections.abc import Callable, Iterator

from chunksink.chunkbus.errors import StorageError
from chunksink.chunkbus.layout import BusRoot

FIRST_WAIT_SECONDS = 5.0
MAX_WAIT_SECONDS = 60.0
_GATHER_SECONDS = 0.5
"""How long to wait for more commits after the first."""
_PAUSE_FACTOR = 20
"""The pause after a check is at least this many times as long as the check, but at most MAX_WAIT_SECONDS: checking
100,000 partitions takes a moment."""

_Files = frozenset[object]


class BusWatch:
    """Each iteration waits until a sync is due. After the sync, call `settled`, `failed` or `held`. Ctrl-C ends it."""

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
        seconds, self._wait = self._wait, min(2 * self._wait, MAX_WAIT_SECONDS)
        self._retry_at, self._check_all_at = self._clock() + seconds, None
        return seconds

    def held(self) -> None:
        """A partition is incomplete. Its chunks file may arrive without a commit, so any change makes a sync due."""
        self.settled()
        self._check_all_at = self._clock() + FIRST_WAIT_SECONDS

    def __iter__(self) -> Iterator[None]:
        self._root.prepare()
        while True:
            started = self._clock()
            if self.is_due():
                yield
                started = self._clock()
            # A failed check may have waited for an answer for minutes. That is no reason to wait longer.
            pause = 0.0 if self._is_gone else min(_PAUSE_FACTOR * (self._clock() - started), MAX_WAIT_SECONDS)
            self._sleep(max(self._root.poll_seconds, pause))

    def is_due(self) -> bool:
        """Check once. Commits at about the same time count as one."""
        try:
            manifests = self._root.committed()
            has_commit = manifests != self._manifests
            if has_commit and self._manifests is not None:
                self._sleep(_GATHER_SECONDS)
                manifests = self._root.committed()
            is_due = has_commit or self._is_due_without_commit()
            if is_due:
                self._manifests, self._all_files = manifests, self._files()
        except (OSError, StorageError) as error:
            if not self._is_gone:
                reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
                self._report(f"{reason}; waiting until it can be read, the index is unchanged")
            self._is_gone = True
            return False
        self._is_gone = False
        return is_due

    def _is_due_without_commit(self) -> bool:
        now = self._clock()
        if self._check_all_at is not None and now >= self._check_all_at:
            self._check_all_at = now + FIRST_WAIT_SECONDS
            return self._files() != self._all_files
        return self._retry_at is not None and now >= self._retry_at

    def _files(self) -> _Files:
        """The signatures of all partitions, and the files whose names are not valid."""
        partitions = ((key, self._root.signature(key)) for key in self._root.partition_keys())
        return frozenset([*partitions, *self._root.misnamed_files()])
