"""The writer's lock of a home: one run at a time changes an index. A dead holder's lock is free at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from rebuild.errors import HomeLocked

WAIT_SECONDS = 10.0


@contextmanager
def writing(home: Path, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Waits for another writer of this home, then refuses. The system frees the lock when its holder ends."""
    home.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(str(home / "writer.lock"), timeout=wait_seconds):
            yield
    except filelock.Timeout as error:
        raise HomeLocked(f"another run is writing to {home}; wait for it, or name another home with --home") from error
