"""Local copies of the chunks files of a bucket, `<home>/partitions/<sha256>.jsonl`.

A copy is complete, and its content has the checksum that its name contains. Above the limit, the least recently used
copies are removed.
"""

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from chunksink.chunkbus.bucket import BucketStorage

FOLDER = "partitions"
LIMIT_BYTES = 2 * 2**30
_ABANDONED_SECONDS = 24 * 3600


class PartitionCache:
    """Local copies, at most `limit` bytes in total. Several processes may use one folder."""

    def __init__(self, folder: Path, limit: int = LIMIT_BYTES) -> None:
        self._folder = folder
        self._limit = limit

    def open(self, checksum: str | None) -> BinaryIO | None:
        """The copy with this checksum; None if there is none."""
        if checksum is None:
            return None
        path = self._path(checksum)
        with suppress(OSError):
            file = path.open("rb")
            with suppress(OSError):
                os.utime(path)
            return file
        return None

    def fetch(self, storage: BucketStorage, name: str, checksum: str | None) -> BinaryIO:
        """An object, from its local copy. Without a copy it is downloaded, and kept if it has this checksum.

        An object above the limit is read by ranges. So is every object if the folder cannot be written.
        """
        size = storage.stat(name).size
        copy = self.open(checksum)
        if copy is not None:
            if os.fstat(copy.fileno()).st_size == size:
                return copy
            copy.close()
        if size <= self._limit:
            with suppress(OSError):  # a full disk
                return self._downloaded(storage.stream(name), checksum)
        return storage.open(name)

    def _downloaded(self, blocks: Iterator[bytes], checksum: str | None) -> BinaryIO:
        path, file = self._new()
        digest = sha256()
        try:
            for block in blocks:
                digest.update(block)
                file.write(block)
            if digest.hexdigest() == checksum:
                self._keep(path, file, checksum)
                kept = self._path(checksum).open("rb")  # by its final name, by which worker processes open it
                file.close()
                return kept
            file.seek(0)
        except BaseException:
            file.close()
            raise
        finally:
            path.unlink(missing_ok=True)
        return file

    def clear(self) -> bool:
        """Removes all copies, but no unfinished files, which a run may be writing. Returns whether there were any."""
        if not self._folder.is_dir():
            return False
        copies = [path for path in self._folder.iterdir() if path.suffix == ".jsonl"]
        for path in copies:
            path.unlink(missing_ok=True)
        return bool(copies)

    @contextmanager
    def spool(self) -> Iterator[Path]:
        """A path for a new file. The file is removed at the end unless `keep` took it."""
        try:
            path, file = self._new()
        except OSError:
            with TemporaryDirectory(prefix="chunksink-") as folder:
                yield Path(folder) / "chunks.jsonl"
            return
        file.close()
        path.unlink()
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def keep(self, new: Path, checksum: str) -> None:
        """Takes a file from `spool` that has this checksum. Does nothing if it cannot."""
        with suppress(OSError):
            if new.parent == self._folder and new.stat().st_size <= self._limit:
                with new.open("rb") as file:
                    self._keep(new, file, checksum)

    def _keep(self, new: Path, file: BinaryIO, checksum: str) -> None:
        file.flush()
        os.fsync(file.fileno())
        new.replace(self._path(checksum))
        self._evict(self._path(checksum))

    def _evict(self, newest: Path) -> None:
        copies: list[tuple[float, int, Path]] = []
        for path in self._folder.iterdir():
            with suppress(OSError):  # another process has removed it
                status = path.stat()
                if path.suffix == ".jsonl":
                    copies.append((status.st_mtime, status.st_size, path))
                elif status.st_mtime < time.time() - _ABANDONED_SECONDS:
                    path.unlink()
        total = sum(size for _, size, _ in copies)
        for _, size, path in sorted(copies):
            if total > self._limit and path != newest:
                path.unlink(missing_ok=True)
                total -= size

    def _path(self, checksum: str) -> Path:
        return self._folder / f"{checksum}.jsonl"

    def _new(self) -> tuple[Path, BinaryIO]:
        """An unfinished file. OSError if the folder cannot be written."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f".{secrets.token_hex(8)}.new"
        return path, path.open("x+b")
