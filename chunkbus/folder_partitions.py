"""Partitions in a folder: a kill at any point leaves either the old or the new version complete.

<root>/canonical/<key>.jsonl               the chunks of a partition
<root>/canonical/.<key>.<sha256>.jsonl     new chunks that wait for their final name
<root>/manifest/<key>.manifest.json        its manifest; the rename onto this name is the commit

New chunks are written under a name that readers ignore, then wait under a name with their checksum. Renaming the
manifest is the commit. Then the chunks get their final name. If a kill prevents that, readers use the waiting file,
whose checksum is in the manifest, and the next writer finishes the rename.
"""

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import filelock

from chunksink.chunkbus.errors import NotABusRoot, PartitionLocked
from chunksink.chunkbus.layout import FOLDERS, BusRoot, Replace, check_partition_key, chunks_name, manifest_name
from chunksink.chunkbus.manifest import committed_checksum
from chunksink.chunkbus.reader import BLOCK_BYTES, open_regular
from chunksink.chunkbus.signature import Signature, settled_signatures, signatures_of
from chunksink.chunkbus.storage import FolderStorage, make_durable


class FolderRoot(BusRoot):
    """A folder for partitions."""

    poll_seconds = 0.5

    def __init__(self, path: Path) -> None:
        self.path = path
        self.storage = FolderStorage(path)

    @property
    def canonical(self) -> Path:
        return self.path / "canonical"

    @property
    def manifests(self) -> Path:
        return self.path / "manifest"

    def chunks_file(self, key: str) -> Path:
        return self.path / chunks_name(key)

    def waiting_file(self, key: str, checksum_hex: str) -> Path:
        return self.canonical / f".{check_partition_key(key)}.{checksum_hex}.jsonl"

    def manifest_file(self, key: str) -> Path:
        return self.path / manifest_name(key)

    def files(self, key: str) -> tuple[Path, Path]:
        return self.manifest_file(key), self.chunks_file(key)

    def present_files(self, key: str) -> list[str]:
        return [str(file) for file in self.files(key) if file.exists()]

    def folders(self) -> tuple[Path, ...]:
        return self.path, self.canonical, self.manifests, self.path / "links"

    @property
    def identity(self) -> bytes:
        return os.fsencode(self.path.resolve())

    @property
    def exists(self) -> bool:
        return self.canonical.is_dir() or self.manifests.is_dir()

    @property
    def mistake(self) -> str | None:
        if self.path.is_file():
            return f"{self.address} is a file: name the folder that contains canonical/ and manifest/"
        if self.path.name in FOLDERS and FolderRoot(self.path.parent).exists:
            return f"{self.address} is inside the chunks folder: name its parent, {self.path.parent}"
        return None

    @property
    def _why_missing(self) -> str:
        return super()._why_missing if self.path.is_dir() else "there is no such folder"

    @property
    def how_to_find_or_empty(self) -> str:
        find = "Bring the folder back, or name it with --chunks DIR"
        return f"{find}. To remove all partitions: run `mkdir -p {self.manifests}`"

    def prepare(self) -> None:
        self.manifests.mkdir(exist_ok=True)

    def refresh(self) -> None:
        """A folder is always read again."""

    def _names(self, folder: str) -> Iterator[str]:
        if (self.path / folder).is_dir():
            for entry in (self.path / folder).iterdir():
                if not entry.name.startswith("."):
                    yield entry.name

    def size_of(self, key: str) -> int:
        file = self.chunks_file(key)
        return file.stat().st_size if file.is_file() else 0

    def changed_at(self, key: str) -> float | None:
        newest = max((each.mtime_ns for each in signatures_of(self.files(key))), default=None)
        return None if newest is None else newest / 1e9

    def committed(self) -> frozenset[object]:
        """Reads the folder by its path each time, so replaced folders, links and network disks need no special case."""
        folder = os.stat(self.manifests)  # noqa: PTH116 (its error has the file's name, which `watch` reports)
        found: set[object] = {(folder.st_dev, folder.st_ino)}
        with os.scandir(self.manifests) as entries:
            for entry in entries:
                if entry.name.endswith(FOLDERS["manifest"]) and not entry.name.startswith("."):
                    with suppress(OSError):
                        status = entry.stat()
                        found.add((entry.name, status.st_ino, status.st_size, status.st_mtime_ns))
        return frozenset(found)

    def signature(self, key: str) -> str:
        return _described(signatures_of(self.files(key)))

    def settled_signature(self, key: str) -> tuple[str, bool]:
        signatures, is_settled = settled_signatures(self.files(key))
        return _described(signatures), is_settled

    def chunks_signature(self, key: str, file: BinaryIO | None = None) -> tuple[int, int, int, int]:
        found = signatures_of([self.chunks_file(key)]) if file is None else [Signature.of(os.fstat(file.fileno()))]
        return found[0].numbers() if found else (0, 0, 0, 0)

    def manifest_and_size(self, key: str) -> tuple[bytes | None, int | None]:
        try:
            file, manifest = self.open(key)
        except FileNotFoundError:
            return self.manifest_bytes(key), None
        with file:
            return manifest, os.fstat(file.fileno()).st_size

    def open(self, key: str) -> tuple[BinaryIO, bytes | None]:
        """A commit renames the manifest first, then the waiting file to its final name. So the waiting file is tried
        first, and if the manifest is the same before and after opening the chunks, they belong together. Without a
        readable manifest, only the final name is tried."""
        path = self.manifest_file(key)
        while True:
            # The manifest stays open, so that no later manifest can reuse its inode.
            with _open_or_none(path) or nullcontext() as manifest:
                data = manifest.read() if manifest is not None else None
                file = _open_chunks(self, key, data)
                if _is_at(path, manifest):
                    if file is None:
                        chunks = self.chunks_file(key)
                        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(chunks))
                    return file, data
                if file is not None:
                    file.close()

    @contextmanager
    def replacing(self, key: str, lock_seconds: float) -> Iterator[tuple[Path, Replace]]:
        for folder in (self.canonical, self.manifests):
            folder.mkdir(parents=True, exist_ok=True)
            _refuse_link_out(folder, self.path)
        lock = filelock.FileLock(str(self.canonical / f".{key}.lock"), timeout=lock_seconds)
        try:
            lock.acquire()
        except filelock.Timeout as error:
            raise PartitionLocked(f"partition {key} of {self.path} is being written") from error
        new = self.canonical / f".{key}.{secrets.token_hex(8)}.new"
        with ExitStack() as held:
            held.callback(lock.release)
            _finish_last_commit(self, key)
            held.callback(new.unlink, missing_ok=True)
            yield new, partial(_commit, self, key, new)


def _described(signatures: list[Signature]) -> str:
    return " ".join(f"{each.inode}.{each.size}.{each.mtime_ns}.{each.ctime_ns}" for each in signatures)


def _open_chunks(root: FolderRoot, key: str, manifest: bytes | None) -> BinaryIO | None:
    """The manifest's waiting file, else the file under its final name. None if neither exists."""
    checksum = committed_checksum(manifest)
    if checksum is not None:
        waiting = _open_or_none(root.waiting_file(key, checksum))
        if waiting is not None:
            if _has_checksum(waiting, checksum):
                return waiting
            waiting.close()
    return _open_or_none(root.chunks_file(key))


def _open_or_none(path: Path) -> BinaryIO | None:
    try:
        return open_regular(path)
    except FileNotFoundError:
        return None


def _has_checksum(file: BinaryIO, checksum: str) -> bool:
    """Whether the file's content has this checksum; a waiting file's name does not prove it."""
    digest = sha256()
    while data := file.read(BLOCK_BYTES):
        digest.update(data)
    file.seek(0)
    return digest.hexdigest() == checksum


def _is_at(path: Path, file: BinaryIO | None) -> bool:
    """Whether the path still leads to this file; for None, whether it still does not exist."""
    try:
        now = path.stat()
    except FileNotFoundError:
        return file is None
    return file is not None and os.path.samestat(now, os.fstat(file.fileno()))


def _commit(root: FolderRoot, key: str, new: Path, checksum: str, manifest: bytes) -> None:
    waiting = root.waiting_file(key, checksum)
    new.replace(waiting)
    make_durable(root.canonical)
    root.storage.write(manifest_name(key), manifest)
    waiting.replace(root.chunks_file(key))
    make_durable(root.canonical)


def _finish_last_commit(root: FolderRoot, key: str) -> None:
    """Finishes a commit that was killed before its last rename, and removes files of dead writers."""
    checksum = committed_checksum(root.manifest_bytes(key))
    if checksum is not None:
        waiting = root.waiting_file(key, checksum)
        if waiting.is_file() and _is_whole(waiting, checksum):
            waiting.replace(root.chunks_file(key))
            make_durable(root.canonical)
    # Matches only files of this key: for "a", neither files of key "a.b" nor those of other programs.
    begun = r"[0-9a-f]{16}\.new"
    for folder, rest in (
        (root.canonical, rf"([0-9a-f]{{64}}\.jsonl|{begun})"),
        (root.manifests, rf"manifest\.json\.{begun}"),
    ):
        ours = re.compile(rf"\.{re.escape(key)}\.{rest}")
        for entry in folder.iterdir():
            if ours.fullmatch(entry.name):
                entry.unlink(missing_ok=True)


def _is_whole(waiting: Path, checksum: str) -> bool:
    with waiting.open("rb") as file:
        return _has_checksum(file, checksum)


def _refuse_link_out(folder: Path, root: Path) -> None:
    if not folder.resolve().is_relative_to(root.resolve()):
        raise NotABusRoot(f"{folder} is a link to a folder outside {root}; make it a folder, or link the root itself")
