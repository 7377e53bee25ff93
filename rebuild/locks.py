"""The locks of a home: one run writes at a time, and no build is removed while it is read.

The system frees a lock when its holder ends. A suspended holder keeps its lock.
"""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import filelock

from chunksink.rebuild.errors import HomeLocked
from chunksink.rebuild.schema import exists
from chunksink.rebuild.state import Generation, State

WAIT_SECONDS = 10.0
"""How long to wait for another run at the start. Read at each use, so that tests can change it."""
WAIT_BETWEEN_SECONDS = 6 * 3600.0
"""How long to wait for a sync in the middle of a rebuild or a verify."""
LEASES = "leases"


class _HomeLock:
    """A lock of one run, shared by its threads and reentrant."""

    def __init__(self, home: Path, name: str, busy: str) -> None:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._busy = busy
        self._lock = filelock.FileLock(str(_lock_file(home, name)), thread_local=False)
        self._one_at_a_time = threading.Lock()  # a release must not undo another thread's acquire

    def at_start(self) -> AbstractContextManager[None]:
        """At the start of a run there is no work to lose, so it does not wait long."""
        return self(WAIT_SECONDS)

    @contextmanager
    def __call__(self, wait_seconds: float = WAIT_BETWEEN_SECONDS) -> Iterator[None]:
        """Wait while another run has the lock. Raises HomeLocked after `wait_seconds`."""
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
    """Held by the one run that writes."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, "writer", f"another run is writing to {home}")


class RebuildLock(_HomeLock):
    """Held by a run that makes new builds, and by `forget` and `restore`, during which none may be made."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, "rebuild", f"another run is building in {home}, erasing from it or restoring it")


def writing(home: Path) -> AbstractContextManager[None]:
    return WriterLock(home).at_start()


def held_locks(home: Path) -> tuple[str, ...]:
    """The locks that are held now. Tests each with a shared lock, released at once; a waiting run just tries again."""
    return tuple(name for name in ("writer", "rebuild") if _is_held(_lock_file(home, name)))


@contextmanager
def reading_live(state: State) -> Iterator[Generation]:
    """Yields the live generation, with a lease on it: a shared lock, so that its builds are not removed."""
    while True:
        generation = state.live()
        with _leased(state.home, generation, fcntl.LOCK_SH) as is_locked:
            # It may have been replaced twice, and removed, since the pointer was read.
            if is_locked and exists(state.db, "generation where id = ?", [generation.id]):
                yield generation
                return


@contextmanager
def removing(state: State, generation: Generation) -> Iterator[bool]:
    """Yields whether nobody reads the generation. If so, nobody can begin to read it until the block ends."""
    with _leased(state.home, generation, fcntl.LOCK_EX) as is_unread:
        yield is_unread
        if is_unread:
            _lease_file(state.home, generation).unlink(missing_ok=True)


@contextmanager
def _leased(home: Path, generation: Generation, operation: int) -> Iterator[bool]:
    file = _lease_file(home, generation)
    file.parent.mkdir(exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield _try_lock(handle, operation)
    finally:
        os.close(handle)


def _is_held(file: Path) -> bool:
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _try_lock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _try_lock(handle: int, operation: int) -> bool:
    try:
        fcntl.flock(handle, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lease_file(home: Path, generation: Generation) -> Path:
    return _lock_file(home / LEASES, generation.id)


def _lock_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.lock"
