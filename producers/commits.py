"""Partitions are written so that a kill between two of them loses nothing.

A family that goes from one partition to another arrives there before it departs: between both commits it stands
twice, and its rank tells which one counts. So partitions with arrivals come first, keeping for now what goes to one
that is still to be written, and then those from which something departs.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from chunkbus.errors import RepeatedChunks
from chunkbus.findings import DUPLICATE_IDS
from chunkbus.layout import BusRoot
from chunkbus.manifest import Manifest, ManifestProducer, Tombstone
from chunkbus.writer import PartitionWriter
from producers.changes import Arrival, Change, Changes
from producers.clashes import Clash, clashes
from producers.errors import IngestRefused
from producers.families import Family
from producers.links import links_file, write_links
from producers.memory import Memory
from producers.partition import Existing, FamilyReader, written_meanwhile
from producers.placement import is_ours
from producers.shelves import Shelves, wait_a_tick
from producers.sources import Failure, Signature

_LISTED_SOURCES = 1000


class Commits:
    """Writes the partitions of one run that must change, and keeps the shelves true to them."""

    def __init__(
        self,
        root: BusRoot,
        shelves: Shelves,
        memory: Memory,
        reader: FamilyReader,
        producer: ManifestProducer,
        created_at: str,
        clock: Callable[[], int],
        on_left_out: Callable[[Failure], object],
    ) -> None:
        self._root, self._shelves, self._memory, self._reader = root, shelves, memory, reader
        self._producer, self._created_at, self._clock = producer, created_at, clock
        self._on_left_out = on_left_out
        self.written: list[str] = []
        self.links = 0

    def write(self, changes: Changes) -> None:
        todo = {key: change for key, change in sorted(changes.by_partition.items()) if self._must_write(key, change)}
        for key in todo:
            self._refuse_others(key)
        for key, change in todo.items():
            if change.arrivals or not change.departures:
                self._write_possible(key, changes, todo)
        for key, change in todo.items():
            departs = change.departures.keys() - change.arrivals.keys()
            if departs & self._shelves.get(key).families.keys():
                self._write(key, change, {}, departs)

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

    def _write_possible(self, key: str, changes: Changes, todo: Collection[str]) -> None:
        """Without those arrivals that share the id of a chunk with a family that is there."""
        change = changes.by_partition[key]
        while self._must_write(key, change):
            late = {family for family, to in change.departures.items() if to in todo and to not in self.written}
            found = self._write(key, change, change.arrivals, change.departures.keys() - late)
            if not found:
                return
            for clash in found:
                arrival = changes.refuse(key, clash.family, DUPLICATE_IDS)
                self._on_left_out(Failure(arrival.origin or key, DUPLICATE_IDS, clash.reason))

    def _must_write(self, key: str, change: Change) -> bool:
        before = self._shelves.get(key).manifest
        if before is None or change.arrivals or change.departures:
            return True
        told = change.told
        return told is not None and (before.errors != told.errors or before.counts.failures != told.failures)

    def _write(self, key: str, change: Change, arrivals: Mapping[str, Arrival], gone: Collection[str]) -> list[Clash]:
        """Nothing is written where arrivals clash with others: then it tells which."""
        before = self._shelves.get(key)
        families: list[Family] = []
        with PartitionWriter(self._root, key) as writer:
            if _manifest(self._root, key) != before.manifest_bytes:
                raise written_meanwhile(key)
            end = 0
            for family, lines in self._entries(before, arrivals, gone):
                start = end
                for line in lines:
                    writer.add_line(line)
                    end += len(line) + 1
                family.stretches = [(start, end)]
                families.append(family)
            links_file(self._root, key).unlink(missing_ok=True)  # so that a kill leaves none, not an old one
            told = _told(change, before.manifest)
            try:
                writer.commit(
                    documents=len(families),
                    producer=self._producer,
                    created_at=self._created_at,
                    tombstones=_tombstones(before.manifest, change),
                    input_sources=_sources(families),
                    **_versions(families),
                    **told,
                )
            except RepeatedChunks as repeated:
                if found := clashes(families, repeated.twins, arrivals):
                    return found
                raise
            manifest = _manifest(self._root, key)
            assert manifest is not None
            wait_a_tick()
            signature = Signature.of(os.stat(self._root.chunks_file(key)))  # noqa: PTH116
            self._memory.note_families(key, manifest, signature, self._clock(), families)
        self._shelves.existing[key] = Existing(key, {family.key: family for family in families}, manifest)
        if key not in self.written:
            self.written.append(key)
        self.links += write_links(self._root, key)
        return []

    def _entries(
        self, before: Existing, arrivals: Mapping[str, Arrival], gone: Collection[str]
    ) -> Iterator[tuple[Family, Iterator[bytes]]]:
        """Every family of the new version in its order, with its lines."""
        kept = [family for key, family in before.families.items() if key not in gone and key not in arrivals]
        stay = {family.key: (family, before) for family in kept}
        arrive = {key: self._arriving(key, arrival) for key, arrival in arrivals.items()}
        for family, source in sorted((stay | arrive).values(), key=lambda entry: entry[0].order):
            if isinstance(source, Existing):  # which stays as it is: a clash has all written again
                yield _copy(family), self._reader.lines(source, family)
            else:
                assert source.waiting is not None
                yield family, iter(source.waiting.lines())

    def _arriving(self, key: str, arrival: Arrival) -> tuple[Family, Existing | Arrival]:
        if arrival.moved_from is not None:
            existing = self._shelves.existing[arrival.moved_from]
            return existing.families[key], existing
        waiting = arrival.waiting
        assert waiting is not None
        about = (waiting.key, waiting.name, waiting.tenant, waiting.version)
        return Family(*about, arrival.origin, waiting.newest, waiting.chunks), arrival


def _copy(family: Family) -> Family:
    about = (family.key, family.name, family.tenant, family.version)
    return Family(*about, family.origin, family.newest, family.chunks)


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
    """The earlier ones stay; of two for one family the later one says all."""
    new = {tombstone.parent_id for tombstone in change.tombstones}
    earlier = before.tombstones if before is not None else []
    kept = [tombstone for tombstone in earlier if tombstone.parent_id not in new or tombstone.document_id]
    return [*kept, *sorted(change.tombstones, key=lambda tombstone: tombstone.parent_id or "")]


def _sources(families: list[Family]) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = [
        {"source_uri": family.name, "source_checksum": f"sha256:{family.version[0]}" if family.version[0] else None}
        for family in families[:_LISTED_SOURCES]
    ]
    if len(families) > len(listed):
        listed.append({"more": len(families) - len(listed), "see": "the processed-file ledger"})
    return listed


def _versions(families: list[Family]) -> dict[str, Any]:
    """How the chunks were made: each canonicaliser, and the policies of our own."""
    used = sorted({(family.version[3] or "unknown", family.version[4] or "unknown") for family in families})
    policies = sorted({version for name, version in used if name.startswith("chunksink-")})
    return {
        "canonicalization_versions": [": ".join(pair) for pair in used],
        "chunking_policy_id": "; ".join(policies) or None,
    }
