"""Chunks of the recorder's chunking policy (004): its required metadata, with the text beside it."""

from typing import Any

import msgspec

from chunksink.chunkbus.canonical import json_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import derive_document_id, resolve_parent_id
from chunksink.producers.bridges.foreign import CHECKSUMS, NAMES, Context, Count, Name, foreign_draft
from chunksink.producers.records.drafts import Draft
from chunksink.producers.records.keeping import checksum_of, first_string, read_as, tenant_of


class LogPlace(msgspec.Struct, gc=False, kw_only=True):
    """A place in the append log."""

    segment_id: int | str
    ordinal: Count
    byte_offset: Count


class RecorderChunk(msgspec.Struct, gc=False, kw_only=True):
    """The metadata that the policy requires, and the text that it is about."""

    chunk_id: Name
    policy_version: Name
    pane_id: int | str
    start_offset: LogPlace
    end_offset: LogPlace
    text: str
    session_id: int | str | None = None
    direction: str | None = None
    event_ids: list[Any] | None = None
    event_count: Count | None = None
    occurred_at_start_ms: int | None = None
    occurred_at_end_ms: int | None = None
    text_chars: Count | None = None
    content_hash: str | None = None


def bridge_recorder(record: Record, data: bytes, context: Context) -> Draft:
    """A pane of a session is the source, unless the record names one; the log's order is the order."""
    chunk: RecorderChunk = read_as(RecorderChunk, record)
    own_tenant = tenant_of(record)
    tenant = own_tenant or context.making.tenant
    name = first_string(record, *NAMES)
    pane = f"recorder/{'-' if chunk.session_id is None else chunk.session_id}/{chunk.pane_id}"
    parent = resolve_parent_id(None, name, pane) if name else json_hash([chunk.session_id, chunk.pane_id])
    start, end = chunk.start_offset, chunk.end_offset
    return foreign_draft(
        record,
        context,
        placed={"chunk_id", "text"},
        text=chunk.text,
        source=("source_uri", name) if name else ("source_ref", pane),
        parent=parent,
        own_tenant=own_tenant,
        document_id=derive_document_id(name, None, tenant=tenant) if name else json_hash([parent, tenant]),
        given_id=chunk.chunk_id,
        id_knows=None,
        index=None,
        version=(chunk.policy_version,),
        order=(str(start.segment_id).zfill(20), start.ordinal, start.byte_offset, end.ordinal, chunk.chunk_id),
        checksum=checksum_of(first_string(record, *CHECKSUMS)),
    )
