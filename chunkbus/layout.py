"""Where the files of a bus root are, and which partitions it has.

<root>/canonical/<key>.jsonl               the chunks of a partition
<root>/canonical/.<key>.<sha256>.jsonl     new chunks until they have their own name (see `writer`)
<root>/manifest/<key>.manifest.json        its manifest; the rename onto this name is the commit

In a bucket, which has no rename, the chunks are canonical/<key>.<sha256>.jsonl (see `bucket_partitions`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from chunksink.chunkbus.errors import InvalidPartitionKey, NotABusRoot
from chunksink.chunkbus.signature import Signature, settled_signatures, signatures_of
from chunksink.chunkbus.storage import FolderStorage, Storage, is_bucket

if TYPE_CHECKING:
    from chunksink.chunkbus.bucket_partitions import BucketRoot

PARTITION_KEY = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_KEY = re.compile(PARTITION_KEY)
_CHUNKS = ".jsonl"
_MANIFEST = ".manifest.json"
_FOLDERS = (("canonical", _CHUNKS), ("manifest", _MANIFEST))


def is_partition_key(key: str) -> bool:
    return _KEY.fullmatch(key) is not None


def check_partition_key(key: str) -> str:
    if not is_partition_key(key):
        raise InvalidPartitionKey(
            f"{key!r} cannot name a partition: use 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
        )
    return key


@dataclass(frozen=True, eq=False, repr=False)
class BusRoot:
    """A folder for canonical partitions. `bucket_partitions.BucketRoot` is a prefix of a bucket instead."""

    path: Path

    @staticmethod
    def at(place: str, home: Path) -> "BusRoot":
        """The root at a path or at an address such as `s3://BUCKET/PREFIX`, whose partitions are cached in `home`."""
        if not is_bucket(place):
            return BusRoot(Path(place))
        from chunksink.chunkbus.bucket import BucketStorage
        from chunksink.chunkbus.bucket_partitions import BucketRoot
        from chunksink.chunkbus.partition_cache import FOLDER, PartitionCache

        return BucketRoot(BucketStorage(place), PartitionCache(home / FOLDER))

    @property
    def bucket(self) -> "BucketRoot | None":
        """This root if it is in a bucket; None if it is a folder. Only folders have the properties with paths."""
        return None

    @cached_property
    def storage(self) -> Storage:
        return FolderStorage(self.path)

    @property
    def address(self) -> str:
        """For messages."""
        return self.storage.address

    @property
    def place(self) -> str:
        """The address as an absolute path without links, to recognise the same place."""
        return self.address if self.bucket else str(self.path.resolve())

    @property
    def canonical(self) -> Path:
        return self.path / "canonical"

    @property
    def manifests(self) -> Path:
        return self.path / "manifest"

    def chunks_file(self, key: str) -> Path:
        return self.canonical / f"{check_partition_key(key)}{_CHUNKS}"

    def waiting_file(self, key: str, checksum_hex: str) -> Path:
        return self.canonical / f".{check_partition_key(key)}.{checksum_hex}{_CHUNKS}"

    def manifest_file(self, key: str) -> Path:
        return self.manifests / f"{check_partition_key(key)}{_MANIFEST}"

    def folders(self) -> tuple[Path, ...]:
        """All folders that writers use, including the one for the links that `ingest` finds. A bucket has none."""
        return self.path, self.canonical, self.manifests, self.path / "links"

    @property
    def exists(self) -> bool:
        return self.canonical.is_dir() or self.manifests.is_dir()

    @property
    def mistake(self) -> str | None:
        """Why this cannot be a bus root (it is a file, or a folder inside a root); None if it may be one, even if its
        chunks are missing."""
        if self.bucket is None and self.path.is_file():
            return f"{self.address} is a file: name the folder that contains canonical/ and manifest/"
        if self.bucket is None and self.path.name in dict(_FOLDERS) and BusRoot(self.path.parent).exists:
            return f"{self.address} is a part of the folder of chunks: name its parent, {self.path.parent}"
        return None

    def require(self) -> "BusRoot":
        """Returns this root, or raises NotABusRoot if it does not exist."""
        if not self.exists:
            if self.mistake:
                raise NotABusRoot(self.mistake)
            is_folder = self.bucket is not None or self.path.is_dir()
            why = "it contains neither canonical/ nor manifest/" if is_folder else "there is no such folder"
            raise NotABusRoot(
                f"no chunks at {self.address}: {why}. Name the folder of your chunks with --chunks DIR, or make "
                "chunks from your documents with `chunksink ingest FOLDER`"
            )
        return self

    def refresh(self) -> None:
        """Lists a bucket again at the next use. A folder is always read again."""

    def partition_keys(self) -> list[str]:
        """The keys of all chunks files and manifests, sorted. In a bucket, uploads without a manifest do not count."""
        keys = {name.removesuffix(_CHUNKS) for name in self._names("canonical", _CHUNKS)}
        keys |= {name.removesuffix(_MANIFEST) for name in self._names("manifest", _MANIFEST)}
        return sorted(key for key in keys if is_partition_key(key))

    def size_of(self, key: str) -> int:
        """Bytes of the chunks file, for progress; 0 if there is none."""
        file = self.chunks_file(key)
        return file.stat().st_size if file.is_file() else 0

    def changed_at(self, key: str) -> float | None:
        """When the partition was last written, in seconds since 1970; None if that is unknown."""
        newest = max((each.mtime_ns for each in signatures_of(self._files(key))), default=None)
        return None if newest is None else newest / 1e9

    def manifest_bytes(self, key: str) -> bytes | None:
        """None if there is no manifest."""
        try:
            return self.storage.read(manifest_name(key))
        except FileNotFoundError:
            return None

    def known_manifest(self, key: str) -> bytes | None:
        """Like `manifest_bytes`, but in a bucket the manifest may be as old as the last listing."""
        return self.manifest_bytes(key)

    def signature(self, key: str) -> str:
        """A text that changes if the manifest or the chunks change. For a bucket it describes the last listing."""
        return _described(signatures_of(self._files(key)))

    def settled_signature(self, key: str) -> tuple[str, bool]:
        """The present signature, and whether every later change of the files will change it. May wait two seconds."""
        signatures, is_settled = settled_signatures(self._files(key))
        return _described(signatures), is_settled

    def signature_now(self, key: str) -> str:
        """Like `signature`, but in a bucket it first lists again if the manifest has changed."""
        return self.signature(key)

    def misnamed_files(self) -> list[str]:
        """Printable names of chunks files and manifests without a valid key, which nothing reads."""
        return sorted(
            _printable(folder, name)
            for folder, suffix in _FOLDERS
            for name in self._names(folder, suffix)
            if not is_partition_key(name.removesuffix(suffix))
        )

    def stray_files(self) -> list[str]:
        """Printable names of other files and folders in `canonical/` and `manifest/`, which nothing reads."""
        return sorted(
            _printable(folder, name)
            for folder, suffix in _FOLDERS
            for name in self._names(folder)
            if not name.endswith(suffix)
        )

    def _files(self, key: str) -> tuple[Path, Path]:
        return self.manifest_file(key), self.chunks_file(key)

    def _names(self, folder: str, suffix: str = "") -> Iterator[str]:
        """Names with the suffix, except those with a leading dot: locks, and waiting or unfinished files."""
        if (self.path / folder).is_dir():
            for entry in (self.path / folder).iterdir():
                if entry.name.endswith(suffix) and not entry.name.startswith("."):
                    yield entry.name


def manifest_name(key: str) -> str:
    """The manifest's name in the storage of a root."""
    return f"manifest/{check_partition_key(key)}{_MANIFEST}"


def _described(signatures: list[Signature]) -> str:
    return " ".join(f"{each.inode}.{each.size}.{each.mtime_ns}.{each.ctime_ns}" for each in signatures)


def _printable(folder: str, name: str) -> str:
    return f"{folder}/{name if name.isprintable() else ascii(name)[1:-1]}"
