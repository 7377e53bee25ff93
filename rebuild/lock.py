"""The locks of a home. One run at a time writes; the system frees a lock when its holder ends, however it ends.

A holder that is only stopped keeps its lock, so that it can go on where it was: nobody has written meanwhile.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import filelock

from rebuild.errors import HomeLocked

WAIT_SECONDS = 10.0
"""For another run to end, before anything is begun."""
WAIT_BETWEEN_SECONDS = 6 * 3600.0
"""For a sync to end, in the middle of a rebuild."""


class WriterLock:
    """The writer's lock of one run. The threads of the run share it: taken again while it is held, it costs nothing."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._home = home
        self._lock = filelock.FileLock(str(home / "writer.lock"), thread_local=False)
        self._counting = threading.Lock()

    @contextmanager
    def __call__(self, wait_seconds: float = WAIT_BETWEEN_SECONDS) -> Iterator[None]:
        with self._counting:
            _take(self._lock, wait_seconds, f"another run is writing to {self._home}")
        try:
            yield
        finally:
            with self._counting:
                self._lock.release()


def writing(home: Path, wait_seconds: float = WAIT_SECONDS) -> AbstractContextManager[None]:
    """Waits for another writer of this home, then refuses."""
    return WriterLock(home)(wait_seconds)


@contextmanager
def rebuilding(home: Path, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """One rebuild at a time; syncs go on beside it."""
    home.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(str(home / "rebuild.lock"))
    _take(lock, wait_seconds, f"another rebuild of {home} is under way")
    try:
        yield
    finally:
        lock.release()


def _take(lock: filelock.BaseFileLock, wait_seconds: float, busy: str) -> None:
    try:
        lock.acquire(timeout=wait_seconds)
    except filelock.Timeout as error:
        raise HomeLocked(f"{busy}; wait for it, or name another home with --home") from error
