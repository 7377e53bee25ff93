"""Groups the lines of a chunks file into stretches: neighbouring lines of one version of one family.

Families and versions are hash numbers, equal in every process. The cost grows with families, not with chunks.
"""

import json

import mmh3
import msgspec

from chunksink.chunkbus.chunk import Chunk, Provenance
from chunksink.chunkbus.identity import resolve_parent_id
from chunksink.chunkbus.record_checks import MAX_LINE_BYTES

STRETCH = ("first", "lines", "expected", "version", "checksum", "refused", "family", "document", "source")
"""The columns of one stretch: its first line, its number of lines, the highest `chunk_count`, and hash numbers.

`version` identifies one version of one family. `checksum` is 0 without a source checksum. `source` ignores the tenant.
"""
_LINES, _EXPECTED = STRETCH.index("lines"), STRETCH.index("expected")
_MOST = 2**63 - 1


class StretchCounter:
    """Takes the lines of a block in order; `rows` then contains one row for each stretch.

    `unknown` counts the refused lines whose family cannot be determined.
    """

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.unknown = 0
        self._key: tuple[object, ...] = ()

    def add(self, chunk: Chunk, line: int) -> None:
        own: object = chunk.parent_id
        tenant: object = chunk.tenant_id
        expected = chunk.chunk_count
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
            family = _family(own, tenant, chunk.document_id, provenance)
            document, source = number_of(chunk.document_id), number_of(family[1])
            numbers = (*_version(family, provenance), False, number_of(repr(family)), document, source)
            self.rows.append([line, 0, 0, *numbers])
        row = self.rows[-1]
        row[_LINES] += 1
        if expected is not None and expected > row[_EXPECTED]:
            row[_EXPECTED] = min(expected, _MOST)

    def refuse(self, data: bytes, line: int) -> None:
        """Records a refused line as a separate stretch, so that its family is not also reported as incomplete."""
        self._key = ()
        version = _version_of_refused(data)
        if version is None:
            self.unknown += 1
        else:
            self.rows.append([line, 1, 0, *version, True, 0, 0, 0])


def number_of(name: str) -> int:
    """A 64-bit hash of the name, never 0."""
    return mmh3.hash64(name)[0] or 1


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value is not True else None


def _version_of_refused(data: bytes) -> tuple[int, int] | None:
    """Reads the line as leniently as possible; None if its family cannot be determined."""
    if len(data) > MAX_LINE_BYTES:  # it was truncated
        return None
    try:
        record = json.loads(data.decode(errors="replace").removeprefix("\ufeff"), strict=False)
        provenance = msgspec.convert({"inputs": [], **record["provenance"]}, Provenance)
        metadata = record.get("metadata") or {}
        own = record.get("parent_id") or metadata.get("parent_id")
        tenant = record.get("tenant_id") or metadata.get("tenant_id")
        has_name = isinstance(own, str) or provenance.source()
        if not has_name or not all(provenance.parser_pair()) or not all(provenance.canonicalizer_pair()):
            return None
        return _version(_family(own, tenant, record.get("document_id"), provenance), provenance)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _family(own: object, tenant: object, document_id: str, provenance: Provenance) -> tuple[str | None, str]:
    own_text = own if isinstance(own, str) else None
    tenant_text = tenant if isinstance(tenant, str) and tenant else None
    return tenant_text, resolve_parent_id(own_text, provenance.source(), document_id)


def _version(family: tuple[str | None, str], provenance: Provenance) -> tuple[int, int]:
    """The hash numbers of the version and of its source checksum."""
    checksum = provenance.checksum()
    return number_of(repr((*family, provenance.version()))), number_of(checksum) if checksum else 0
