"""Partitions in a bucket: found by one listing, read through a local cache, committed by one conditional write.

<prefix>/canonical/<key>.<sha256>.jsonl    the chunks that the manifest names by their checksum
<prefix>/canonical/<key>.jsonl             the chunks of a partition that was copied from a folder
<prefix>/manifest/<key>.manifest.json      its manifest; writing it is the commit

Chunks are never overwritten with other content, so a manifest and its chunks always match. Of two writers, the one
whose manifest is written first wins; the other one's write is refused.
"""

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import BinaryIO

from chunksink.chunkbus.bucket import BucketStorage
from chunksink.chunkbus.errors import PartitionLocked, StorageConflict, StorageError
from chunksink.chunkbus.layout import BusRoot, Replace, check_partition_key, chunks_name, manifest_name
from chunksink.chunkbus.manifest import committed_checksum
from chunksink.chunkbus.partition_cache import PartitionCache
from chunksink.chunkbus.storage import Entry

KEPT = timedelta(hours=24)
"""A commit removes chunks files that its manifest does not name, but only if they are older than this. A slow writer
may still commit younger ones."""

_REMEMBERED_MANIFESTS = 1000
_NAMED_BY_DIGEST = re.compile(r"(?P<key>.+)\.[0-9a-f]{64}\.jsonl")


@dataclass
class _Listing:
    """The objects of both folders at one time."""

    manifests: dict[str, Entry] = field(default_factory=dict)
    plain: dict[str, Entry] = field(default_factory=dict)
    """Objects in `canonical/` that are not named by a digest."""
    chunks: dict[str, dict[str, Entry]] = field(default_factory=dict)
    """Objects with a digest in their names, by key, then by name."""


class BucketRoot(BusRoot):
    """A prefix of a bucket."""

    poll_seconds = 5.0

    def __init__(self, storage: BucketStorage, cache: PartitionCache) -> None:
        self.storage: BucketStorage = storage
        self.cache = cache
        self.refresh()

    @property
    def identity(self) -> bytes:
        return self.address.encode()

    @property
    def exists(self) -> bool:
        return any(next(self.storage.entries(folder), None) for folder in ("manifest", "canonical"))

    @property
    def how_to_find_or_empty(self) -> str:
        find = "Correct the bucket or prefix, in the settings or with --chunks"
        return f"{find}. To remove all partitions: write an empty object {self.address}/manifest/kept"

    def prepare(self) -> None:
        """A bucket has no folders."""

    def refresh(self) -> None:
        self._listed: _Listing | None = None
        self._read_manifest = lru_cache(_REMEMBERED_MANIFESTS)(self.manifest_bytes)

    def _names(self, folder: str) -> Iterator[str]:
        """The names of manifests, or of chunks that are not named by a digest."""
        listing = self._listing()
        yield from listing.manifests if folder == "manifest" else listing.plain

    def present_files(self, key: str) -> list[str]:
        manifest = self.known_manifest(key)
        chunks = self.chunks_named(key, manifest)
        names = [manifest_name(key)] if manifest is not None else []
        names += [chunks] if chunks is not None and self._is_listed(key, chunks) else []
        return [f"{self.address}/{name}" for name in names]

    def chunks_named(self, key: str, manifest: bytes | None) -> str | None:
        checksum = committed_checksum(manifest)
        names = _possible_names(key, checksum)
        if present := next((name for name in names if self._is_listed(key, name)), None):
            return present
        return names[0] if checksum is not None or manifest is None else None

    def _is_listed(self, key: str, chunks: str) -> bool:
        listing, name = self._listing(), _base(chunks)
        return name in listing.plain or name in listing.chunks.get(key, {})

    def committed(self) -> frozenset[object]:
        self.refresh()
        return frozenset((name, entry.version) for name, entry in self._listing().manifests.items())

    def size_of(self, key: str) -> int:
        """The size of the newest chunks."""
        listing = self._listing()
        entries = [*listing.chunks.get(key, {}).values(), *filter(None, [listing.plain.get(f"{key}.jsonl")])]
        return max(((entry.modified, entry.size) for entry in entries), default=(None, 0))[1]

    def changed_at(self, key: str) -> float | None:
        manifest = self._listing().manifests.get(_base(manifest_name(key)))
        return None if manifest is None else manifest.modified.timestamp()

    def signature(self, key: str) -> str:
        listing = self._listing()
        entries = [listing.manifests.get(_base(manifest_name(key))), listing.plain.get(f"{key}.jsonl")]
        chunks = listing.chunks.get(key, {})
        entries += [chunks[name] for name in sorted(chunks)]
        return " ".join(f"{each.version}.{each.size}" if each else "-" for each in entries)

    def settled_signature(self, key: str) -> tuple[str, bool]:
        known, now = self._listing().manifests.get(_base(manifest_name(key))), None
        with suppress(FileNotFoundError):
            now = self.storage.stat(manifest_name(key))
        if (known and known.version) != (now and now.version):
            self.refresh()
        return self.signature(key), True

    def chunks_signature(self, key: str, file: BinaryIO | None = None) -> tuple[int, int, int, int]:
        return 0, 0, 0, 0

    def open(self, key: str) -> tuple[BinaryIO, bytes | None]:
        """The chunks are a local copy, unless that is too large."""
        return self._open(key, lambda name, checksum: self.cache.fetch(self.storage, name, checksum))

    def open_for_records(self, key: str) -> BinaryIO:
        """The chunks: a local copy if there is one, else read by ranges."""
        return self._open(key, lambda name, checksum: self.cache.open(checksum) or self.storage.open(name))[0]

    def _open(self, key: str, fetch: Callable[[str, str | None], BinaryIO]) -> tuple[BinaryIO, bytes | None]:
        manifest = self.manifest_bytes(key)
        while True:
            checksum = committed_checksum(manifest)
            for name in _possible_names(key, checksum):
                with suppress(FileNotFoundError):
                    return fetch(name, checksum), manifest
            before, manifest = manifest, self.manifest_bytes(key)
            if manifest == before:
                missing = self.chunks_named(key, manifest) or chunks_name(key)
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{self.address}/{missing}")

    def known_manifest(self, key: str) -> bytes | None:
        return self._read_manifest(key)

    def manifest_and_size(self, key: str) -> tuple[bytes | None, int | None]:
        """The chunks are an object named by key and checksum, or one named by the key alone."""
        manifest, listing = self.known_manifest(key), self._listing()
        checksum = committed_checksum(manifest)
        named = listing.chunks.get(key, {}).get(_base(_chunks_name(key, checksum))) if checksum else None
        entry = named or listing.plain.get(f"{key}.jsonl")
        return manifest, None if entry is None else entry.size

    @contextmanager
    def replacing(self, key: str, lock_seconds: float) -> Iterator[tuple[Path, Replace]]:
        version = None
        with suppress(FileNotFoundError):
            version = self.storage.read_version(manifest_name(key))[1]
        with self.cache.spool() as new:
            yield new, partial(self._commit, key, new, version)

    def _commit(self, key: str, new: Path, version: str | None, checksum: str, manifest: bytes) -> None:
        """Replaces the partition if its manifest still has this version; else raises PartitionLocked."""
        name = _chunks_name(key, checksum)
        self.storage.write(name, new)  # even if it exists: its new time keeps other writers from removing it as old
        try:
            self.storage.write_if_unchanged(manifest_name(key), manifest, version)
        except StorageConflict as error:
            raise PartitionLocked(
                f"another writer committed partition {key} of {self.storage.address} first; run again"
            ) from error
        present = {f"canonical/{entry.name}": entry for entry in self._chunks_of(key)}
        if present.pop(name, None) is None:  # another writer has removed it as old, before the manifest was committed
            self.storage.write(name, new)
        self.cache.keep(new, checksum)
        with suppress(StorageError, FileNotFoundError):  # the commit is complete; the next one tries again
            self._remove_old(key, present, manifest)
        self.refresh()

    def _remove_old(self, key: str, names: Iterable[str], manifest: bytes) -> None:
        """Removes the named chunks files that are older than the commit by more than `KEPT`, by the server's clock."""
        for name in names:
            committed = self.storage.stat(manifest_name(key))
            if self.storage.read(manifest_name(key)) != manifest:
                return  # a later commit may use these files; it removes old ones itself
            if self.storage.stat(name).modified < committed.modified - KEPT:
                self.storage.remove(name)

    def _chunks_of(self, key: str) -> Iterator[Entry]:
        """All chunks files of the partition in the bucket now, of every version."""
        for entry in self.storage.entries("canonical", after=f"{key}."):
            if not entry.name.startswith(f"{key}."):
                return  # names are sorted
            digest_named = _NAMED_BY_DIGEST.fullmatch(entry.name)
            if (digest_named["key"] if digest_named else entry.name.removesuffix(".jsonl")) == key:
                yield entry

    def _listing(self) -> _Listing:
        if self._listed is None:
            listing = _Listing({entry.name: entry for entry in self.storage.entries("manifest")})
            for entry in self.storage.entries("canonical"):
                named = _NAMED_BY_DIGEST.fullmatch(entry.name)
                # A key may itself end in a dot and 64 hex digits. If the whole name without `.jsonl` has a manifest, it
                # is the key.
                if named is None or f"{entry.name.removesuffix('.jsonl')}.manifest.json" in listing.manifests:
                    listing.plain[entry.name] = entry
                else:
                    listing.chunks.setdefault(named["key"], {})[entry.name] = entry
            self._listed = listing
        return self._listed


def _chunks_name(key: str, checksum: str) -> str:
    return f"canonical/{check_partition_key(key)}.{checksum}.jsonl"


def _possible_names(key: str, checksum: str | None) -> list[str]:
    """The names that the chunks of a manifest with this checksum may have; the first one that exists counts."""
    return ([_chunks_name(key, checksum)] if checksum else []) + [chunks_name(key)]


def _base(name: str) -> str:
    return name.rpartition("/")[2]
