"""Telling a sound build from one that could take the process down.

Chroma saves its vector file in place. A kill or a fault of the disk in between leaves a file whose loading can
crash the process, which no `except` catches. So a writer that closes in order leaves a seal with the size and time
of every vector file; a build that does not look as it was sealed is first opened in another process (`probe`).

While a writer is open the files move and say nothing. It holds a lock on a file of the build: the kernel frees that
when the writer dies, whereas a process number may be another one's by then.
"""

import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import msgspec

from chunksink.sinks.chroma.client import module_command, module_environment
from chunksink.sinks.chroma.handle import Snapshot, signature_of
from chunksink.sinks.errors import MEND, BuildBroken, NotConfirmed

FILE = "chunksink-seal.json"
LOCK = "chunksink-writer.lock"
TURN = "chunksink-turn.lock"
DATABASE = "chroma.sqlite3"
_PATIENCE = 300  # seconds
READER_SECONDS = 10.0
"""For a turn, as long as its holder is seen to be at work; a call of a writer takes about one."""
WRITER_SECONDS = 60.0
_STOPPED = {"T", "t"}  # states of a process
_STOPPED_SECONDS = 1.2
"""After these a reader checks whether the holder of the turn was stopped. A search must be answered within two."""

Numbers = tuple[int, ...]

_given_up: dict[int, Event] = {}
"""By the lock's file, for which a thread may still wait though its caller has given up: no second one is begun."""


class Seal(msgspec.Struct, frozen=True):
    """The vector files as the last writer left them, and what the build held then, where that is known."""

    files: dict[str, Numbers] | None = None
    """None while a writer is open, or where one was killed."""
    held: Snapshot | None = None


def put(path: Path, held: Snapshot | None) -> None:
    """The writer is done, if nobody else writes: this is how its files look and, where it is known, what it holds."""
    if not path.is_dir() or _is_written(path):  # dropped meanwhile, or in other hands
        return
    _write(path, Seal(_files(path), held))


def lift(path: Path) -> None:
    """A writer begins: from now on the files move."""
    _write(path, Seal())


def snapshot(path: Path) -> Snapshot | None:
    """What the build holds, if its files are as they were sealed; None where it has to be opened to know."""
    seal = _read(path)
    if seal.held is None or seal.held.database != signature_of(path / DATABASE):
        return None
    return seal.held if seal.files == _files(path) else None


def renew(path: Path) -> None:
    """In the turn that has opened it: Chroma has changed the database, but none of what it holds."""
    seal, now = _read(path), signature_of(path / DATABASE)
    if seal.held is not None and now is not None:
        _write(path, msgspec.structs.replace(seal, held=replace(seal.held, database=now)))


@contextmanager
def turn(path: Path, *, is_reader: bool = False) -> Iterator[None]:
    """One process, and one thread of it, asks the engine of a build at a time.

    The engine saves its vectors in place, in whichever process it runs; to load them meanwhile crashes the process
    that does. So a reader waits for the call that a writer is making, and a writer for a reader's. NotConfirmed where
    that takes too long.
    """
    try:
        handle = os.open(path / TURN, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except FileNotFoundError:  # the folder is gone: nobody else can be in there
        yield
        return
    with _locked(handle, path, is_reader=is_reader):
        yield


@contextmanager
def reseal(path: Path) -> Iterator[None]:
    """In a reader's turn: what was sealed before its call is sealed after it.

    Chroma saves the vectors of a small build anew when they are first asked for; only a kill leaves that half done.
    """
    before = _files(path)
    sealed = _read(path).files == before
    yield
    if sealed and path.is_dir() and (after := _files(path)) != before:
        _write(path, msgspec.structs.replace(_read(path), files=after))


def check(path: Path, *, writing: bool) -> Callable[[], None]:
    """Raise `BuildBroken` where loading this build would fail or crash; costs a process only where in doubt.

    With `writing` the caller counts as an open writer until it calls what is returned.
    """
    with _alone(path, is_reader=not writing):
        if (path / DATABASE).exists() and not _is_written(path) and _read(path).files != _files(path):
            with turn(path, is_reader=not writing):  # a reader's call may be saving them, and seals them when it has
                _check(path)
        return _writing(path) if writing else lambda: None


def _check(path: Path) -> None:
    files, seal = _files(path), _read(path)
    if seal.files == files:
        return
    gone = sorted((seal.files or {}).keys() - files.keys())
    if gone:
        raise BuildBroken(f"vector files of {path} are gone ({', '.join(gone)}): {MEND}")
    try:
        done = subprocess.run(
            module_command("chunksink.sinks.chroma.probe", str(path)),
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
            env=module_environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise NotConfirmed(f"loading the vector index at {path} did not end within {_PATIENCE} s") from error
    if done.returncode == 0:
        put(path, None)  # proved; whoever writes next lifts it
        return
    if done.returncode == -signal.SIGKILL:  # not by what it read
        raise NotConfirmed(f"the process that loaded the vector index at {path} was killed, as where memory is short")
    how = f"crashes with signal {-done.returncode}" if done.returncode < 0 else done.stdout.strip() or "fails"
    raise BuildBroken(f"the vector index at {path} cannot be loaded ({how}): {MEND}")


def _files(path: Path) -> dict[str, Numbers]:
    """Taken twice with every call of a reader, so by the quickest way. None where the folder is gone."""
    found: dict[str, Numbers] = {}
    if not path.is_dir():
        return found
    with os.scandir(path) as folders:
        for folder in folders:
            if not folder.is_dir():
                continue
            with os.scandir(folder) as files:
                for file in files:
                    if file.is_file():
                        status = file.stat()
                        found[f"{folder.name}/{file.name}"] = (status.st_size, status.st_mtime_ns)
    return found


def _read(path: Path) -> Seal:
    try:
        return msgspec.json.decode((path / FILE).read_bytes(), type=Seal)
    except (OSError, ValueError):
        return Seal()


def _write(path: Path, seal: Seal) -> None:
    waiting = path / f"{FILE}.{os.getpid()}"
    waiting.write_bytes(msgspec.json.encode(seal))
    waiting.replace(path / FILE)


def _alone(path: Path, *, is_reader: bool = False) -> AbstractContextManager[None]:
    """One looks at a build at a time: otherwise two who look at once would each take the other for a writer."""
    return _locked(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path, is_reader=is_reader)


@contextmanager
def _locked(handle: int, path: Path, *, is_reader: bool) -> Iterator[None]:
    try:
        _lock(handle, path, is_reader=is_reader)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, path: Path, *, is_reader: bool) -> None:
    """Wait for a lock, but not for ever: the process that holds it may be stopped and not dead.

    A thread waits in the kernel's queue, because a process that only asks now and then loses to a writer that takes
    turn after turn. It has a handle of its own: when that is closed too, a lock that came too late is free again.
    """
    with suppress(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    began, lock = monotonic(), os.fstat(handle).st_ino
    if (former := _given_up.get(lock)) is not None and not former.wait(_STOPPED_SECONDS):
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
            _given_up[lock] = locked
            raise _not_confirmed(holders, path, began)


def _not_confirmed(holders: Mapping[str, str], path: Path, began: float) -> NotConfirmed:
    stopped = [holder for holder, state in holders.items() if state in _STOPPED]
    who = f"process {', '.join(stopped)}, which is stopped," if stopped else "another process"
    return NotConfirmed(
        f"{who} has been using the build at {path} for {monotonic() - began:.1f} s and longer; resume it or end it"
    )


def _holders(handle: int) -> dict[str, str]:
    """The processes that hold the lock, and their states; empty where they cannot be seen: a container that was paused,
    or a system without /proc."""
    inode = str(os.fstat(handle).st_ino)
    with suppress(OSError, IndexError):
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        holders = [fields[4] for fields in locks if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode]
        return {holder: Path(f"/proc/{holder}/stat").read_text().rpartition(")")[2].split()[0] for holder in holders}
    return {}


def _is_written(path: Path) -> bool:
    try:
        handle = os.open(path / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _writing(path: Path) -> Callable[[], None]:
    handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    fcntl.flock(handle, fcntl.LOCK_SH)  # shared: a second handle of the writer is no other writer
    return lambda: os.close(handle)
