"""Drafts from canonical chunks, and from chunks of the specifications 001 Markdown, 003 structural, 004 recorder."""

from typing import Any

import msgspec
import orjson

from chunksink.chunkbus.canonical import canonical_text, chunk_object_hash, json_hash
from chunksink.chunkbus.chunk import Count, Name, Provenance, Record
from chunksink.chunkbus.identity import derive_document_id, parent_id, resolve_parent_id, source_name
from chunksink.ingest import record_fields
from chunksink.ingest.codes import SOURCE_EMPTY
from chunksink.ingest.family_groups import Draft
from chunksink.ingest.json_records import NumberedRecord
from chunksink.ingest.model import Notice, Source
from chunksink.ingest.record_fields import add_original, first_string, read_as, tenant_of

NAMES = (
    *("provenance.source_uri", "provenance.source_ref", "source.source_uri", "source.source_ref", "source.path"),
    *("source_uri", "source_ref", "source"),
)
_CHECKSUMS = ("provenance.source_checksum", "source.source_checksum", "source_checksum", "source.checksum")

PARSER = ("chunk-records", "1")
CANONICALIZER = ("chunksink-bridge", "6")
"""Increase the version with any change of the field mapping."""


def canonical_draft(numbered: NumberedRecord, source: Source) -> Draft:
    """The chunk, with a missing tenant or time set to that of the run. An added tenant also changes `chunk_id`.

    Without a time of its own, a chunk would have that of its partition. A partition gets a new time whenever any of its
    files changes, so the family would seem newer than it is.
    """
    record = record_fields.check(orjson.loads(numbered.data))
    own_id, own_tenant, own_time = record["chunk_id"], tenant_of(record), record.get("created_at")
    tenant = own_tenant or source.tenant
    if tenant != own_tenant:
        record |= {"tenant_id": tenant, "chunk_id": record_fields.id_for_tenant(own_id, tenant)}
        add_original(record, chunk_id=own_id)
    if own_time is None:
        record["created_at"] = source.created_at
    if (tenant != own_tenant or own_time is None) and "chunk_object_hash" in (record.get("hashes") or {}):
        record["hashes"]["chunk_object_hash"] = chunk_object_hash(record)
    index, count = record.get("chunk_index"), record.get("chunk_count")
    return Draft(
        name=source_name(record) or record["document_id"],
        parent=parent_id(record),
        tenant=tenant,
        version=msgspec.convert(record["provenance"], Provenance).version(),
        document_id=record["document_id"],
        text=record["text"],
        provenance=record["provenance"],
        fields={},
        chunk_id=record["chunk_id"],
        count=count if isinstance(count, int) else None,  # beyond 64 bits it is a float
        order=(index is None, index or 0),
        complete_chunk=record,
    )


class MarkdownChunk(msgspec.Struct, gc=False, kw_only=True):
    """The metadata of specification 001 that ids are made from."""

    chunk_id: Name
    document_id: Name
    ordinal: Count
    chunk_text: str
    source_version_id: str | int | None = None


def markdown_draft(numbered: NumberedRecord, source: Source) -> Draft:
    """Keeps the record's `chunk_id`, which depends on tenant, document and version, unless the run adds a tenant. A
    source without a name is identified by its `document_id`."""
    record = numbered.record
    chunk: MarkdownChunk = read_as(MarkdownChunk, record)
    return foreign_draft(
        record,
        source,
        used={"chunk_id", "document_id", "ordinal", "chunk_text"},
        text=chunk.chunk_text,
        name=first_string(record, *NAMES),
        fallback_name=chunk.document_id,
        document_id=chunk.document_id,
        chunk_id=chunk.chunk_id,
        id_tenant=tenant_of(record),
        index=chunk.ordinal,
        checksum=record_fields.checksum_of(str(chunk.source_version_id)),
        version=(chunk.document_id, chunk.source_version_id),
    )


class ChunkSource(msgspec.Struct, gc=False):
    path: Name


class StructuralChunk(msgspec.Struct, gc=False, kw_only=True):
    """The fields of specification 003 that ids are made from. `source` is the document that the chunk was cut from."""

    id: Name
    text: str
    source: ChunkSource
    doc_id: Name
    index: Count


def structural_draft(numbered: NumberedRecord, source: Source) -> Draft:
    """Identity comes from the path. The record's own ids change when files are added, and are only kept as fields."""
    record = numbered.record
    chunk: StructuralChunk = read_as(StructuralChunk, record)
    return foreign_draft(
        record,
        source,
        used={"text", "index"},
        text=chunk.text,
        name=chunk.source.path,
        fallback_name=chunk.doc_id,
        index=chunk.index,
    )


class LogPlace(msgspec.Struct, gc=False, kw_only=True):
    """A place in the recorder's append log."""

    segment_id: int | str
    ordinal: Count
    byte_offset: Count


class RecorderChunk(msgspec.Struct, gc=False, kw_only=True):
    """The metadata of specification 004 that ids are made from, and the text."""

    chunk_id: Name
    policy_version: Name
    pane_id: int | str
    start_offset: LogPlace
    end_offset: LogPlace
    text: str
    session_id: int | str | None = None


def recorder_draft(numbered: NumberedRecord, source: Source) -> Draft:
    """The source is the one that the record names, else a pane of a session. Chunks are ordered as in the log."""
    record = numbered.record
    chunk: RecorderChunk = read_as(RecorderChunk, record)
    tenant = tenant_of(record) or source.tenant
    name = first_string(record, *NAMES)
    pane = f"recorder/{'-' if chunk.session_id is None else chunk.session_id}/{chunk.pane_id}"
    parent = resolve_parent_id(None, name, pane) if name else json_hash([chunk.session_id, chunk.pane_id])
    start, end = chunk.start_offset, chunk.end_offset
    return foreign_draft(
        record,
        source,
        used={"chunk_id", "text"},
        text=chunk.text,
        name=name,
        fallback_name=pane,
        parent=parent,
        document_id=derive_document_id(name, None, tenant=tenant) if name else json_hash([parent, tenant]),
        chunk_id=chunk.chunk_id,
        version=(chunk.policy_version,),
        order=(str(start.segment_id).zfill(20), start.ordinal, start.byte_offset, end.ordinal, chunk.chunk_id),
    )


def foreign_draft(
    record: Record,
    source: Source,
    *,
    used: set[str],
    text: str,
    name: str | None,
    fallback_name: str,
    parent: str | None = None,
    document_id: str | None = None,
    chunk_id: str | None = None,
    own_id: str | None = None,
    tenant: str | None = None,
    id_tenant: str | None = None,
    index: int | None = None,
    checksum: str | None = None,
    version: tuple[Any, ...] | None = None,
    order: tuple[Any, ...] = (),
) -> Draft:
    """The draft of a chunk; fields that are not in `used` are kept.

    `fallback_name` identifies a source without a name. `chunk_id` is the record's own id if it stays the same when the
    source is exported again, else an id that the caller computes; `own_id` is as in `Draft`. `id_tenant` is the tenant
    that `chunk_id` already depends on. If the draft's tenant is another one, it is combined with the id. Tenant,
    checksum, version and other ids that are not passed are derived from the record.
    """
    tenant = tenant or tenant_of(record) or source.tenant
    checksum = checksum or stated_checksum(record)
    fields = record_fields.keep(
        {field: value for field, value in record.items() if field not in used | {"provenance", "tenant_id"}}
    )
    provenance, replaced = record_fields.make_provenance(
        record.get("provenance"),
        source=("source_uri", name) if name else ("source_ref", fallback_name),
        checksum=checksum,
        parser=PARSER,
        canonicalizer=CANONICALIZER,
        uri=source.uri,
    )
    canonical = canonical_text(text)
    add_original(fields, provenance=replaced, raw_text=None if canonical == text else text)
    if chunk_id is not None and tenant != id_tenant:
        add_original(fields, chunk_id=chunk_id)
        chunk_id = record_fields.id_for_tenant(chunk_id, tenant)
    shown = name or fallback_name
    return Draft(
        name=shown,
        parent=parent or resolve_parent_id(None, name, fallback_name),
        tenant=tenant,
        version=version or (checksum,),
        document_id=document_id or derive_document_id(name, checksum, tenant=tenant),
        text=text,
        provenance=provenance,
        fields=fields,
        chunk_id=chunk_id,
        own_id=own_id,
        index=index,
        order=order if index is None else (index,),
        not_indexed=None if canonical else Notice(SOURCE_EMPTY, f"{shown}: its text is empty", is_failure=False),
    )


def stated_checksum(record: Record) -> str | None:
    return record_fields.checksum_of(first_string(record, *_CHECKSUMS))
