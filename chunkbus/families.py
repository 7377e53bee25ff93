"""Families that stand in parts: found over all partitions of a run, with flat memory.

A split family must be kept out, because syncing one part of it would remove the other part's chunks.
Neighbouring chunks of one family make one row, so what a run costs follows its families, not its chunks.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import mmh3
import msgspec
import numpy as np

from chunksink.chunkbus.chunk import Chunk, Provenance
from chunksink.chunkbus.examine import MAX_LINE_BYTES
from chunksink.chunkbus.identity import resolve_parent_id
from chunksink.chunkbus.spill import Rows, SpilledRows

_GROUP, _LINE, _OFFSET, _CHUNKS, _EXPECTED, _PARTITION = range(6)
_MOST = 2**63 - 1


@dataclass(frozen=True)
class Stretch:
    """Neighbouring lines of one partition that hold chunks of one version of one family."""

    version: int
    line: int
    offset: int
    chunks: int
    expected: int
    partition: int


class StretchCounter:
    """Shown the lines of a block in order; `rows` then holds one row a stretch, without its partition.

    `named` holds two hashes a stretch of chunks, of its document and of its source, whosever that is; `versions` those
    of its family and of its source checksum, and its row. `unknown` counts the refused lines that do not say whose they
    are.
    """

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.named: list[tuple[int, int]] = []
        self.versions: list[tuple[int, int, list[int]]] = []
        self.unknown = 0
        self._row: list[int] = []
        self._key: tuple[object, ...] = ()

    def add(self, chunk: Chunk, line: int, offset: int) -> None:
        own: object = chunk.parent_id
        tenant: object = chunk.tenant_id
        expected = chunk.chunk_count
        metadata = chunk.metadata
        if metadata is not None:
            own = own or metadata.get("parent_id")
            tenant = tenant or metadata.get("tenant_id")
            expected = _count(metadata.get("chunk_count")) if expected is None else expected
        provenance = chunk.provenance
        # Cheaper than comparing whole provenances: what neither the family nor its version needs is left out.
        key = (
            chunk.document_id,
            own,
            tenant,
            provenance.source_uri or provenance.source_ref,
            provenance.source_checksum,
            provenance.parser or (provenance.parser_name, provenance.parser_version),
            provenance.canonicalizer or (provenance.canonicalizer_name, provenance.canonicalizer_version),
        )
        if key != self._key:
            self._key = key
            source = _source(own, tenant, chunk.document_id, provenance)
            self._row = [_number(source, provenance), line, offset, 0, 0]
            self.rows.append(self._row)
            self.named.append((mmh3.hash64(chunk.document_id)[0], mmh3.hash64(source[1])[0]))
            self.versions.append((mmh3.hash64(repr(source))[0], mmh3.hash64(repr(provenance.checksum()))[0], self._row))
        self._row[_CHUNKS] += 1  # lines too: they follow each other, see `refuse`
        if expected is not None and expected > self._row[_EXPECTED]:
            self._row[_EXPECTED] = min(expected, _MOST)

    def refuse(self, data: bytes, line: int, offset: int) -> None:
        """A line that the contract refuses ends the stretch, so that its chunks can be found again by counting lines.

        It is a stretch of its own: its family does not lack it, whatever else is wrong.
        """
        self._key = ()
        number = _number_of_refused(data)
        if number is None:
            self.unknown += 1
        else:
            self.rows.append([number, line, offset, 1, 0])


def number_version(chunk: Chunk) -> int:
    """One number for one version of one family, the same in every process; even without a source checksum."""
    counter = StretchCounter()
    counter.add(chunk, 0, 0)
    return counter.rows[0][_GROUP]


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value is not True else None


def _number_of_refused(data: bytes) -> int | None:
    """The same for a line that the contract refuses, read as leniently as can be; None where it does not say."""
    if len(data) > MAX_LINE_BYTES:  # it was cut
        return None
    try:
        record = json.loads(data.decode(errors="replace").removeprefix("\ufeff"), strict=False)
        provenance = msgspec.convert({"inputs": [], **record["provenance"]}, Provenance)
        metadata = record.get("metadata") or {}
        own = record.get("parent_id") or metadata.get("parent_id")
        tenant = record.get("tenant_id") or metadata.get("tenant_id")
        document_id = record.get("document_id")
        says_source = isinstance(own, str) or provenance.source()
        if not says_source or not all(provenance.parser_pair()) or not all(provenance.canonicalizer_pair()):
            return None
        return _number(_source(own, tenant, document_id, provenance), provenance)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _source(own: object, tenant: object, document_id: str, provenance: Provenance) -> tuple[str | None, str]:
    """Whose family it is, the same in every process."""
    own_text = own if isinstance(own, str) else None
    tenant_text = tenant if isinstance(tenant, str) and tenant else None
    return tenant_text, resolve_parent_id(own_text, provenance.source(), document_id)


def _number(source: tuple[str | None, str], provenance: Provenance) -> int:
    number = mmh3.hash64(repr((*source, provenance.version())))[0]
    return number | 1 if provenance.source_checksum else number & ~1


class FamilyRows:
    """The stretches of all partitions; `suspects` then tells which versions of families may be in parts."""

    def __init__(self) -> None:
        self._rows = SpilledRows(columns=6)
        self.unknown: Counter[int] = Counter()
        """Refused lines that do not say whose they are, of those partitions that have any."""

    def close(self) -> None:
        self._rows.close()

    def add(self, rows: Rows, partition: int, first_line: int, unknown: int = 0) -> None:
        """The stretches of one block, whose lines count from 0, of a partition where it begins at `first_line`."""
        rows[:, _LINE] += first_line
        if unknown:
            self.unknown[partition] += unknown
        self._rows.add(np.column_stack((rows, np.full(len(rows), partition))))

    def suspects(self) -> Iterator[list[Stretch]]:
        """All stretches of each version that stands in several partitions or is shorter than its chunk_count.

        Without a source checksum, partitions are looked at one by one: each may hold another version.
        """
        for rows in self._rows.sorted_buckets():
            begins = np.diff(rows[:, _GROUP], prepend=~rows[:1, _GROUP]) != 0
            begins |= (np.diff(rows[:, _PARTITION], prepend=-1) != 0) & (rows[:, _GROUP] & 1 == 0)
            starts = np.flatnonzero(begins)
            ends = np.append(starts[1:], len(rows))
            first = np.minimum.reduceat(rows[:, _PARTITION], starts)
            last = np.maximum.reduceat(rows[:, _PARTITION], starts)
            chunks = np.add.reduceat(rows[:, _CHUNKS], starts)
            expected = np.maximum.reduceat(rows[:, _EXPECTED], starts)
            for index in np.flatnonzero((first != last) | (chunks < expected)):
                yield [Stretch(*row) for row in rows[starts[index] : ends[index]].tolist()]
