"""Reads and writes files by name, in a folder or below a prefix of a bucket. `open_storage` opens both kinds.

A name has parts separated by `/`, such as `manifest/a.manifest.json`. Names whose last part begins with a dot are
unfinished files, which are not listed.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from chunksink.chunkbus.errors import StorageConflict
from chunksink.chunkbus.signature import Signature

Content = bytes | Path | Iterator[bytes]
BUCKET_SCHEMES = ("s3", "gs", "az")


@dataclass(frozen=True, slots=True)
class Entry:
    """One file. Its `version` changes with its content, but do not use it as a checksum."""

    name: str
    size: int
    version: str
    modified: datetime


class Storage(Protocol):
    """Files by name. Every write is atomic, and durable when it returns.

    Methods that read raise FileNotFoundError if the file does not exist. All raise another OSError or StorageError if
    the storage fails.
    """

    @property
    def address(self) -> str:
        """For messages; without credentials."""

    def entries(self, folder: str) -> Iterator[Entry]:
        """The files directly in this folder; none if there is no such folder."""

    def read(self, name: str) -> bytes: ...

    def read_version(self, name: str) -> tuple[bytes, str]:
        """The content, and the version for `write_if_unchanged`."""

    def write_if_unchanged(self, name: str, data: bytes, version: str | None) -> None:
        """Replaces this version of the file, or creates the file if `version` is None.

        StorageConflict if the file has another version and other content.
        """

    def write(self, name: str, data: Content) -> None:
        """Creates or replaces a file with these bytes, or with the content of a local file."""

    def remove(self, name: str) -> None:
        """Succeeds if the file does not exist."""


def is_bucket(place: str) -> bool:
    """Whether this is the address of a bucket, and not a path."""
    scheme, mark, _ = place.partition("://")
    return bool(mark) and scheme.lower() in BUCKET_SCHEMES


def open_storage(place: str) -> Storage:
    """The storage at a path, or at `s3://BUCKET/PREFIX`, `gs://...` or `az://...`. Makes no request."""
    if not is_bucket(place):
        return FolderStorage(Path(place))
    from chunksink.chunkbus.bucket import BucketStorage

    return BucketStorage(place)


@dataclass(frozen=True)
class FolderStorage:
    """Files below a folder."""

    path: Path

    @property
    def address(self) -> str:
        return str(self.path)

    def entries(self, folder: str) -> Iterator[Entry]:
        with suppress(FileNotFoundError), os.scandir(self.path / folder) as found:
            for one in found:
                if not one.name.startswith("."):
                    with suppress(FileNotFoundError):  # removed meanwhile
                        if one.is_file():
                            yield _entry(one.name, one.stat())

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def read_version(self, name: str) -> tuple[bytes, str]:
        with (self.path / name).open("rb") as file:
            return file.read(), _entry(name, os.fstat(file.fileno())).version

    def write_if_unchanged(self, name: str, data: bytes, version: str | None) -> None:
        path = self.path / name
        with self._new(path, data) as new, _locked(path.parent):
            old_data, old_version = None, None
            with suppress(FileNotFoundError):
                old_data, old_version = self.read_version(name)
            if old_version != version and old_data != data:
                raise StorageConflict(f"another process has changed {path} since it was read")
            new.replace(path)
        make_durable(path.parent)

    def write(self, name: str, data: Content) -> None:
        path = self.path / name
        with self._new(path, data) as new:
            new.replace(path)
        make_durable(path.parent)

    def remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    @contextmanager
    def _new(self, path: Path, data: Content) -> Iterator[Path]:
        """A durable file with this content beside `path`; removed at the end if it was not renamed."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        try:
            with new.open("xb") as file:
                if isinstance(data, Path):
                    with data.open("rb") as source:
                        shutil.copyfileobj(source, file)
                else:
                    file.writelines([data] if isinstance(data, bytes) else data)
                file.flush()
                os.fsync(file.fileno())
            yield new
        finally:
            new.unlink(missing_ok=True)


def _entry(name: str, status: os.stat_result) -> Entry:
    version = ".".join(map(str, Signature.of(status).numbers()))
    return Entry(name, status.st_size, version, datetime.fromtimestamp(status.st_mtime, UTC))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Excludes other conditional writes in this folder, without a file for the lock."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def make_durable(path: Path) -> None:
    """Makes a file, or the renames in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
