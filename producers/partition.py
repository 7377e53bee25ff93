"""What a partition holds already, so that a new version of it can carry over what the run does not replace."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import BinaryIO

import orjson

from chunkbus.chunk import Record
from chunkbus.diagnose import parse_time
from chunkbus.errors import InvalidManifest
from chunkbus.findings import Finding
from chunkbus.identity import family_key, parent_id, resolve_parent_id, source_name, tenant_id
from chunkbus.layout import BusRoot
from chunkbus.manifest import Manifest
from chunkbus.reader import open_partition, read_lines, read_manifest
from chunkbus.validate import Validation
from producers.errors import IngestRefused


@dataclass
class Family:
    """All chunks of one source in the partition: who it is, its version, and where its lines lie."""

    name: str
    tenant: str | None
    version: tuple[str | None, ...]
    chunks: int = 0
    stretches: list[tuple[int, int]] = field(default_factory=list)

    def extend(self, start: int, end: int) -> None:
        self.chunks += 1
        if self.stretches and self.stretches[-1][1] == start:
            self.stretches[-1] = (self.stretches[-1][0], end)
        else:
            self.stretches.append((start, end))


@dataclass(frozen=True)
class Existing:
    """A valid partition, or none yet: its families by key, and the newest time that any of its chunks bears."""

    families: dict[str, Family]
    manifest: Manifest | None
    newest: datetime | None


def key_of_source(uri: str, tenant: str | None) -> str:
    """The family key that chunks of this source get."""
    return family_key(resolve_parent_id(None, uri, ""), tenant)


def version_of(provenance: Record) -> tuple[str | None, ...]:
    """Checksum, parser and canonicaliser, however they are written."""
    parser = provenance.get("parser") or provenance
    canonicalizer = provenance.get("canonicalizer") or provenance
    return (
        (provenance.get("source_checksum") or "").removeprefix("sha256:") or None,
        parser.get("parser_name"),
        parser.get("parser_version"),
        canonicalizer.get("canonicalizer_name"),
        canonicalizer.get("canonicalizer_version"),
    )


def read_existing(root: BusRoot, key: str) -> Existing:
    """The partition as it stands. Refuses an invalid one: rewriting it could lose what can still be mended."""
    if not root.manifest_file(key).exists() and not root.chunks_file(key).exists():
        return Existing({}, None, None)
    found: list[Finding] = []
    if not Validation(root, on_finding=found.append).run([key]).ok:
        first = next(finding for finding in found if finding.is_error)
        raise IngestRefused(
            f"partition {key} of {root.path} is not valid, and writing it again could lose chunks: {first}; "
            "mend it, move it away, or write to another partition"
        )
    families: dict[str, Family] = {}
    newest: str | None = None
    moment: datetime | None = None
    file, _ = open_partition(root, key)
    with file:
        for place, line in read_lines(file):
            record: Record = orjson.loads(line)
            tenant = tenant_id(record)
            family = families.setdefault(
                family_key(parent_id(record), tenant),
                Family(source_name(record) or record["document_id"], tenant, ()),
            )
            family.version = version_of(record["provenance"])
            family.extend(place.offset, place.offset + place.length + 1)
            stamp = record.get("created_at")
            if stamp and stamp != newest:  # chunks of one run share theirs
                newest = stamp
                moment = max(moment or _EARLIEST, parse_time(stamp))
    return Existing(families, read_manifest(root, key), moment)


_EARLIEST = datetime.min.replace(tzinfo=UTC)


class FamilyReader:
    """The partition's file, held open to read families from; the partition's writer keeps it from changing."""

    def __init__(self, root: BusRoot, key: str) -> None:
        self._root = root
        self._key = key
        self._file: BinaryIO | None = None

    def __enter__(self) -> "FamilyReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def records(self, family: Family) -> Iterator[Record]:
        if self._file is None:
            self._file, _ = open_partition(self._root, self._key)
        for start, end in family.stretches:
            self._file.seek(start)
            for line in self._file.read(end - start).rstrip(b"\n").split(b"\n"):
                yield orjson.loads(line)


def next_created_at(root: BusRoot, existing: Existing, now: str) -> str:
    """Now, or just after the newest time that the bus knows: a clock that jumped back must not lose an edit."""
    moment = parse_time(now)
    known = [existing.newest] if existing.newest else []
    for key in root.partition_keys():
        try:
            known.append(parse_time(read_manifest(root, key).created_at))
        except (OSError, InvalidManifest, ValueError, OverflowError):
            continue  # says nothing that could be compared; validation reports it
    newest = max(known, default=_EARLIEST)
    if moment <= newest:
        moment = newest + timedelta(microseconds=1)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
