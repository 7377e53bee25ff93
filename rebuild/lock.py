"""The locks of a home. One run at a time writes; the system frees a lock when its holder ends, however it ends.

A holder that is only stopped keeps its lock, so that it can go on where it was: nobody has written meanwhile.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import filelock

from chunksink.rebuild.errors import HomeLocked

WAIT_SECONDS = 10.0
"""For another run to end, before anything is begun."""
WAIT_BETWEEN_SECONDS = 6 * 3600.0
"""For a sync to end, in the middle of a rebuild."""


class _HomeLock:
    """A lock of one run. The threads of the run share it, and may take it again while they hold it."""

    def __init__(self, home: Path, file: str, busy: str) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._busy = busy
        self._lock = filelock.FileLock(str(home / file), thread_local=False)
        self._one_at_a_time = threading.Lock()  # a thread that gives it back must not take it from one that just came

    @contextmanager
    def held(self, wait_seconds: float) -> Iterator[None]:
        with self._one_at_a_time:
            try:
                self._lock.acquire(timeout=wait_seconds)
            except filelock.Timeout as error:
                raise HomeLocked(f"{self._busy}; wait for it, or name another home with --home") from error
        try:
            yield
        finally:
            with self._one_at_a_time:
                self._lock.release()


class WriterLock(_HomeLock):
    """For who writes, one at a time."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, "writer.lock", f"another run is writing to {home}")

    def __call__(self, wait_seconds: float = WAIT_BETWEEN_SECONDS) -> AbstractContextManager[None]:
        return self.held(wait_seconds)


class RebuildLock(_HomeLock):
    """For who makes new builds, or must have nobody make them; syncs go on beside it."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, "rebuild.lock", f"another run is building in {home}, or erasing from it")

    def __call__(self, wait_seconds: float = WAIT_SECONDS) -> AbstractContextManager[None]:
        return self.held(wait_seconds)


def writing(home: Path, wait_seconds: float = WAIT_SECONDS) -> AbstractContextManager[None]:
    """Waits for another writer of this home, then refuses."""
    return WriterLock(home)(wait_seconds)


def rebuilding(home: Path, wait_seconds: float = WAIT_SECONDS) -> AbstractContextManager[None]:
    """Likewise, for who builds."""
    return RebuildLock(home)(wait_seconds)
