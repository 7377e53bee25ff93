"""Chunks as frameworks save them: documents of LangChain and Haystack, nodes of LlamaIndex, elements of Unstructured.

Each consists of a text and a table of metadata. Only the names of these two fields differ.
"""

import re
from typing import Any, NamedTuple

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import json_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import derive_document_id
from chunksink.ingest.errors import RecordRefused
from chunksink.ingest.family_groups import Draft
from chunksink.ingest.formats.chunks.drafts import NAMES, foreign_draft, stated_checksum
from chunksink.ingest.json_records import NumberedRecord
from chunksink.ingest.model import Source
from chunksink.ingest.record_fields import first_string, tenant_of

SOURCES = ("source", "source_uri", "file_path", "filename", "file_name", "url", "path")
"""Fields of the metadata that may name the source; the first counts."""
_FIELDS = (("page_content", "metadata"), ("content", "meta"), ("text", "metadata"))
_ONLY_FRAMEWORKS = frozenset({"page_content", "element_id", "relationships", "sparse_embedding"})
_ONLY_ROWS = ("_id", "title", "headline")
_NOT_ROWS = _ONLY_FRAMEWORKS | {"chunk_id", "chunk_index", "schema_version"}
_IDS = ("id", "id_", "element_id")
_NODE_OF_SOURCE = "relationships.1.node_id"  # LlamaIndex numbers relations: 1 is the document of a node
_HASH_OF_SOURCE = "relationships.1.hash"  # depends on the text and the metadata of the document, not on its id
# Only with hyphens: one in 64 MD5 hashes, which are also ids, has the digits of a random UUID.
_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
_HEADING = re.compile(r"Header ([1-6])")  # the names that LangChain's splitters use
_PAGE = re.compile(r"[0-9]{1,9}", re.ASCII)
_WRAPPER = ("lc", "type", "id", "kwargs")


class FrameworkText(NamedTuple):
    """A record split into its text, its metadata, and the other fields. `name` is the name of the metadata field."""

    record: Record
    text: str | None
    metadata: Record
    name: str


def find_text(record: Record) -> FrameworkText | None:
    """The text and metadata; None unless the metadata names a source, or the record has a field that only frameworks
    have."""
    record = _unwrapped(record)
    for name, table in sorted(_FIELDS, key=lambda fields: record.get(fields[0]) is None):  # those with a text first
        text, metadata = record.get(name, ...), record.get(table)
        if isinstance(text, str | None) and isinstance(metadata, dict):
            names_source = first_string(metadata, *SOURCES) and not isinstance(record.get("source"), dict)
            is_known = names_source or not _ONLY_FRAMEWORKS.isdisjoint(record)
            rest = {key: value for key, value in record.items() if key not in (name, table, "sparse_embedding")}
            return FrameworkText(rest, text, metadata, table) if is_known else None
    return None


def refuse_wrong_text(record: Record) -> None:
    """Raises RecordRefused if the record has metadata, but its text is not a string."""
    record = _unwrapped(record)
    for name, table in _FIELDS:
        if isinstance(record.get(table), dict) and not isinstance(record.get(name), str | None):
            raise RecordRefused(findings.WRONG_TYPE, f"{name} is not a string: {record[name]!r:.60}")


def _unwrapped(record: Record) -> Record:
    """LangChain's `dumps` wraps objects in their class."""
    if "lc" in record and isinstance(record.get("kwargs"), dict):
        record = {name: value for name, value in record.items() if name not in _WRAPPER} | record["kwargs"]
    return record


def looks_like_row(record: Record) -> bool:
    """Whether the record may be a whole document, since it has a title or a database id, or its text in another
    field."""
    record = _unwrapped(record)
    has_text = any(record.get(name) is not None for name, _ in _FIELDS)
    return _NOT_ROWS.isdisjoint(record) and (not has_text or any(record.get(name) for name in _ONLY_ROWS))


def framework_draft(numbered: NumberedRecord, source: Source) -> Draft:
    """The chunk's id depends neither on the record's id nor on its metadata, which may differ in each export. They only
    tell apart chunks that repeat a text. An id that is not random also identifies a source that the record does not
    name."""
    passage = find_text(numbered.record)
    if passage is None:
        raise RecordRefused(findings.FIELD_MISSING, "has no text with metadata")
    rest, text, metadata, _ = passage
    ids = (str(rest[field]) for field in _IDS if type(rest.get(field)) in (str, int))
    own_id = next(filter(None, ids), None)
    name = _source_name(passage)
    reference = name or _reference(passage, own_id)
    if reference is None:
        reason = f"names no source: its metadata has none of {', '.join(SOURCES)}"
        raise RecordRefused(findings.FIELD_MISSING, reason)
    checksum = stated_checksum(rest)
    tenant = tenant_of(rest) or tenant_of({"metadata": metadata}) or source.tenant
    document_id = derive_document_id(name, checksum, tenant=tenant) if name else json_hash([reference, tenant])
    return foreign_draft(
        _with_metadata(passage),
        source,
        used=set(),
        text=text or "",
        name=name,
        fallback_name=reference,
        document_id=document_id,
        chunk_id=json_hash([document_id, text]),
        own_id=json_hash([own_id, metadata]),
        tenant=tenant,
        id_tenant=tenant,
    )


def _with_metadata(passage: FrameworkText) -> Record:
    """The other fields with the metadata, and with the headings and the page that it contains."""
    rest, _, metadata, name = passage
    record = {**rest, "metadata" if rest.get("metadata") is None else name: metadata}
    levels = sorted((int(match[1]), metadata[name]) for name in metadata if (match := _HEADING.fullmatch(name)))
    headings = [words for _, words in levels if isinstance(words, str) and words]
    if headings and record.get("headings_path") is None:
        record["headings_path"] = headings
    label = metadata.get("page_label")
    if isinstance(label, str) and _PAGE.fullmatch(label) and record.get("span") is None:
        record["span"] = {"pages": {"page_start": int(label), "page_end": int(label)}}
    return record


def _source_name(passage: FrameworkText) -> str | None:
    metadata = passage.metadata
    named, folder = first_string(metadata, *SOURCES), metadata.get("file_directory")
    if named is not None and named == metadata.get("filename") and isinstance(folder, str) and folder:
        return f"{folder.rstrip('/')}/{named}"
    node = first_string(passage.record, _NODE_OF_SOURCE)
    return named or first_string(passage.record, *NAMES) or (None if _is_random(node) else node)


def _reference(passage: FrameworkText, own_id: str | None) -> str | None:
    """Identifies a source without a name: by its content if each export has other random ids, else by the record's id.
    None if it has none."""
    content: Any = first_string(passage.record, _HASH_OF_SOURCE)
    if content is None:
        if own_id is not None and not _is_random(own_id):
            return own_id
        if own_id is None and first_string(passage.record, _NODE_OF_SOURCE) is None:
            return None
        content = [passage.text, passage.metadata]
    return f"document/{json_hash(content)[:16]}"


def _is_random(id_: str | None) -> bool:
    return id_ is not None and _RANDOM_ID.fullmatch(id_) is not None
