"""The table `family`: the families in all partitions that an ingest wrote, updated if a manifest has changed."""

import sqlite3
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import groupby
from typing import BinaryIO

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.diagnosis import parse_time
from chunksink.chunkbus.errors import InvalidManifest
from chunksink.chunkbus.findings import Finding
from chunksink.chunkbus.identity import family_key, parent_id, tenant_id
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import read_lines, read_manifest
from chunksink.chunkbus.validation import Validation
from chunksink.ingest.errors import IngestRefused
from chunksink.ingest.model import moment_of, summarise
from chunksink.ingest.placement import Placement, is_ours

_MAX_AHEAD = timedelta(days=1)
_LAST_MOMENT = datetime.max.replace(tzinfo=UTC) - timedelta(microseconds=1)
"""The latest moment to which a microsecond can be added."""


def load_partitions(db: sqlite3.Connection, bus: BusRoot, placement: Placement, *, trust_cache: bool) -> frozenset[str]:
    """Updates `family`. Returns the partitions that were missing or outdated in it, or cannot be used.

    Raises IngestRefused if a partition that this run may write is invalid, or was written by another program:
    rewriting it could lose chunks.
    """
    ours = [key for key in bus.partition_keys() if is_ours(bus, key)]
    only = placement.only
    if only is not None and only not in ours and only in bus.partition_keys():
        raise IngestRefused(_why_not_ours(bus, only))
    for (key,) in db.execute("select key from partition").fetchall():
        if key not in ours:
            _forget(db, key)
    return frozenset(key for key in ours if _load(db, bus, key, placement, trust_cache=trust_cache))


def _why_not_ours(bus: BusRoot, key: str) -> str:
    try:
        read_manifest(bus, key)
    except (OSError, InvalidManifest) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return (
            f"the manifest of partition {key} of {bus.address} cannot be read ({reason}); nothing was written. Restore "
            f"it from a copy, or move {_files(bus, key)} away and ingest every source of it again before the next sync"
        )
    return (
        f"partition {key} of {bus.address} was not written by `chunksink ingest`; nothing was written. Name another "
        "partition with --partition, or move that one away"
    )


def _load(db: sqlite3.Connection, bus: BusRoot, key: str, placement: Placement, *, trust_cache: bool) -> bool:
    known = db.execute("select * from partition where key = ?", [key]).fetchone()
    try:
        manifest, size = bus.manifest_and_size(key)
        if trust_cache and size is not None and known == _row(bus, key, manifest):
            return False  # unchanged; its chunks are not downloaded from a bucket
        file, manifest = bus.open(key)
    except OSError:
        _is_valid(bus, key, placement)
        _forget(db, key)
        return True
    with file:
        row = _row(bus, key, manifest, file)
        is_valid = _is_valid(bus, key, placement)
        _forget(db, key)
        if is_valid:
            _load_families(db, key, file)
            db.execute("insert into partition values (?, ?, ?, ?, ?, ?)", row)
        return row != known or not is_valid


def _row(
    bus: BusRoot, key: str, manifest: bytes | None, file: BinaryIO | None = None
) -> tuple[str, str, int, int, int, int]:
    """The partition's row in the table `partition`."""
    return key, sha256(manifest or b"").hexdigest(), *bus.chunks_signature(key, file)


def _is_valid(bus: BusRoot, key: str, placement: Placement) -> bool:
    """Whether the partition is valid. Raises IngestRefused if it is invalid and this run may write it."""
    findings: list[Finding] = []
    if Validation(bus, on_finding=findings.append).run([key]).ok:
        return True
    if placement.only in (None, key):
        first = next(finding for finding in findings if finding.is_error)
        raise IngestRefused(
            f"partition {key} of {bus.address} is not valid: {first}; nothing was written. Restore its files from a "
            f"copy, or move {_files(bus, key)} away and ingest every source of it again before the next sync"
        )
    return False


def _files(bus: BusRoot, key: str) -> str:
    return " and ".join(bus.present_files(key))


def _forget(db: sqlite3.Connection, key: str) -> None:
    db.execute("delete from family where partition = ?", [key])
    db.execute("delete from partition where key = ?", [key])


def _load_families(db: sqlite3.Connection, key: str, file: BinaryIO) -> None:
    """Records each family and the offsets of its lines, which an ingest writes next to each other."""
    lines = ((orjson.loads(line), place.offset, place.offset + place.length + 1) for place, line in read_lines(file))
    for _, members in groupby(lines, key=lambda line: family_key(parent_id(line[0]), tenant_id(line[0]))):
        records, starts, ends = zip(*members, strict=True)
        summary = summarise(records)
        origin = _origin_of(records[0], summary.name)
        row = (key, *summary, origin, starts[0], ends[-1])
        db.execute(f"insert or replace into family values ({', '.join('?' * len(row))})", row)
        db.execute(_SOURCE, {"family": summary.family, "uri": origin, "tenant": summary.tenant})


# Assumes that the file named by the chunks contains the family, unless a reading of that file is recorded.
_SOURCE = """
insert or ignore into source_family
select :family, :uri, :tenant, 1 where not exists (select 1 from source where source.uri = :uri)
"""


def _origin_of(record: Record, name: str) -> str:
    """The file that a chunk was read from: the first of its `provenance.inputs`, else its own source."""
    inputs = record["provenance"].get("inputs") or []
    origin = inputs[0].get("source_uri") if inputs and isinstance(inputs[0], dict) else name
    return origin if isinstance(origin, str) else name


def next_created_at(db: sqlite3.Connection, bus: BusRoot, now: str) -> str:
    """Now, or just after the newest time in the bus, so that no edit is lost if the clock was set back.

    Partitions of other programs do not count if their date is over a day ahead: all later chunks would get such dates.
    """
    moment = parse_time(now)
    stamps = {moment_of(one) for (one,) in db.execute("select distinct newest from family where newest is not null")}
    ours = {key for (key,) in db.execute("select key from partition")}
    for key in bus.partition_keys():
        try:
            stamp = moment_of(read_manifest(bus, key).created_at)
        except (OSError, InvalidManifest):
            continue  # validation reports it
        if key in ours or stamp <= moment + _MAX_AHEAD:
            stamps.add(stamp)
    newest = max(stamps, default=moment)
    if stamps and moment <= newest:
        moment = min(newest, _LAST_MOMENT) + timedelta(microseconds=1)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
