"""Partitions are written so that a kill between two of them loses nothing.

A family that goes from one partition to another arrives there before it departs: between both commits it stands
twice, and its rank tells which one counts. So partitions with arrivals come first, keeping for now what goes to one
that is still to be written, and then those from which something departs.
"""

import os
from collections.abc import Callable, Collection, Iterable, Set
from functools import partial
from sqlite3 import Connection
from typing import Any

from msgspec.structs import replace

from chunksink.chunkbus.errors import RepeatedChunks
from chunksink.chunkbus.findings import DUPLICATE_IDS
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import Manifest, ManifestProducer, Tombstone
from chunksink.chunkbus.signature import Signature, wait_a_tick
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.producers.changed import Changed
from chunksink.producers.changes import Change, Changes, Entry
from chunksink.producers.clashes import Clash, clashes
from chunksink.producers.errors import IngestRefused
from chunksink.producers.links import drop_links, drop_untrue
from chunksink.producers.memory import Memory
from chunksink.producers.partition import FamilyReader, dated, written_meanwhile
from chunksink.producers.placement import is_ours
from chunksink.producers.shelves import Shelves
from chunksink.producers.sources import Failure
from chunksink.producers.standing import Draft


class Commits:
    """Writes the partitions of one run that must change, and keeps the shelves true to them."""

    def __init__(
        self,
        root: BusRoot,
        shelves: Shelves,
        memory: Memory,
        tables: Connection,
        reader: FamilyReader,
        producer: ManifestProducer,
        created_at: str,
        clock: Callable[[], int],
        on_left_out: Callable[[Failure], object],
    ) -> None:
        self._root, self._shelves, self._memory, self._tables, self._reader = root, shelves, memory, tables, reader
        self._producer, self._created_at, self._clock = producer, created_at, clock
        self._on_left_out = on_left_out
        self.written: list[str] = []

    def write(self, changes: Changes) -> None:
        todo = {key: change for key, change in sorted(changes.by_partition.items()) if self._must_write(key, changes)}
        for key in todo:
            self._refuse_others(key)
        drop_links(self._root, todo)  # also of those that may stay as they are after all: what they link to changes
        if linking := (self._shelves.existing.keys() | self._shelves.others) - todo.keys():
            drop_untrue(self._root, linking, Changed(self._tables))
        for key in todo:
            if changes.has_arrivals(key) or not changes.has_departures(key):
                self._write_possible(key, changes, todo.keys())
        for key in todo:
            if changes.still_departs(key):
                self._write(key, changes, late=())

    def _refuse_others(self, key: str) -> None:
        """A rule can lead to a partition that somebody else writes, or is just writing."""
        if key in self._shelves.existing or is_ours(self._root, key):
            return
        if self._root.manifest_file(key).exists() or self._root.chunks_file(key).exists():
            raise IngestRefused(
                f"sources of this run belong into partition {key} of {self._root.path}, whose manifest does not say "
                "that `chunksink ingest` writes it; nothing was written. Name a partition with --partition, take "
                f"another rule, or move partition {key} away"
            )

    def _write_possible(self, key: str, changes: Changes, todo: Set[str]) -> None:
        """Without those arrivals that share the id of a chunk with a family that is there."""
        while self._must_write(key, changes):
            found = self._write(key, changes, late=todo - set(self.written))
            if not found:
                changes.arrived(key)
                return
            for clash in found:
                origin = changes.refuse(key, clash.family, DUPLICATE_IDS)
                self._on_left_out(Failure(origin or key, DUPLICATE_IDS, clash.reason))

    def _must_write(self, key: str, changes: Changes) -> bool:
        before = self._shelves.get(key).manifest
        if before is None or changes.has_arrivals(key) or changes.has_departures(key):
            return True
        told = changes.of(key).told
        return told is not None and (before.errors != told.errors or before.counts.failures != told.failures)

    def _write(self, key: str, changes: Changes, late: Collection[str]) -> list[Clash]:
        """Nothing is written where arrivals clash with others: then it tells which."""
        before, change = self._shelves.get(key), changes.of(key)
        draft = Draft(self._tables)
        with PartitionWriter(self._root, key) as writer:
            if _manifest(self._root, key) != before.manifest_bytes:
                raise written_meanwhile(key)
            for entry in changes.entries(key, late):
                size = 0
                for line in self._lines(entry):
                    writer.add_line(line)
                    size += len(line) + 1
                draft.add(entry.family, size)
            drop_links(self._root, [key])
            told = _told(change, before.manifest)
            try:
                writer.commit(
                    documents=draft.families,
                    producer=self._producer,
                    created_at=self._created_at,
                    tombstones=_tombstones(before.manifest, change),
                    input_sources=_sources(draft),
                    **_versions(draft),
                    **told,
                )
            except RepeatedChunks as repeated:
                if found := clashes(repeated.twins, draft.at, partial(changes.arrives, key)):
                    return found
                raise
            manifest = _manifest(self._root, key)
            assert manifest is not None
            wait_a_tick()
            signature = Signature.of(os.stat(self._root.chunks_file(key)))  # noqa: PTH116
            self._memory.note_families(key, manifest, signature, self._clock(), draft.rows())
        self._shelves.rewrite(key, manifest)
        if key not in self.written:
            self.written.append(key)
        return []

    def _lines(self, entry: Entry) -> Iterable[bytes]:
        if entry.lines is not None:
            return entry.lines.read()
        assert entry.stands_in is not None
        existing = self._shelves.existing[entry.stands_in]
        lines = self._reader.lines(existing, entry.family)
        if entry.family.newest is not None or existing.manifest is None:
            return lines
        entry.family.newest = existing.manifest.created_at
        return map(partial(dated, created_at=entry.family.newest), lines)


def _manifest(root: BusRoot, key: str) -> bytes | None:
    file = root.manifest_file(key)
    return file.read_bytes() if file.exists() else None


def _told(change: Change, before: Manifest | None) -> dict[str, Any]:
    if change.told is not None:
        told = change.told
        errors = dict(sorted(told.errors.items()))
        return {"failures": told.failures, "skipped": told.unchanged, "errors": errors}
    if before is None:
        return {}
    return {"failures": before.counts.failures, "skipped": before.idempotency.skipped, "errors": before.errors}


def _tombstones(before: Manifest | None, change: Change) -> list[Tombstone]:
    """The earlier ones stay, and as old as they were; of two for one family the later one says all."""
    new = {tombstone.parent_id for tombstone in change.tombstones}
    earlier = [replace(one, at=one.at or before.created_at) for one in before.tombstones] if before is not None else []
    kept = [tombstone for tombstone in earlier if tombstone.parent_id not in new or tombstone.document_id]
    return [*kept, *sorted(change.tombstones, key=lambda tombstone: tombstone.parent_id or "")]


def _sources(draft: Draft) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = [
        {"source_uri": family.name, "source_checksum": f"sha256:{family.version[0]}" if family.version[0] else None}
        for family in draft.first
    ]
    if draft.families > len(listed):
        listed.append({"more": draft.families - len(listed), "see": "the processed-file ledger"})
    return listed


def _versions(draft: Draft) -> dict[str, Any]:
    """How the chunks were made: each canonicaliser, and the policies of our own."""
    used = sorted({(name or "unknown", version or "unknown") for name, version in draft.canonicalizers})
    policies = sorted({version for name, version in used if name.startswith("chunksink-")})
    return {
        "canonicalization_versions": [": ".join(pair) for pair in used],
        "chunking_policy_id": "; ".join(policies) or None,
    }
