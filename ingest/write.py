"""Stage 5: writes the partitions that change. If the run is killed between two of them, nothing is lost.

Arrivals are written before departures. So a family that moves is in both partitions between the two commits, and the
copy with the newest `created_at` counts.
"""

import os
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from typing import Any, BinaryIO

from msgspec.structs import replace

from chunksink.chunkbus.errors import InvalidChunk, PartitionLocked, RepeatedChunks
from chunksink.chunkbus.findings import DUPLICATE_IDS
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import Manifest, ManifestProducer, Tombstone, decode_manifest
from chunksink.chunkbus.signature import wait_a_tick
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.ingest.links import drop_links
from chunksink.ingest.report import Failure

_LISTED_SOURCES = 1000
_NEW = ""
"""The value of `family.partition` for a new version of a partition until it is committed."""


@dataclass(frozen=True, slots=True)
class Notices:
    """What a manifest says about the sources. `errors` counts notices by code, `skipped` unchanged files."""

    errors: Mapping[str, int] = field(default_factory=dict)
    failures: int = 0
    skipped: int = 0


@dataclass
class Written:
    """The written partitions, and the sources of refused families."""

    partitions: set[str] = field(default_factory=set)
    refused: list[Failure] = field(default_factory=list)


def write_partitions(
    db: sqlite3.Connection,
    bus: BusRoot,
    producer: ManifestProducer,
    created_at: str,
    only: str | None,
    notices: Mapping[str, Notices],
    reloaded: frozenset[str],
) -> Written:
    """Writes the changes that the tables `arrival` and `departure` list.

    Also writes a named partition that does not exist yet, and partitions whose notices have changed. The notices of
    `reloaded` partitions are unknown, so they do not count as changed.
    """
    in_reach = {key for (key,) in db.execute("select key from partition")} if only is None else {only}
    all_notices = {key: notices.get(key, Notices()) for key in in_reach - reloaded} | dict(notices)
    writer = _Writer(db, bus, producer, created_at, all_notices)
    changing = {key for (key,) in db.execute("select partition from arrival union select partition from departure")}
    for key in in_reach - changing:
        before = bus.known_manifest(key)
        if before is None or (key not in reloaded and writer.differs(key, before)):
            changing.add(key)
    drop_links(bus, changing)
    only_losing = {key for (key,) in db.execute(_ONLY_LOSING)}
    for key in sorted(changing - only_losing):
        writer.write(key, is_last=False)
    for (key,) in db.execute(_STILL_LEAVING).fetchall():
        writer.write(key, is_last=True)
    return writer.written


# Partitions whose only change is that families move to other partitions.
_ONLY_LOSING = """
select partition from departure where target is not null
except select partition from departure where target is null
except select partition from arrival
"""
_STILL_LEAVING = """
select distinct partition from departure join family using (partition, family) where target is not null order by 1
"""

# The families of a partition's new version: those that stay, those from a draft, those that move here. A family that
# moves to another partition stays until the last write (`is_last`): by then it has arrived there.
_COLUMNS = "family, name, tenant, document, version, newest, chunks, digest, made_by, origin"
_ENTRIES = f"""
select {_COLUMNS}, null as spool, start, end, partition from family
where partition = :key
  and not exists (select 1 from arrival where arrival.partition = :key and arrival.family = family.family)
  and not exists (
    select 1 from departure where departure.partition = :key and departure.family = family.family
      and (:is_last or departure.target is null)
  )
union all
select draft.family, name, tenant, document, version, newest, chunks, digest, made_by, draft.uri,
  spool, start, end, null
from arrival join draft using (family, uri) where arrival.partition = :key and from_partition is null
union all
select {", ".join(f"family.{column}" for column in _COLUMNS.split(", "))}, null, start, end, family.partition
from arrival join family on family.family = arrival.family and family.partition = from_partition
where arrival.partition = :key
order by name, tenant, 1
"""


@dataclass
class _Writer:
    _db: sqlite3.Connection
    _bus: BusRoot
    _producer: ManifestProducer
    _created_at: str
    _notices: Mapping[str, Notices]
    written: Written = field(default_factory=Written)

    def differs(self, key: str, before: bytes) -> bool:
        manifest, now = decode_manifest(before), self._notices[key]
        return (dict(manifest.errors), manifest.counts.failures) != (dict(now.errors), now.failures)

    def write(self, key: str, *, is_last: bool) -> None:
        """Writes the partition, without arrivals whose chunk ids another family already has."""
        while True:
            try:
                self._commit(key, is_last=is_last)
                break
            except RepeatedChunks as error:
                self._refuse(key, error)
        self._db.execute("delete from arrival where partition = ?", [key])
        self._db.commit()
        self.written.partitions.add(key)

    def _commit(self, key: str, *, is_last: bool) -> None:
        self._db.execute("delete from family where partition = ?", [_NEW])
        with PartitionWriter(self._bus, key) as writer:
            before = self._bus.manifest_bytes(key)
            recorded = self._db.execute("select manifest from partition where key = ?", [key]).fetchone()
            if recorded != (None if before is None else (sha256(before).hexdigest(),)):
                raise PartitionLocked(f"partition {key} was written by another process meanwhile: run again")
            documents = self._add_lines(writer, key, is_last=is_last)
            manifest = decode_manifest(before) if before else None
            writer.commit(
                documents=documents,
                producer=self._producer,
                created_at=self._created_at,
                tombstones=self._tombstones(key, manifest),
                input_sources=self._input_sources(documents),
                **self._versions(),
                **self._counts(key, manifest),
            )
            wait_a_tick()
            self._record_families(key)

    def _add_lines(self, writer: PartitionWriter, key: str, *, is_last: bool) -> int:
        """Adds the families in order, records them in `family`, and returns their number."""
        documents = at = 0
        entries = self._db.execute(_ENTRIES, {"key": key, "is_last": is_last})
        for (spool, partition), rows in groupby(entries, key=lambda row: (row[-4], row[-1])):
            with self._open(spool, partition) as file:
                for *summary, _, start, end, _ in rows:
                    file.seek(start)
                    self._add_family(writer, file.read(end - start), partition)
                    self._db.execute(_ADD_FAMILY, (_NEW, *summary, at, at + end - start))
                    at += end - start
                    documents += 1
        return documents

    def _open(self, spool: bytes | None, partition: str | None) -> BinaryIO:
        """The file with the lines of a family: the spool of a reading, else a partition."""
        if spool is not None:
            return open(os.fsdecode(spool), "rb")  # noqa: PTH123
        assert partition is not None
        return self._bus.open(partition)[0]

    def _add_family(self, writer: PartitionWriter, data: bytes, partition: str | None) -> None:
        """Adds the lines of a family, from this partition or from a spool."""
        try:
            for line in data.rstrip(b"\n").split(b"\n"):
                writer.add_line(line)
        except InvalidChunk as error:
            if partition is None:
                raise
            raise InvalidChunk(
                f"partition {partition} of {self._bus.address} was damaged after its commit ({error}). Restore its "
                "chunks from a copy, or run `chunksink validate`, which names the damage and the remedy"
            ) from error

    def _record_families(self, key: str) -> None:
        """Replaces the partition's rows in `family` by those of the new version."""
        manifest = self._bus.manifest_bytes(key)
        assert manifest is not None
        self._db.execute("delete from family where partition = ?", [key])
        self._db.execute("update family set partition = ? where partition = ?", [key, _NEW])
        row = (key, sha256(manifest).hexdigest(), *self._bus.chunks_signature(key))
        self._db.execute("insert or replace into partition values (?, ?, ?, ?, ?, ?)", row)

    def _tombstones(self, key: str, before: Manifest | None) -> list[Tombstone]:
        """Existing tombstones keep their time; a new one replaces an earlier one for the same family."""
        removed = self._db.execute(
            "select family, reason from departure where partition = ? and reason is not null order by family", [key]
        )
        new = [Tombstone(parent_id=family, reason=reason, at=self._created_at) for family, reason in removed]
        names = {tombstone.parent_id for tombstone in new}
        earlier = [replace(one, at=one.at or before.created_at) for one in before.tombstones] if before else []
        return [*(one for one in earlier if one.parent_id not in names or one.document_id), *new]

    def _input_sources(self, documents: int) -> list[dict[str, Any]]:
        query = f"select name, version from family where partition = ? order by start limit {_LISTED_SOURCES}"
        rows = self._db.execute(query, [_NEW])
        listed: list[dict[str, Any]] = [{"source_uri": name, "source_checksum": version} for name, version in rows]
        if documents > len(listed):
            listed.append({"more": documents - len(listed), "see": "the processed-file ledger"})
        return listed

    def _versions(self) -> dict[str, Any]:
        """The canonicalizers of the chunks, with their versions. The version of one of chunksink's own canonicalizers
        is the id of its chunking policy."""
        query = "select distinct made_by from family where partition = ? order by 1"
        made_by = [one for (one,) in self._db.execute(query, [_NEW])]
        policies = sorted({one.partition(": ")[2] for one in made_by if one.startswith("chunksink-")})
        return {"canonicalization_versions": made_by, "chunking_policy_id": "; ".join(policies) or None}

    def _counts(self, key: str, before: Manifest | None) -> dict[str, Any]:
        now = self._notices.get(key)
        if now is None and before is not None:
            now = Notices(before.errors, before.counts.failures, before.idempotency.skipped)
        now = now or Notices()
        return {"failures": now.failures, "skipped": now.skipped, "errors": dict(sorted(now.errors.items()))}

    def _refuse(self, key: str, error: RepeatedChunks) -> None:
        """Removes arrivals whose chunk ids belong to another family; of two such arrivals it keeps the earlier one.

        Raises the error if there are none.
        """
        refused: set[str] = set()
        for one in error.repeated:
            earlier, later = self._family_at(one.earlier_line), self._family_at(one.line)
            if earlier[0] == later[0] or {earlier[0], later[0]} & refused:
                continue
            kept, (family, _, origin) = (earlier, later) if self._arrives(key, later[0]) else (later, earlier)
            if self._arrives(key, family):
                refused.add(family)
                reason = f"its chunk {one.chunk_id!r} already belongs to {kept[1]}"
                self.written.refused.append(Failure(origin, DUPLICATE_IDS, reason))
                self._db.execute("delete from arrival where partition = ? and family = ?", [key, family])
                self._db.execute("delete from departure where family = ? and target = ?", [family, key])
        if not refused:
            raise error

    def _arrives(self, key: str, family: str) -> bool:
        query = "select 1 from arrival where partition = ? and family = ?"
        return self._db.execute(query, [key, family]).fetchone() is not None

    def _family_at(self, line: int) -> tuple[str, str, str]:
        """Key, name and file of the family that contains this line."""
        query = "select family, name, origin, chunks from family where partition = ? order by start"
        for family, name, origin, chunks in self._db.execute(query, [_NEW]):
            line -= chunks
            if line <= 0:
                return family, name, origin
        raise AssertionError(f"no family has line {line}")


_ADD_FAMILY = f"insert into family (partition, {_COLUMNS}, start, end) values (?, {', '.join('?' * 10)}, ?, ?)"
