"""Backups of a home: its records, its cache of vectors and its ledger, in one file. Engines' data is not included.

A backup is a compressed tar, whose first member has the digests of the others. SQLite copies the databases while other
runs may write. `state.db` is copied before the cache, so the copied cache has every vector that the copied records
confirm. After a restore the next sync finds where the engines differ from the restored records.
"""

import errno
import fcntl
import gzip
import hashlib
import os
import re
import shutil
import sqlite3
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from chunksink.chunkbus.runlog import new_run_id, utc_now
from chunksink.chunkbus.storage import make_durable
from chunksink.chunkbus.store import damaged, explained, opening
from chunksink.ingest.store import IngestStore, ingest_lock
from chunksink.rebuild import locks
from chunksink.rebuild.errors import BackupUnreadable, HomeNotEmpty, NothingBuilt
from chunksink.rebuild.state import State

_FORMAT = "chunksink.backup.v1"
_MANIFEST = "manifest.json"
_DATABASES = ("state.db", "vectors.db", "ingest.db")
_PARTS = ("home.id", "vectors.db", "ingest.db", "runs", "segments", "state.db")
"""Files and folders of a home, in the order in which they are restored. `state.db` is moved away first and restored
last. In between the home has no index, rather than a mixture of old and new files."""
_MEMBER = re.compile(r"(state|vectors|ingest)\.db|home\.id|runs/[\w-]+\.jsonl|segments/[0-9a-f]{64}\.arrow", re.ASCII)


@dataclass(frozen=True)
class Backup:
    """The content of a backup."""

    format: str
    created_at: str
    digests: dict[str, str]
    """The sha256 of each file, by its name in the home."""
    replaced: str | None = None
    """The folder of the files that a restore has replaced."""


def backup(home: Path, file: Path) -> Backup:
    """Write a backup of a home that has records. A failed or killed run leaves an existing file as it was."""
    if not _has_records(home):
        raise NothingBuilt(home)
    file = file.resolve()
    _require_replaceable(file)
    with _workspace(file.with_name(f".{file.name}.partial")) as folder:
        digests = {name: _digest(folder / name) for name in _copy_files(home, folder)}
        content = Backup(_FORMAT, utc_now(), digests)
        (folder / _MANIFEST).write_bytes(msgspec.json.encode(content))
        archive = folder / "archive"
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            for name in (_MANIFEST, *digests):
                tar.add(folder / name, name)
        archive.chmod(0o600)  # it contains texts
        make_durable(archive)
        archive.replace(file)
    make_durable(file.parent)
    return content


def restore(home: Path, file: Path, *, force: bool = False) -> Backup:
    """Check every file of a backup, then restore it. HomeNotEmpty if the home has records, except with `force`, which
    moves them to a new folder of the home. A killed restore can be repeated with the same options."""
    with _opened(file):  # first, so that a wrong file does not create a home
        pass
    with locks.RebuildLock(home).at_start(), locks.writing(home), ingest_lock(home), opening(home / "state.db"):
        staging = home / "restore.partial"
        was_killed = staging.exists() and not (home / "state.db").exists()
        if _has_records(home) and not force and not was_killed:
            raise HomeNotEmpty(f"{home} has records: replace them with --force, or name another home with --home")
        with _workspace(staging):
            content = _unpack(file, staging)
            for name, store in (("state.db", State), ("ingest.db", IngestStore)):
                if (staging / name).exists():
                    store(staging).db.close()  # NewerStore if this version cannot use it
            aside = _swap(staging, home)
    return replace(content, replaced=str(aside) if aside.exists() else None)


def _has_records(home: Path) -> bool:
    return any((home / name).is_file() for name in _DATABASES)


def _copy_files(home: Path, folder: Path) -> Iterator[str]:
    """Copy the files of the home that a backup has. Yields the name of each copy."""
    for name in _DATABASES:
        if (home / name).is_file():
            _copy_database(home / name, folder / name)
            yield name
    for path in (home / "home.id", *sorted(home.glob("runs/*.jsonl")), *sorted(home.glob("segments/*.arrow"))):
        name = str(path.relative_to(home))
        if _MEMBER.fullmatch(name):
            # A file may be removed meanwhile. A run record of another user may be unreadable; it is not needed.
            absent = (FileNotFoundError, PermissionError) if name.startswith("runs/") else (FileNotFoundError,)
            with suppress(*absent):
                (folder / name).parent.mkdir(exist_ok=True)
                shutil.copyfile(path, folder / name)
                yield name


def _copy_database(source: Path, copy: Path) -> None:
    at = source
    try:
        with closing(sqlite3.connect(_address(source), uri=True)) as old, closing(sqlite3.connect(copy)) as new:
            old.execute("pragma schema_version").fetchone()
            at = copy
            old.backup(new)
            new.execute("pragma journal_mode = delete")
            (found,) = new.execute("pragma quick_check(1)").fetchone()
    except sqlite3.Error as error:
        is_damaged = not isinstance(error, sqlite3.OperationalError)
        raise explained(error, source if is_damaged else at) or error from error
    if found != "ok":
        raise damaged(source, found)


def _address(source: Path) -> str:
    """The URI with which SQLite opens the database. SQLite creates a log beside it even to read, which fails on a
    read-only disk. If the database has no log there, nobody is writing, and `immutable` makes SQLite do without one."""
    is_read_only = bool(os.statvfs(source).f_flag & os.ST_RDONLY)
    is_alone = is_read_only and not source.with_name(f"{source.name}-wal").exists()
    return f"{source.absolute().as_uri()}?mode={'ro&immutable=1' if is_alone else 'rw'}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unpack(file: Path, folder: Path) -> Backup:
    """Write the members that the manifest names into the folder. BackupUnreadable if anything differs from it."""
    with _opened(file) as (stream, tar, content):
        missing = dict(content.digests)
        while (member := tar.next()) is not None:
            digest, data = missing.pop(member.name, None), tar.extractfile(member) if member.isreg() else None
            if digest is None or data is None:
                raise BackupUnreadable(f"{file} is not a backup: {member.name!r:.100} does not belong in it")
            path = folder / member.name
            path.parent.mkdir(exist_ok=True)
            path.touch(0o600)
            with path.open("wb") as copy:
                shutil.copyfileobj(data, copy)
            make_durable(path)
            if _digest(path) != digest:
                raise BackupUnreadable(f"{file} is damaged: {member.name} differs from its digest")
        while stream.read(2**20):  # to the end, where gzip compares its checksum
            pass
    if missing:
        raise BackupUnreadable(f"{file} is incomplete: {next(iter(missing))} is missing")
    return content


@contextmanager
def _opened(file: Path) -> Iterator[tuple[gzip.GzipFile, tarfile.TarFile, Backup]]:
    """The stream of the archive, the archive (its manifest is read already), and the manifest."""
    try:
        with gzip.open(file) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            first = tar.next()
            data = tar.extractfile(first) if first and first.name == _MANIFEST else None
            if data is None:
                raise BackupUnreadable(f"{file} is not a backup of chunksink")
            content = msgspec.json.decode(data.read(2**24), type=Backup)
            if content.format != _FORMAT or not all(map(_MEMBER.fullmatch, content.digests)):
                raise BackupUnreadable(f"{file} is not a backup that this version can read")
            yield stream, tar, content
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, msgspec.MsgspecError, ValueError) as error:
        raise BackupUnreadable(f"{file} is not a backup of chunksink, or is cut off or damaged ({error})") from error


def _require_replaceable(file: Path) -> None:
    """Only an empty file or another backup is replaced."""
    if file.exists() and (file.stat().st_size or not file.is_file()):
        try:
            with _opened(file):
                pass
        except (BackupUnreadable, IsADirectoryError) as error:
            raise OSError(errno.EEXIST, "name another file, because this one is not a backup", str(file)) from error


def _swap(staging: Path, home: Path) -> Path:
    """Move the files of the home into a new folder, and the staged files to their places. Returns the new folder. If it
    is killed, the home is unchanged, or has no `state.db`, or is fully restored."""
    aside = home / f"replaced-{new_run_id()}"
    if (home / "home.id").exists():  # a link, so that the home is never without its id
        aside.mkdir(mode=0o700)
        os.link(home / "home.id", aside / "home.id")
    _set_aside(home, "state.db", aside)
    for name in _PARTS:
        if name != "home.id":
            _set_aside(home, name, aside)
        if (staging / name).exists():
            (staging / name).rename(home / name)
    make_durable(home)
    return aside


def _set_aside(home: Path, name: str, aside: Path) -> None:
    """Move a file or folder of the home aside. The log of a database goes with it, or SQLite would apply it to the new
    file."""
    for path in (home / name, home / f"{name}-wal", home / f"{name}-shm"):
        if path.exists():
            aside.mkdir(mode=0o700, exist_ok=True)
            path.rename(aside / path.name)


@contextmanager
def _workspace(folder: Path) -> Iterator[Path]:
    """An empty folder that no other process uses; removed at the end. A killed process may have left one."""
    folder.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as stack:
        descriptor = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OSError(errno.EBUSY, "wait until the run that uses this folder ends", str(folder)) from error
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield folder
