"""Telling a sound build from one that could take the process down.

Chroma saves its vector file in place. A kill or a fault of the disk in between leaves a file whose loading can
crash the process, which no `except` catches. So a writer that closes in order leaves a seal with the size and time
of every vector file; a build that does not look as it was sealed is first opened in another process (`probe`).

While a writer is open the files move and say nothing. It holds a lock on a file of the build: the kernel frees that
when the writer dies, whereas a process number may be another one's by then.
"""

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from chunksink.sinks.chroma import processes
from chunksink.sinks.chroma.counted import Counted, changes_of
from chunksink.sinks.errors import MEND, BuildBroken, NotConfirmed

FILE = "chunksink-seal.json"
LOCK = "chunksink-writer.lock"
TURN = "chunksink-turn.lock"
DATABASE = "chroma.sqlite3"
_PATIENCE = 300  # seconds


@dataclass(frozen=True)
class Untouched:
    """What a build is and holds, where nobody has written to it since its last writer closed it."""

    documents: int
    metadata: Mapping[str, Any]


def put(path: Path, counted: Counted | None = None, metadata: Mapping[str, Any] | None = None) -> None:
    """The writer is done: this is how its files look, how many documents it has counted, and as what it is signed."""
    if path.is_dir():  # not dropped meanwhile
        signed = {} if metadata is None else {"metadata": dict(metadata)}
        _write(path, {"files": _files(path), **_told(counted), **signed})


def note(path: Path, counted: Counted) -> None:
    """A reader has opened it, which is a change of the database, but not of its documents."""
    if (seal := _read(path)).get("files"):
        _write(path, {**seal, **_told(counted)})


def lift(path: Path) -> None:
    """A writer begins: from now on the files move."""
    _write(path, {})


def counted(path: Path) -> Counted | None:
    """How many documents there were when it was sealed; None where anybody has written since."""
    told = _read(path).get("counted")
    try:
        known = msgspec.convert(told, Counted) if told is not None else None
    except msgspec.ValidationError:
        return None
    return known if known is not None and changes_of(path / DATABASE) == known.at else None


def untouched(path: Path) -> Untouched | None:
    """None where that is not certain: the build has to be opened. A writer has lifted the seal."""
    seal, known = _read(path), counted(path)
    metadata = seal.get("metadata")
    if known is None or not isinstance(metadata, dict):
        return None
    return Untouched(known.documents, metadata) if seal.get("files") == _files(path) else None


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """One process, and one thread of it, asks the engine of a build at a time.

    The engine saves its vectors in place, in whichever process it runs; to load them meanwhile crashes the process
    that does. So a reader waits for the call that a writer is making, and a writer for a reader's.
    """
    try:
        handle = os.open(path / TURN, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except FileNotFoundError:  # the folder is gone: nobody else can be in there
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def kept(path: Path) -> Iterator[None]:
    """In a reader's turn: what was sealed before its call is sealed after it.

    Chroma saves the vectors of a small build anew when they are first asked for; only a kill leaves that half done.
    """
    before = _files(path)
    sealed = _read(path).get("files") == before
    yield
    if sealed and path.is_dir() and (after := _files(path)) != before:
        _write(path, {**_read(path), "files": after})


def check(path: Path, *, writing: bool) -> Callable[[], None]:
    """Raise `BuildBroken` where loading this build would fail or crash; costs a process only where in doubt.

    With `writing` the caller counts as an open writer until it calls what is returned.
    """
    with _alone(path):
        if (path / DATABASE).exists() and not _is_written(path) and not _is_as_sealed(path):
            with turn(path):  # a reader's call may be saving them, and seals them when it has
                _check(path)
        return _writing(path) if writing else _nothing


def _is_as_sealed(path: Path) -> bool:
    return _read(path).get("files") == _files(path)


def _check(path: Path) -> None:
    files, seal = _files(path), _read(path)
    if seal.get("files") == files:
        return
    gone = sorted(seal.get("files", {}).keys() - files.keys())
    if gone:
        raise BuildBroken(f"vector files of {path} are gone ({', '.join(gone)}): {MEND}")
    try:
        done = subprocess.run(
            processes.command("chunksink.sinks.chroma.probe", str(path)),
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
            env=processes.environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise NotConfirmed(f"loading the vector index at {path} did not end within {_PATIENCE} s") from error
    if done.returncode == 0:
        put(path)  # proved; whoever writes next lifts it
        return
    if done.returncode == -signal.SIGKILL:  # not by what it read
        raise NotConfirmed(f"the process that loaded the vector index at {path} was killed, as where memory is short")
    how = f"crashes with signal {-done.returncode}" if done.returncode < 0 else done.stdout.strip() or "fails"
    raise BuildBroken(f"the vector index at {path} cannot be loaded ({how}): {MEND}")


def _files(path: Path) -> dict[str, list[int]]:
    """Taken twice with every call of a reader, so by the quickest way. None where the folder is gone."""
    found: dict[str, list[int]] = {}
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
                        found[f"{folder.name}/{file.name}"] = [status.st_size, status.st_mtime_ns]
    return found


def _told(counted: Counted | None) -> dict[str, Any]:
    return {} if counted is None else {"counted": asdict(counted)}


def _read(path: Path) -> dict[str, Any]:
    try:
        seal = json.loads((path / FILE).read_text())
    except (OSError, ValueError):
        return {}
    return seal if isinstance(seal, dict) and isinstance(seal.get("files", {}), dict) else {}


def _write(path: Path, seal: dict[str, Any]) -> None:
    waiting = path / f"{FILE}.{os.getpid()}"
    waiting.write_text(json.dumps(seal))
    waiting.replace(path / FILE)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One looks at a build at a time: otherwise two who look at once would each take the other for a writer."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


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


def _nothing() -> None:
    pass
