"""Chunks of the structural chunk stage (003), as JSONL or one JSON file a chunk."""

from typing import Any

import msgspec

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import derive_document_id, resolve_parent_id
from chunksink.producers.bridges.foreign import CHECKSUMS, Context, Count, Name, foreign_draft
from chunksink.producers.records.drafts import Draft
from chunksink.producers.records.keeping import checksum_of, first_string, read_as, tenant_of


class ChunkSource(msgspec.Struct, gc=False, kw_only=True):
    """The document that a chunk comes from."""

    path: Name
    folder: str | None = None
    type: str | None = None


class StructuralChunk(msgspec.Struct, gc=False, kw_only=True):
    """The chunk model; vectors aside."""

    id: Name
    text: str
    source: ChunkSource
    doc_id: Name
    index: Count
    neighbors: list[str] | None = None
    metadata: dict[str, Any] | None = None
    relations: list[Any] | None = None


def bridge_structural(record: Record, data: bytes, context: Context) -> Draft:
    """Its ids are numbers that shift when files are added: they are kept, and the source's path is who it is."""
    chunk: StructuralChunk = read_as(StructuralChunk, record)
    own_tenant = tenant_of(record)
    path = chunk.source.path
    checksum = checksum_of(first_string(record, *CHECKSUMS))
    return foreign_draft(
        record,
        context,
        placed={"text", "index"},
        text=chunk.text,
        source=("source_uri", path),
        parent=resolve_parent_id(None, path, chunk.doc_id),
        own_tenant=own_tenant,
        document_id=derive_document_id(path, checksum, tenant=own_tenant or context.making.tenant),
        given_id=None,
        id_knows=None,
        index=chunk.index,
        version=(checksum,),
        order=(chunk.index,),
        checksum=checksum,
    )
