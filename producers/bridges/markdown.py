"""Chunks of the Markdown chunking specification (001, section 8), whoever made them."""

import msgspec

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import resolve_parent_id
from chunksink.producers.bridges.foreign import CHECKSUMS, NAMES, Context, Count, Name, foreign_draft
from chunksink.producers.records.drafts import Draft
from chunksink.producers.records.keeping import checksum_of, first_string, read_as, tenant_of


class MarkdownChunk(msgspec.Struct, gc=False, kw_only=True):
    """The metadata that the specification requires, and what identity can use."""

    chunk_id: Name
    document_id: Name
    ordinal: Count
    chunk_text: str
    source_version_id: str | int | None = None
    chunk_path: str | list[str] | None = None
    headings_path: list[str] | None = None
    token_count: Count | None = None


def bridge_markdown(record: Record, data: bytes, context: Context) -> Draft:
    """Its id holds tenant, document and version already. A document without the name of a source is its own."""
    chunk: MarkdownChunk = read_as(MarkdownChunk, record)
    own_tenant = tenant_of(record)
    name = first_string(record, *NAMES)
    version = chunk.source_version_id
    return foreign_draft(
        record,
        context,
        placed={"chunk_id", "document_id", "ordinal", "chunk_text"},
        text=chunk.chunk_text,
        source=("source_uri", name) if name else ("source_ref", chunk.document_id),
        parent=resolve_parent_id(None, name, chunk.document_id),
        own_tenant=own_tenant,
        document_id=chunk.document_id,
        given_id=chunk.chunk_id,
        id_knows=own_tenant,
        index=chunk.ordinal,
        version=(chunk.document_id, version),
        order=(chunk.ordinal,),
        checksum=checksum_of(version if isinstance(version, str) else None, first_string(record, *CHECKSUMS)),
    )
