"""Leases: while somebody reads a generation, its builds are not removed under them.

A reader holds a shared lock on the generation's file in `<home>/leases/`; whoever removes a generation needs it alone.
The kernel frees the lock of a process that died, so nothing is ever left behind.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chunksink.rebuild.state import Generation, State

FOLDER = "leases"


@contextmanager
def reading_live(state: State) -> Iterator[Generation]:
    """The generation that readers see, and a lease on it."""
    while True:
        generation = state.live()
        with _locked(state.home, generation.id, fcntl.LOCK_SH) as held:
            # It may have been replaced twice, and removed, since the pointer was read.
            if held and state.has_generation(generation.id):
                yield generation
                return


@contextmanager
def removing(state: State, generation: Generation) -> Iterator[bool]:
    """Whether nobody reads it; until the block ends nobody begins to."""
    with _locked(state.home, generation.id, fcntl.LOCK_EX) as alone:
        yield alone
        if alone:
            _file(state.home, generation.id).unlink(missing_ok=True)


@contextmanager
def _locked(home: Path, generation_id: str, how: int) -> Iterator[bool]:
    file = _file(home, generation_id)
    file.parent.mkdir(exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def _file(home: Path, generation_id: str) -> Path:
    return home / FOLDER / f"{generation_id}.lock"
