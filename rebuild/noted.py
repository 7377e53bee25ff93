"""What the catalog notes of each chunk, from its line. Its partition was found valid: nothing is judged here."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from chunksink.chunkbus.canonical import json_hash, text_hash
from chunksink.chunkbus.chunk import Provenance
from chunksink.chunkbus.diagnose import parse_time
from chunksink.chunkbus.identity import family_key, resolve_parent_id
from chunksink.chunkbus.reader import Place
from chunksink.rebuild.content import hash_of_line

Row = tuple[Any, ...]
COLUMNS = (
    "partition, offset, length, family, parent_id, document_id, chunk_id, text_hash, source_checksum, version, "
    "created_at, line"
)


class _Names(msgspec.Struct, gc=False):
    """Of a chunk or of its metadata: whose it is."""

    parent_id: str | None = None
    tenant_id: str | None = None


class _Noted(_Names, gc=False, kw_only=True):
    """Of a chunk that much is read, since millions are."""

    chunk_id: str
    document_id: str
    text: str
    provenance: Provenance
    metadata: _Names | None = None
    created_at: str | None = None


_NOTHING = _Names()


def rows_of(key: str, lines: Iterable[tuple[Place, bytes]]) -> Iterator[Row]:
    """Of each of these lines of a partition the values of `COLUMNS`."""
    decode = msgspec.json.Decoder(_Noted).decode
    for place, line in lines:
        yield _row(key, place, line, decode(line))


def _row(key: str, place: Place, line: bytes, chunk: _Noted) -> Row:
    provenance, named = chunk.provenance, chunk.metadata or _NOTHING
    parent = resolve_parent_id(chunk.parent_id or named.parent_id, provenance.source(), chunk.document_id)
    return (
        key,
        place.offset,
        place.length,
        family_key(parent, chunk.tenant_id or named.tenant_id or None),
        parent,
        chunk.document_id,
        chunk.chunk_id,
        text_hash(chunk.text),
        provenance.checksum(),
        _version(provenance.version()),
        instant(chunk.created_at) if chunk.created_at else None,
        hash_of_line(line),
    )


@lru_cache(maxsize=256)  # neighbours mostly share it
def _version(version: tuple[str | None, ...]) -> str:
    return json_hash(version)[:16]


@lru_cache(maxsize=256)  # as above
def instant(stamp: str) -> str:
    """One spelling for one moment, so that text order is order in time."""
    return parse_time(stamp).replace(tzinfo=None).isoformat(timespec="microseconds")  # strftime pads no year
