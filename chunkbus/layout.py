"""What a bus root is: a place for partitions, in a folder or in a bucket.

<root>/canonical/<key>.jsonl               the chunks of a partition
<root>/manifest/<key>.manifest.json        its manifest; the rename onto this name is the commit

`folder_partitions` and `bucket_partitions` describe their additional files.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from chunksink.chunkbus.errors import InvalidPartitionKey, NotABusRoot
from chunksink.chunkbus.storage import Storage, is_bucket

PARTITION_KEY = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
_KEY = re.compile(PARTITION_KEY)
_CHUNKS = ".jsonl"
_MANIFEST = ".manifest.json"
FOLDERS = {"canonical": _CHUNKS, "manifest": _MANIFEST}
"""The folders of a root, and how the names of their files end."""

Replace = Callable[[str, bytes], object]
"""Commits the new chunks, given their checksum and the encoded manifest."""


def is_partition_key(key: str) -> bool:
    return _KEY.fullmatch(key) is not None


def check_partition_key(key: str) -> str:
    if not is_partition_key(key):
        raise InvalidPartitionKey(
            f"{key!r} cannot name a partition: use 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
        )
    return key


class BusRoot(ABC):
    """A place for partitions: a `FolderRoot` or a `BucketRoot`. Only a folder has paths.

    A bucket is listed once, and again after `refresh`. "In a bucket as listed" marks methods that may answer from that
    listing. In a folder every answer is current.
    """

    storage: Storage
    poll_seconds: float
    """The minimum time between two checks for commits."""

    @staticmethod
    def at(place: str, home: Path) -> "BusRoot":
        """The root at a path or at an address such as `s3://BUCKET/PREFIX`, whose partitions are cached in `home`."""
        if not is_bucket(place):
            from chunksink.chunkbus.folder_partitions import FolderRoot

            return FolderRoot(Path(place))
        from chunksink.chunkbus.bucket import BucketStorage
        from chunksink.chunkbus.bucket_partitions import BucketRoot
        from chunksink.chunkbus.partition_cache import FOLDER, PartitionCache

        return BucketRoot(BucketStorage(place), PartitionCache(home / FOLDER))

    @property
    def address(self) -> str:
        """For messages."""
        return self.storage.address

    @property
    @abstractmethod
    def identity(self) -> bytes:
        """The same for every path that leads to this root."""

    @property
    def place(self) -> str:
        """The identity, for messages and run records."""
        return self.identity.decode(errors="backslashreplace")

    @property
    @abstractmethod
    def exists(self) -> bool: ...

    @property
    def mistake(self) -> str | None:
        """Why this cannot be a bus root (it is a file, or a folder inside a root); None if it may be one, even if its
        chunks are missing."""
        return None

    @property
    def _why_missing(self) -> str:
        return "it contains neither canonical/ nor manifest/"

    @property
    @abstractmethod
    def how_to_find_or_empty(self) -> str:
        """For messages: what to do if the chunks of an index are not here, and how to create a root without
        partitions."""

    def require(self) -> "BusRoot":
        """Returns this root, or raises NotABusRoot if it does not exist."""
        if not self.exists:
            raise NotABusRoot(
                self.mistake
                or f"no chunks at {self.address}: {self._why_missing}. Name the folder of your chunks with --chunks "
                "DIR, or make chunks from your documents with `chunksink ingest FOLDER`"
            )
        return self

    @abstractmethod
    def prepare(self) -> None:
        """Makes a root without manifests ready to be watched."""

    @abstractmethod
    def refresh(self) -> None:
        """Lists a bucket again at the next use."""

    def folders(self) -> tuple[Path, ...]:
        """All folders that writers use, including the one for the links that `ingest` finds. A bucket has none."""
        return ()

    def files(self, key: str) -> tuple[Path, ...]:
        """Where a partition's manifest and chunks are, even if they do not exist. A bucket has no files."""
        return ()

    @abstractmethod
    def present_files(self, key: str) -> list[str]:
        """Where a partition's manifest and chunks are, if they exist, for messages. In a bucket as listed."""

    def chunks_named(self, key: str, manifest: bytes | None) -> str | None:
        """The name of the chunks that belong to this manifest, whether or not they exist, for messages. None if an
        unreadable manifest hides it. In a bucket as listed."""
        return chunks_name(key)

    def partition_keys(self) -> list[str]:
        """The sorted keys of chunks files and manifests. A bucket ignores digest-named chunks without a manifest."""
        names = ((name, suffix) for folder, suffix in FOLDERS.items() for name in self._names(folder))
        keys = {name.removesuffix(suffix) for name, suffix in names if name.endswith(suffix)}
        return sorted(filter(is_partition_key, keys))

    def misnamed_files(self) -> list[str]:
        """Printable names of chunks files and manifests without a valid key, which nothing reads."""
        return sorted(
            _printable(folder, name)
            for folder, suffix in FOLDERS.items()
            for name in self._names(folder)
            if name.endswith(suffix) and not is_partition_key(name.removesuffix(suffix))
        )

    def stray_files(self) -> list[str]:
        """Printable names of other files and folders in `canonical/` and `manifest/`, which nothing reads."""
        return sorted(
            _printable(folder, name)
            for folder, suffix in FOLDERS.items()
            for name in self._names(folder)
            if not name.endswith(suffix)
        )

    @abstractmethod
    def _names(self, folder: str) -> Iterator[str]:
        """Names in a folder, except those with a leading dot: locks, and waiting or unfinished files."""

    @abstractmethod
    def size_of(self, key: str) -> int:
        """Bytes of the chunks, for progress; 0 if there are none. In a bucket as listed."""

    @abstractmethod
    def changed_at(self, key: str) -> float | None:
        """When the partition was last written, in seconds since 1970; None if that is unknown. In a bucket as
        listed."""

    @abstractmethod
    def committed(self) -> frozenset[object]:
        """What identifies the present version of every manifest. Lists a bucket again."""

    @abstractmethod
    def signature(self, key: str) -> str:
        """A text that changes if the manifest or the chunks change. In a bucket as listed."""

    @abstractmethod
    def settled_signature(self, key: str) -> tuple[str, bool]:
        """The present signature, and whether every later change will change it. May wait two seconds. Lists a bucket
        again if the manifest has changed."""

    @abstractmethod
    def chunks_signature(self, key: str, file: BinaryIO | None = None) -> tuple[int, int, int, int]:
        """The signature of the chunks, or of the open `file`. Constant in a bucket: the manifest identifies them."""

    def manifest_bytes(self, key: str) -> bytes | None:
        """None if there is no manifest."""
        try:
            return self.storage.read(manifest_name(key))
        except FileNotFoundError:
            return None

    def known_manifest(self, key: str) -> bytes | None:
        """Like `manifest_bytes`. In a bucket it is the manifest as first read after the listing."""
        return self.manifest_bytes(key)

    @abstractmethod
    def manifest_and_size(self, key: str) -> tuple[bytes | None, int | None]:
        """The manifest, and the size of the chunks that belong to it, without reading them. Each is None if it is
        missing. In a bucket as listed."""

    @abstractmethod
    def open(self, key: str) -> tuple[BinaryIO, bytes | None]:
        """The chunks that belong to the manifest, and the manifest, even during a commit or after a kill.

        Does not compare checksums. FileNotFoundError if there are no chunks."""

    def open_for_records(self, key: str) -> BinaryIO:
        """The chunks, to read only some of their records."""
        return self.open(key)[0]

    @abstractmethod
    def replacing(self, key: str, lock_seconds: float) -> AbstractContextManager[tuple[Path, Replace]]:
        """Where the new chunks of a partition are written, and how they are committed. PartitionLocked if another
        writer prevents that."""


def chunks_name(key: str) -> str:
    """The name of the chunks in the storage of a root."""
    return f"canonical/{check_partition_key(key)}{_CHUNKS}"


def manifest_name(key: str) -> str:
    """The manifest's name in the storage of a root."""
    return f"manifest/{check_partition_key(key)}{_MANIFEST}"


def _printable(folder: str, name: str) -> str:
    return f"{folder}/{name if name.isprintable() else ascii(name)[1:-1]}"
