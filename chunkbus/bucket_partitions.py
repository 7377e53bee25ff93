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
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from chunksink.chunkbus.bucket import BucketStorage
from chunksink.chunkbus.errors import PartitionLocked, StorageConflict, StorageError
from chunksink.chunkbus.layout import BusRoot, check_partition_key, manifest_name
from chunksink.chunkbus.manifest import committed_checksum
from chunksink.chunkbus.partition_cache import PartitionCache
from chunksink.chunkbus.storage import Entry

COMMIT_STEPS = (
    "chunks_opened",
    "chunks_written",
    "chunks_uploaded",
    "manifest_committed",
    "chunks_confirmed",
    "old_chunks_removed",
)
"""The steps of a commit in a bucket."""

KEPT = timedelta(hours=24)
"""A commit removes chunks files that its manifest does not name and that are older than the commit by more than this. A
slow writer may still commit younger ones."""

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
    """A prefix of a bucket, without paths. It is listed once, and again after `refresh`."""

    def __init__(self, storage: BucketStorage, cache: PartitionCache) -> None:
        self.storage: BucketStorage = storage
        self.cache = cache
        self.refresh()

    @property
    def bucket(self) -> "BucketRoot":
        return self

    def folders(self) -> tuple[Path, ...]:
        return ()

    @property
    def exists(self) -> bool:
        return any(next(self.storage.entries(folder), None) for folder in ("manifest", "canonical"))

    def refresh(self) -> None:
        self._listed: _Listing | None = None
        self._read_manifest = lru_cache(_REMEMBERED_MANIFESTS)(self.manifest_bytes)

    def _names(self, folder: str, suffix: str = "") -> Iterator[str]:
        """The names of manifests, or of chunks that are not named by a digest."""
        listing = self._listing()
        for name in listing.manifests if folder == "manifest" else listing.plain:
            if name.endswith(suffix):
                yield name

    def versions(self) -> frozenset[tuple[str, str]]:
        """The name and version of each manifest now."""
        self.refresh()
        return frozenset((name, entry.version) for name, entry in self._listing().manifests.items())

    def size_of(self, key: str) -> int:
        """The size of the newest chunks."""
        listing = self._listing()
        entries = [*listing.chunks.get(key, {}).values(), *filter(None, [listing.plain.get(f"{key}.jsonl")])]
        return max(((entry.modified, entry.size) for entry in entries), default=(None, 0))[1]

    def changed_at(self, key: str) -> float | None:
        """When the manifest was last written, as it was listed."""
        manifest = self._listing().manifests.get(_base(manifest_name(key)))
        return None if manifest is None else manifest.modified.timestamp()

    def signature(self, key: str) -> str:
        """The signature at the time of the last listing."""
        listing = self._listing()
        entries = [listing.manifests.get(_base(manifest_name(key))), listing.plain.get(f"{key}.jsonl")]
        chunks = listing.chunks.get(key, {})
        entries += [chunks[name] for name in sorted(chunks)]
        return " ".join(f"{each.version}.{each.size}" if each else "-" for each in entries)

    def signature_now(self, key: str) -> str:
        """Lists the bucket again if the manifest has changed."""
        known, now = self._listing().manifests.get(_base(manifest_name(key))), None
        with suppress(FileNotFoundError):
            now = self.storage.stat(manifest_name(key))
        if (known and known.version) != (now and now.version):
            self.refresh()
        return self.signature(key)

    def settled_signature(self, key: str) -> tuple[str, bool]:
        return self.signature_now(key), True

    def open(self, key: str) -> tuple[BinaryIO, bytes | None]:
        """The chunks (a local copy, unless that is too large) and the manifest. Does not check that the chunks have the
        manifest's checksum."""
        return self._open(key, lambda name, checksum: self.cache.fetch(self.storage, name, checksum))

    def open_for_records(self, key: str) -> BinaryIO:
        """The chunks: a local copy if there is one, else read by ranges."""
        return self._open(key, lambda name, checksum: self.cache.open(checksum) or self.storage.open(name))[0]

    def _open(self, key: str, fetch: Callable[[str, str | None], BinaryIO]) -> tuple[BinaryIO, bytes | None]:
        manifest = self.manifest_bytes(key)
        while True:
            checksum = committed_checksum(manifest)
            for name in ([_chunks_name(key, checksum)] if checksum else []) + [_plain_name(key)]:
                with suppress(FileNotFoundError):
                    return fetch(name, checksum), manifest
            before, manifest = manifest, self.manifest_bytes(key)
            if manifest == before:
                missing = f"{self.storage.address}/{_plain_name(key)}"
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), missing)

    def known_manifest(self, key: str) -> bytes | None:
        """The manifest, as it was first read after the listing."""
        return self._read_manifest(key)

    def has_chunks(self, key: str, checksum: str | None) -> bool:
        """Whether the listing has chunks for a manifest with this checksum: an object named by key and checksum, or one
        named by the key alone, whose content is not compared."""
        listing = self._listing()
        named = checksum is not None and _base(_chunks_name(key, checksum)) in listing.chunks.get(key, {})
        return named or f"{key}.jsonl" in listing.plain

    def version(self, key: str) -> str | None:
        """The manifest's version, for `commit`; None if there is no manifest."""
        with suppress(FileNotFoundError):
            return self.storage.read_version(manifest_name(key))[1]
        return None

    def commit(
        self, key: str, new: Path, version: str | None, checksum: str, manifest: bytes, on_step: Callable[[str], object]
    ) -> None:
        """Replaces the partition if its manifest still has this version; else raises PartitionLocked."""
        name = _chunks_name(key, checksum)
        self.storage.write(name, new)  # even if it exists: its new time keeps other writers from removing it as old
        on_step("chunks_uploaded")
        try:
            self.storage.write_if_unchanged(manifest_name(key), manifest, version)
        except StorageConflict as error:
            raise PartitionLocked(
                f"another writer committed partition {key} of {self.storage.address} meanwhile; run again"
            ) from error
        on_step("manifest_committed")
        present = {f"canonical/{entry.name}": entry for entry in self._chunks_of(key)}
        if present.pop(name, None) is None:  # another writer has removed it as old, before the manifest was committed
            self.storage.write(name, new)
        on_step("chunks_confirmed")
        self.cache.keep(new, checksum)
        with suppress(StorageError, FileNotFoundError):  # the commit is complete; the next one tries again
            self._remove_old(key, present, manifest)
        on_step("old_chunks_removed")
        self.refresh()

    def _remove_old(self, key: str, names: Iterable[str], manifest: bytes) -> None:
        """Removes the old ones of these chunks files. Their age is measured by the clock of the server."""
        for name in names:
            committed = self.storage.stat(manifest_name(key))
            if self.storage.read(manifest_name(key)) != manifest:
                return  # a later writer does it, and may need them
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


def _plain_name(key: str) -> str:
    return f"canonical/{check_partition_key(key)}.jsonl"


def _chunks_name(key: str, checksum: str) -> str:
    return f"canonical/{check_partition_key(key)}.{checksum}.jsonl"


def _base(name: str) -> str:
    return name.rpartition("/")[2]
