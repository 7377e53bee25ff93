"""What a partition holds already, so that a new version of it can carry over what the run does not replace."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import BinaryIO

import orjson

from chunksink.chunkbus.canonical import chunk_object_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.diagnose import parse_time
from chunksink.chunkbus.errors import InvalidManifest, PartitionLocked
from chunksink.chunkbus.findings import Finding
from chunksink.chunkbus.identity import family_key, parent_id, source_name, tenant_id
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import Manifest, decode_manifest
from chunksink.chunkbus.reader import open_partition, read_lines, read_manifest
from chunksink.chunkbus.signature import Signature
from chunksink.chunkbus.validate import Validation
from chunksink.producers.errors import IngestRefused
from chunksink.producers.families import Family, origin_of, version_of
from chunksink.producers.memory import Memory
from chunksink.producers.standing import Standing

_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Existing:
    """A valid partition, or none yet, with the bytes of the manifest that says so."""

    key: str
    manifest_bytes: bytes | None

    @property
    def manifest(self) -> Manifest | None:
        return None if self.manifest_bytes is None else decode_manifest(self.manifest_bytes)

    def rank_of(self, family: Family) -> tuple[datetime, str]:
        """What decides where a family counts that stands in several partitions."""
        stamp = family.newest or (self.manifest.created_at if self.manifest else None)
        return (parse_time(stamp) if stamp else _EARLIEST, self.key)


def read_existing(
    root: BusRoot, key: str, memory: Memory, families: Standing, noted_ns: int, *, trust_memory: bool = True
) -> Existing:
    """The partition as it stands, and its families. Refuses an invalid one: rewriting it could lose what can still be
    mended."""
    if not root.manifest_file(key).exists() and not root.chunks_file(key).exists():
        return Existing(key, None)
    if trust_memory and (known := _from_memory(root, key, memory, families)) is not None:
        return known
    found: list[Finding] = []
    if not Validation(root, on_finding=found.append).run([key]).ok:
        first = next(finding for finding in found if finding.is_error)
        files = [file for file in (root.manifest_file(key), root.chunks_file(key)) if file.exists()]
        raise IngestRefused(
            f"partition {key} of {root.path} is not valid, and writing it again could lose chunks: {first}; nothing "
            f"was written. Bring its files back from a copy; or move {' and '.join(map(str, files))} away, and ingest "
            "every source of this partition again before the next sync, which removes what the partition does not hold"
        )
    file, manifest = open_partition(root, key)
    with file:
        signature = Signature.of(os.fstat(file.fileno()))
        _read_families(file, key, families)
    if manifest is not None:
        memory.note_families(key, manifest, signature, noted_ns, families.rows(key))
    return Existing(key, manifest)


def _from_memory(root: BusRoot, key: str, memory: Memory, families: Standing) -> Existing | None:
    try:
        file, manifest = open_partition(root, key)
    except OSError:
        return None  # validation says what is wrong
    with file:
        signature = Signature.of(os.fstat(file.fileno()))
    known = None if manifest is None else memory.families(key, manifest, signature)
    if known is None:
        return None
    families.fill(key, known)
    return Existing(key, manifest)


def _read_families(file: BinaryIO, partition: str, families: Standing) -> None:
    family: Family | None = None
    for place, line in read_lines(file):
        record: Record = orjson.loads(line)
        tenant = tenant_id(record)
        key = family_key(parent_id(record), tenant)
        if family is None or family.key != key:
            if family is not None:
                families.put(partition, family)
            family = families.get(partition, key)
        if family is None:
            document = record["document_id"]
            name = source_name(record) or document
            family = Family(key, name, document, tenant, (), origin_of(record, name), record.get("created_at"))
        family.version = version_of(record["provenance"])
        family.newest = newer(family.newest, record.get("created_at"))
        family.extend(place.offset, place.offset + place.length + 1)
    if family is not None:
        families.put(partition, family)


def newer(one: str | None, other: str | None) -> str | None:
    """The later of two times; None where one is missing."""
    if one is None or other is None or one == other:  # chunks of one run share theirs
        return None if other is None else one
    return max(one, other, key=parse_time)


def dated(line: bytes, created_at: str) -> bytes:
    """A chunk that does not say its age had that of its manifest, and is no younger where it is written again."""
    record: Record = orjson.loads(line)
    if record.get("created_at") is not None:
        return line
    record["created_at"] = created_at
    hashes = record.get("hashes") or {}
    if hashes.get("chunk_object_hash") is not None:
        hashes["chunk_object_hash"] = chunk_object_hash(record)
    return orjson.dumps(record)


class FamilyReader:
    """Files of partitions, held open to read families from. Refuses one that was written since it was read."""

    def __init__(self, root: BusRoot) -> None:
        self._root = root
        self._open: tuple[Existing, BinaryIO] | None = None

    def __enter__(self) -> "FamilyReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            self._open[1].close()

    def lines(self, existing: Existing, family: Family) -> Iterator[bytes]:
        file = self._file(existing)
        for start, end in family.stretches:
            file.seek(start)
            yield from file.read(end - start).rstrip(b"\n").split(b"\n")

    def _file(self, existing: Existing) -> BinaryIO:
        if self._open is not None and self._open[0] is existing:
            return self._open[1]
        if self._open is not None:
            self._open[1].close()
            self._open = None
        file, manifest = open_partition(self._root, existing.key)
        if manifest != existing.manifest_bytes:
            file.close()
            raise written_meanwhile(existing.key)
        self._open = (existing, file)
        return file


def written_meanwhile(key: str) -> PartitionLocked:
    return PartitionLocked(f"partition {key} was written by another process meanwhile; run again")


def next_created_at(root: BusRoot, stamps: Iterable[str], now: str) -> str:
    """Now, or just after the newest time that the bus knows, these among them: a clock that jumped back must not lose
    an edit."""
    moment = parse_time(now)
    newest = max(map(parse_time, stamps), default=_EARLIEST)
    for key in root.partition_keys():
        try:
            newest = max(newest, parse_time(read_manifest(root, key).created_at))
        except (OSError, InvalidManifest, ValueError, OverflowError):
            continue  # says nothing that could be compared; validation reports it
    if moment <= newest:
        moment = newest + timedelta(microseconds=1)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
