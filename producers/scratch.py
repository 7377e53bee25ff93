"""The folder in which a run's lines wait. It goes with the run; where the process was killed, with a later one.

A lock on the folder says that its process is alive. It has its name only once it is locked, so a folder that bears
such a name and is not locked is nobody's.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "chunksink-ingest-"


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder of this run's own in the temporary directory. Runs at the same time are not in each other's way."""
    place = Path(tempfile.gettempdir())
    for left in place.glob(f"{PREFIX}*"):
        _remove_left(left)
    folder = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=place))
    lock = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # where no folder can be locked, nobody takes one either
            fcntl.flock(lock, fcntl.LOCK_EX)
        folder = folder.rename(folder.with_name(folder.name[1:]))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_left(folder: Path) -> None:
    with suppress(OSError):  # another's, or no folder, or gone meanwhile
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_uid == os.geteuid():
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
