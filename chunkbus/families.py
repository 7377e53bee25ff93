"""Families that stand in parts: found over all partitions of a run, with flat memory.

A split family must be kept out, because syncing one part of it would remove the other part's chunks.
Neighbouring chunks of one family make one row, so what a run costs follows its families, not its chunks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import mmh3
import numpy as np

from chunkbus.chunk import Chunk, Provenance
from chunkbus.identity import resolve_parent_id
from chunkbus.spill import Rows, SpilledRows

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
    """Shown the chunks of a block in order; `rows` then holds one row a stretch, without its partition."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
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
            self._row = [_number(own, tenant, chunk.document_id, provenance), line, offset, 0, 0]
            self.rows.append(self._row)
        self._row[_CHUNKS] += 1  # lines too: they follow each other, see `interrupt`
        if expected is not None and expected > self._row[_EXPECTED]:
            self._row[_EXPECTED] = min(expected, _MOST)

    def interrupt(self) -> None:
        """A line without a chunk ends the stretch, so that its chunks can be found again by counting lines."""
        self._key = ()


def number_version(chunk: Chunk) -> int:
    """One number for one version of one family, the same in every process; even without a source checksum."""
    counter = StretchCounter()
    counter.add(chunk, 0, 0)
    return counter.rows[0][_GROUP]


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value is not True else None


def _number(own: object, tenant: object, document_id: str, provenance: Provenance) -> int:
    own_text = own if isinstance(own, str) else None
    tenant_text = tenant if isinstance(tenant, str) and tenant else None
    parent = resolve_parent_id(own_text, provenance.source(), document_id)
    number = mmh3.hash64(repr((tenant_text, parent, provenance.version())))[0]
    return number | 1 if provenance.source_checksum else number & ~1


class FamilyRows:
    """The stretches of all partitions; `suspects` then tells which versions of families may be in parts."""

    def __init__(self) -> None:
        self._rows = SpilledRows(columns=6)

    def close(self) -> None:
        self._rows.close()

    def add(self, rows: Rows, partition: int, first_line: int) -> None:
        """The stretches of one block, whose lines count from 0, of a partition where it begins at `first_line`."""
        rows[:, _LINE] += first_line
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
