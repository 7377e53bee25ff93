"""Groups the lines of a chunks file into stretches: neighbouring lines of one version of one family.

Families and versions are identified by 64-bit hashes that are the same in every process. They are computed once for
each stretch, not for each chunk.
"""

import mmh3

from chunksink.chunkbus.chunk import Chunk
from chunksink.chunkbus.identity import resolve_parent_id

STRETCH_COLUMNS = ("first", "lines", "expected", "version", "checksum", "family", "document", "source")
"""`first` is the first line, `lines` the number of lines, `expected` the highest `chunk_count`. The rest are hashes.

`version` identifies one version of one family. `checksum` is 0 without a source checksum. `family` is the hash number
of the tenant and the `parent_id`, `source` that of the `parent_id` alone.
"""
_LINES, _EXPECTED = STRETCH_COLUMNS.index("lines"), STRETCH_COLUMNS.index("expected")
_MAX_INTEGER = 2**63 - 1


class StretchCounter:
    """Takes the lines of a block in order; `rows` then contains one row for each stretch."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self._key: tuple[object, ...] = ()

    def add(self, chunk: Chunk, line: int) -> None:
        """Adds a valid chunk to the current stretch, or starts a new one."""
        own, tenant, expected = chunk.parent_id, chunk.tenant_id, chunk.chunk_count
        metadata = chunk.metadata
        if metadata is not None:
            own = own or metadata.get("parent_id")
            tenant = tenant or metadata.get("tenant_id")
            expected = _count(metadata.get("chunk_count")) if expected is None else expected
        provenance = chunk.provenance
        # Only the fields that determine family and version: cheaper than comparing whole provenances.
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
            source = resolve_parent_id(own, provenance.source(), chunk.document_id)
            family, checksum = (tenant or None, source), provenance.checksum()
            numbers = (
                hash_number(repr((*family, provenance.version()))),
                hash_number(checksum) if checksum else 0,
                hash_number(repr(family)),
                hash_number(chunk.document_id),
                hash_number(source),
            )
            self.rows.append([line, 0, 0, *numbers])
        row = self.rows[-1]
        row[_LINES] += 1
        if expected is not None and expected > row[_EXPECTED]:
            row[_EXPECTED] = min(expected, _MAX_INTEGER)

    def skip(self) -> None:
        """Ends the current stretch, because a refused line belongs to none."""
        self._key = ()


def hash_number(name: str) -> int:
    """A 64-bit hash of the name, never 0."""
    return mmh3.hash64(name)[0] or 1


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value is not True else None
