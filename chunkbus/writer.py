"""Writes a partition atomically: a kill at any point leaves either the old or the new version complete.

Checks the chunks and creates the manifest. `folder_partitions` and `bucket_partitions` commit them.
"""

import os
from array import array
from collections.abc import Iterable
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from chunksink.chunkbus.chunk import CHUNK_VERSION, Record
from chunksink.chunkbus.errors import InvalidChunk, InvalidManifest, RepeatedChunks
from chunksink.chunkbus.families import hash_number
from chunksink.chunkbus.findings import Problem, has_error
from chunksink.chunkbus.inventory import Inventory
from chunksink.chunkbus.layout import BusRoot, Replace, check_partition_key
from chunksink.chunkbus.manifest import (
    Checksums,
    Counts,
    Idempotency,
    Manifest,
    ManifestProducer,
    Tombstone,
    encode_manifest,
    examine_manifest,
)
from chunksink.chunkbus.record_checks import examine_line

LOCK_SECONDS = 10.0


class PartitionWriter:
    """Writes one partition. `with PartitionWriter(root, key) as writer: writer.add(...); writer.commit(...)`.

    Leaving without a commit discards what was added. Only one writer can work on a partition in a folder: a second one
    waits for `lock_seconds`, then raises PartitionLocked. In a bucket several can, and the first commit wins: the
    others raise PartitionLocked.
    """

    def __init__(self, root: BusRoot, key: str, *, lock_seconds: float = LOCK_SECONDS) -> None:
        self._root = root
        self._key = check_partition_key(key)
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
            new, self._replace = opened.enter_context(self._root.replacing(self._key, self._lock_seconds))
            opened.enter_context(self._inventory)
            self._file = opened.enter_context(new.open("xb"))
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
        self._replace(digest, encoded)
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
            raise RuntimeError("a PartitionWriter can be used only inside its `with` block, and before its commit")
        return self._file


def _reasons(problems: Iterable[Problem]) -> str:
    return "; ".join(f"{problem.code} {problem.detail}" for problem in problems)
