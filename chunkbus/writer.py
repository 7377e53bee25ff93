"""Writes a partition atomically: a kill at any point leaves either the old or the new version complete.

New chunks are written under a name that readers ignore, then wait as `canonical/.<key>.<sha256>.jsonl`. Renaming the
manifest is the commit. Then the chunks get their own name. If a kill prevents that, readers use the waiting file, whose
checksum is in the manifest, and the next writer finishes the rename. `bucket_partitions` commits in a bucket.
"""

import os
import re
import secrets
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import filelock
import orjson

from chunksink.chunkbus.chunk import CHUNK_VERSION, Record
from chunksink.chunkbus.errors import InvalidChunk, InvalidManifest, NotABusRoot, PartitionLocked, RepeatedChunks
from chunksink.chunkbus.families import hash_number
from chunksink.chunkbus.findings import Problem, has_error
from chunksink.chunkbus.inventory import Inventory
from chunksink.chunkbus.layout import BusRoot, check_partition_key, manifest_name
from chunksink.chunkbus.manifest import (
    Checksums,
    Counts,
    Idempotency,
    Manifest,
    ManifestProducer,
    Tombstone,
    committed_checksum,
    encode_manifest,
    examine_manifest,
)
from chunksink.chunkbus.reader import has_checksum
from chunksink.chunkbus.record_checks import examine_line
from chunksink.chunkbus.storage import make_durable

if TYPE_CHECKING:
    from chunksink.chunkbus.bucket_partitions import BucketRoot

OnStep = Callable[[str], object]
Replace = Callable[[str, bytes, OnStep], object]
"""Commits the new chunks, given their checksum, the encoded manifest, and a function to call after each step."""
LOCK_SECONDS = 10.0

# The steps of a commit; a kill after each leaves a different state on disk. Tests kill at each of them.
COMMIT_STEPS = (
    "chunks_opened",
    "chunks_written",
    "chunks_waiting",
    "manifest_committed",
    "chunks_renamed",
)


class PartitionWriter:
    """Writes one partition. `with PartitionWriter(root, key) as writer: writer.add(...); writer.commit(...)`.

    Leaving without a commit discards what was added. Only one writer can work on a partition in a folder: a second one
    waits for `lock_seconds`, then raises PartitionLocked. In a bucket several can, and the first commit wins: the
    others raise PartitionLocked.
    """

    def __init__(
        self,
        root: BusRoot,
        key: str,
        *,
        lock_seconds: float = LOCK_SECONDS,
        on_step: OnStep = lambda _step: None,
    ) -> None:
        self._root = root
        self._key = check_partition_key(key)
        self._on_step = on_step
        self._lock_seconds = lock_seconds
        self._replace: Replace | None = None
        self._checksum = sha256()
        self._chunks = 0
        self._inventory = Inventory()
        self._inventory.begin(key)
        self._ids, self._offsets = array("q"), array("q")
        self._bytes = 0
        self._opened = ExitStack()
        self._file: BinaryIO | None = None

    def __enter__(self) -> "PartitionWriter":
        with ExitStack() as opened:
            if bucket := self._root.bucket:
                target = _target_in_bucket(bucket, self._key)
            else:
                target = _target_in_folder(self._root, self._key, self._lock_seconds)
            new, self._replace = opened.enter_context(target)
            opened.enter_context(self._inventory)
            self._file = opened.enter_context(new.open("xb"))
            self._on_step("chunks_opened")
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    def add(self, record: Record) -> None:
        """Adds one chunk; refuses one that breaks the contract."""
        try:
            line = orjson.dumps(record)
        except orjson.JSONEncodeError as error:
            raise InvalidChunk(f"{self._place()}: not a JSON value: {error}") from error
        self.add_line(line)

    def add_line(self, line: bytes) -> None:
        """Adds one chunk as a line of JSON without the line break; refuses one that breaks the contract."""
        if b"\n" in line:
            raise InvalidChunk(f"{self._place()}: a line break in the line")
        chunk, problems = examine_line(line)
        if chunk is None or has_error(problems):
            raise InvalidChunk(f"{self._place()}: {_reasons(problems)}")
        self._chunks += 1
        self._ids.append(hash_number(chunk.chunk_id))
        self._offsets.append(self._bytes)
        if len(self._ids) >= 4096:
            self._record_ids()
        for part in (line, b"\n"):
            self._checksum.update(part)
            self._bytes += self._open_file().write(part)

    def _place(self) -> str:
        return f"chunk {self._chunks + 1} of partition {self._key}"

    def commit(
        self,
        *,
        documents: int,
        producer: ManifestProducer,
        created_at: str,
        failures: int = 0,
        skipped: int = 0,
        errors: dict[str, int] | None = None,
        tombstones: list[Tombstone] | None = None,
        chunking_policy_id: str | None = None,
        input_sources: Any = None,
        canonicalization_versions: Any = None,
    ) -> Manifest:
        """Replaces the partition with the added chunks. Returns after they are durable."""
        self._refuse_repeated_ids()
        digest = self._checksum.hexdigest()
        manifest = Manifest(
            schema_version=CHUNK_VERSION,
            partition_key=self._key,
            created_at=created_at,
            producer=producer,
            counts=Counts(documents=documents, chunks_emitted=self._chunks, failures=failures),
            checksums=Checksums(f"sha256:{digest}"),
            idempotency=Idempotency(skipped),
            errors=errors or {},
            input_sources=input_sources,
            canonicalization_versions=canonicalization_versions,
            chunking_policy_id=chunking_policy_id,
            tombstones=tombstones or [],
        )
        encoded = encode_manifest(manifest)
        problems = examine_manifest(self._key, encoded)
        if problems:
            raise InvalidManifest(f"partition {self._key}: {_reasons(problems)}")
        assert self._replace is not None
        file = self._open_file()
        file.flush()
        os.fsync(file.fileno())
        file.close()
        self._on_step("chunks_written")
        self._replace(digest, encoded, self._on_step)
        return manifest

    def _record_ids(self) -> None:
        self._inventory.add_ids(self._ids, self._offsets)
        self._ids, self._offsets = array("q"), array("q")

    def _refuse_repeated_ids(self) -> None:
        self._record_ids()
        self._open_file().flush()
        with Path(self._open_file().name).open("rb") as written:
            repeated = list(self._inventory.repeated_ids(written))
        if repeated:
            lines = f"chunks {repeated[0].earlier_line} and {repeated[0].line} of partition {self._key}"
            raise RepeatedChunks(f"{lines} share chunk_id {repeated[0].chunk_id!r}", repeated)

    def _open_file(self) -> BinaryIO:
        if self._file is None or self._file.closed:
            raise RuntimeError("a PartitionWriter takes chunks inside its `with` block, before its commit")
        return self._file


@contextmanager
def _target_in_bucket(root: "BucketRoot", key: str) -> Iterator[tuple[Path, Replace]]:
    """Where the new chunks are written, and how they are committed."""
    with root.cache.spool() as new:
        yield new, partial(root.commit, key, new, root.version(key))


@contextmanager
def _target_in_folder(root: BusRoot, key: str, lock_seconds: float) -> Iterator[tuple[Path, Replace]]:
    """Where the new chunks are written, and how they are committed. Locks the partition."""
    for folder in (root.canonical, root.manifests):
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_link_out(folder, root.path)
    lock = filelock.FileLock(str(root.canonical / f".{key}.lock"), timeout=lock_seconds)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        raise PartitionLocked(f"partition {key} of {root.path} is being written") from error
    new = root.canonical / f".{key}.{secrets.token_hex(8)}.new"
    with ExitStack() as held:
        held.callback(lock.release)
        _finish_last_commit(root, key)
        held.callback(new.unlink, missing_ok=True)
        yield new, partial(_commit, root, key, new)


def _commit(root: BusRoot, key: str, new: Path, checksum: str, manifest: bytes, on_step: OnStep) -> None:
    waiting = root.waiting_file(key, checksum)
    new.replace(waiting)
    make_durable(root.canonical)
    on_step("chunks_waiting")
    root.storage.write(manifest_name(key), manifest)
    on_step("manifest_committed")
    waiting.replace(root.chunks_file(key))
    make_durable(root.canonical)
    on_step("chunks_renamed")


def _finish_last_commit(root: BusRoot, key: str) -> None:
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


def _reasons(problems: Iterable[Problem]) -> str:
    return "; ".join(f"{problem.code} {problem.detail}" for problem in problems)


def _is_whole(waiting: Path, checksum: str) -> bool:
    with waiting.open("rb") as file:
        return has_checksum(file, checksum)


def _refuse_link_out(folder: Path, root: Path) -> None:
    if not folder.resolve().is_relative_to(root.resolve()):
        raise NotABusRoot(f"{folder} is a link to a folder outside {root}; make it a folder, or link the root itself")
