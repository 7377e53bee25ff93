"""Turns: only one process at a time may call Chroma on a build.

A process that loads vector files while another one saves them may crash (ADR 0016). A turn is a lock on a file in the
build's folder. Waiting for a turn has a time limit, because the process that has it may hang. The threads of a reader
can share one turn.
"""

import fcntl
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic, sleep

from chunksink.sinks.errors import NotConfirmed

FILE = "chunksink-turn.lock"
READER_SECONDS = 10.0
"""How long a reader waits for a turn that a running process has. A call of a writer takes about one second."""
WRITER_SECONDS = 60.0
_SHARED_SECONDS = 0.05
"""After this time a shared turn accepts no more threads, so that a writer in another process gets its turn."""
_STOPPED = {"T", "t"}  # states of a process
_STOPPED_SECONDS = 1.2
"""After this time a reader checks whether the process that has the turn is stopped. A search must answer within two
seconds."""
_TRIES, _TRY_SECONDS = 10, 0.01

_abandoned: dict[int, Event] = {}
"""By inode of the lock file: the event of a thread that still waits although its caller gave up. Until it has the lock,
no second thread is started."""


@contextmanager
def turn(path: Path, *, is_reader: bool = False) -> Iterator[None]:
    """Allow only one thread of one process at a time to call the engine of a build. Readers wait for the current call
    of a writer, and writers for that of a reader. Raises `NotConfirmed` if that takes too long."""
    try:
        handle = os.open(path / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except FileNotFoundError:  # the folder was removed: nobody else can use it
        yield
        return
    with locked(handle, path, is_reader=is_reader):
        yield


class SharedTurn:
    """Turns that the threads of one reader share: Chroma can answer several once it has loaded the vectors.

    The first thread takes a turn and the last one ends it. A handover between threads through the lock of the file
    would take longer than a query.
    """

    def __init__(self, take: Callable[[], AbstractContextManager[None]]) -> None:
        self._take = take
        self._lock = Lock()
        self._newest: _Turn | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._newest is None or monotonic() >= self._newest.closes_at:
                self._newest = _Turn()
            turn = self._newest
            turn.threads += 1
        try:
            turn.begin(self._take)
            yield
        finally:
            with self._lock:
                turn.threads -= 1
                if not turn.threads:
                    self._newest = None if self._newest is turn else self._newest
                    turn.held.close()


class _Turn:
    def __init__(self) -> None:
        self.threads = 0
        self.closes_at = math.inf
        self.held = ExitStack()
        self._beginning = Lock()
        self._error: NotConfirmed | None = None

    def begin(self, take: Callable[[], AbstractContextManager[None]]) -> None:
        """Wait until the turn has begun. If the thread that takes it times out, the others fail at once."""
        with self._beginning:
            if self._error is not None:
                raise NotConfirmed(*self._error.args)
            if self.closes_at < math.inf:
                return
            try:
                self.held.enter_context(take())
            except NotConfirmed as error:
                self._error = error
                raise
            self.closes_at = monotonic() + _SHARED_SECONDS


@contextmanager
def locked(handle: int, path: Path, *, is_reader: bool) -> Iterator[None]:
    """Lock the open file `handle`, and close it at the end. `path` is the build, for messages."""
    try:
        _lock(handle, path, is_reader=is_reader)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, path: Path, *, is_reader: bool) -> None:
    """Wait for a lock, but not forever: the process that has it may be stopped.

    A thread waits in the kernel's queue, because polling would hardly ever succeed beside a writer that takes many
    turns. It waits on a duplicate of the handle, which shares the lock, and then closes the duplicate. The lock stays
    until the caller closes its own handle. If the caller gave up and has closed it already, the lock is released.
    """
    with suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    began, lock = monotonic(), os.fstat(handle).st_ino
    if (former := _abandoned.get(lock)) is not None and not former.wait(_STOPPED_SECONDS):
        raise _not_confirmed(_holders(handle), path, began)
    own, locked = os.dup(handle), Event()

    def wait() -> None:
        try:
            fcntl.flock(own, fcntl.LOCK_EX)
            locked.set()
        finally:
            os.close(own)

    Thread(target=wait, name="turn", daemon=True).start()
    longest = READER_SECONDS if is_reader else WRITER_SECONDS
    while not locked.wait(min(_STOPPED_SECONDS, longest)):
        holders = _holders(handle)
        is_stopped = is_reader and (not holders or bool(_STOPPED & set(holders.values())))
        if is_stopped or monotonic() - began >= longest:
            _abandoned[lock] = locked
            raise _not_confirmed(holders, path, began)


def _not_confirmed(holders: Mapping[str, str], path: Path, began: float) -> NotConfirmed:
    stopped = next((holder for holder, state in holders.items() if state in _STOPPED), None)
    running = "this process" if str(os.getpid()) in holders else "another process"
    who = f"process {stopped} is suspended and" if stopped else running
    remedy = "resume it or end it" if stopped else "wait, or end it if it hangs"
    return NotConfirmed(f"{who} has used the build at {path} for more than {monotonic() - began:.1f} s: {remedy}")


def _holders(handle: int) -> dict[str, str]:
    """The processes that hold the lock, and their states; "" for one that has just ended. Empty if they are invisible:
    in a paused container, or on a system without /proc. A lock that is changing hands has no holder for a moment, so
    the list is read again."""
    inode = str(os.fstat(handle).st_ino)
    with suppress(OSError, IndexError):
        for _ in range(_TRIES):
            locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
            holders = [fields[4] for fields in locks if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode]
            if holders:
                return {holder: _state(holder) for holder in holders}
            sleep(_TRY_SECONDS)
    return {}


def _state(process: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return ""
