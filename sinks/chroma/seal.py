"""Detects builds that could crash this process.

Chroma overwrites its vector files in place. A kill or disk fault during a write leaves files that can crash the process
that loads them, which no `except` catches. So a writer that closes normally leaves a seal with the size and time of
every vector file. A build that does not match its seal is first opened in another process (`probe`).

While a writer is open, the files change, so a seal is useless. Instead the writer locks a file of the build. The kernel
releases the lock when the writer dies; a process id could be reused.
"""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from chunksink.sinks.chroma.client import module_command, module_environment
from chunksink.sinks.chroma.handle import Snapshot, signature_of
from chunksink.sinks.chroma.turns import locked, turn
from chunksink.sinks.errors import BuildBroken, NotConfirmed

FILE = "chunksink-seal.json"
LOCK = "chunksink-writer.lock"
DATABASE = "chroma.sqlite3"
_PROBE_SECONDS = 300
_SAVING_SECONDS = 0.2

Numbers = tuple[int, ...]


class Seal(msgspec.Struct, frozen=True):
    """The vector files as the last writer left them, and the state of the build then, if known."""

    files: dict[str, Numbers] | None = None
    """None while a writer is open, or after one was killed."""
    snapshot: Snapshot | None = None


def write(path: Path, state: Snapshot | None) -> None:
    """Seal a build whose writer has closed, or whose files have passed a check, unless another writer is open."""
    if not path.is_dir() or _has_writer(path):  # the build may have been dropped meanwhile
        return
    _save(path, Seal(_files(path), state))


def invalidate(path: Path) -> None:
    """Replace the seal with an empty one when a writer begins."""
    _save(path, Seal())


def snapshot(path: Path) -> Snapshot | None:
    """The sealed state if the files match the seal; else None. Then the build must be opened to learn its state."""
    seal = _read(path)
    if seal.snapshot is None or seal.snapshot.database != signature_of(path / DATABASE):
        return None
    return seal.snapshot if seal.files == _files(path) else None


def renew(path: Path) -> None:
    """Update the signature in the seal. Call it in the turn in which the build is opened: opening changes the database
    file, but not its content."""
    seal, now = _read(path), signature_of(path / DATABASE)
    if seal.snapshot is not None and now is not None:
        _save(path, msgspec.structs.replace(seal, snapshot=replace(seal.snapshot, database=now)))


@contextmanager
def reseal(path: Path) -> Iterator[None]:
    """Surrounds the call of a reader, and keeps a valid seal valid.

    On the first query Chroma saves the vectors of a small build, which changes the files.
    """
    before = _files(path)
    sealed = _read(path).files == before
    yield
    if sealed and path.is_dir() and (after := _files(path)) != before:
        _save(path, msgspec.structs.replace(_read(path), files=after))


def check(path: Path, *, writing: bool) -> Callable[[], None]:
    """Raise `BuildBroken` if loading this build would fail or crash. Starts a process only if its seal does not match.

    With `writing` the caller counts as an open writer until it calls the returned function.
    """
    with _check_lock(path, is_reader=not writing):
        if (path / DATABASE).exists() and not _has_writer(path) and _read(path).files != _files(path):
            with turn(path, is_reader=not writing):  # another reader may be saving the files; it seals them in its turn
                _check(path)
        return _lock_as_writer(path) if writing else lambda: None


def _check(path: Path, attempts: int = 5) -> None:
    files, seal = _files(path), _read(path)
    if seal.files == files:
        return
    missing = sorted((seal.files or {}).keys() - files.keys())
    if missing:
        raise BuildBroken(f"vector files of {path} are missing ({', '.join(missing)})")
    try:
        done = subprocess.run(
            module_command("chunksink.sinks.chroma.probe", str(path)),
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
            env=module_environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise NotConfirmed(f"loading the vector index at {path} takes more than {_PROBE_SECONDS} s") from error
    if done.returncode == 0:
        write(path, None)
        return
    if done.returncode == -signal.SIGKILL:  # not caused by the files
        raise NotConfirmed(f"the process that loaded the vector index at {path} was killed, perhaps for lack of memory")
    if attempts > 1 and _files(path) != files:  # another program with Chroma is saving them, on its first query
        time.sleep(_SAVING_SECONDS)
        _check(path, attempts - 1)
        return
    how = f"crashes with signal {-done.returncode}" if done.returncode < 0 else done.stdout.strip() or "fails"
    raise BuildBroken(f"the vector index at {path} cannot be loaded ({how})")


def _files(path: Path) -> dict[str, Numbers]:
    """Size and time of each vector file. Runs twice per call of a reader, so it uses `scandir`, which is fastest."""
    sizes: dict[str, Numbers] = {}
    if not path.is_dir():
        return sizes
    with os.scandir(path) as folders:
        for folder in folders:
            if not folder.is_dir():
                continue
            with os.scandir(folder) as files:
                for file in files:
                    if file.is_file():
                        status = file.stat()
                        sizes[f"{folder.name}/{file.name}"] = (status.st_size, status.st_mtime_ns)
    return sizes


def _read(path: Path) -> Seal:
    try:
        return msgspec.json.decode((path / FILE).read_bytes(), type=Seal)
    except (OSError, ValueError):
        return Seal()


def _save(path: Path, seal: Seal) -> None:
    temporary = path / f"{FILE}.{os.getpid()}"
    temporary.write_bytes(msgspec.json.encode(seal))
    temporary.replace(path / FILE)


def _check_lock(path: Path, *, is_reader: bool = False) -> AbstractContextManager[None]:
    """Allows one check at a time. A check locks the writers' file for a moment, so a second one would mistake it for a
    writer."""
    return locked(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path, is_reader=is_reader)


def _has_writer(path: Path) -> bool:
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


def _lock_as_writer(path: Path) -> Callable[[], None]:
    handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    fcntl.flock(handle, fcntl.LOCK_SH)  # shared: this process may have opened the build twice
    return lambda: os.close(handle)
