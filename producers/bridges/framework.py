"""Chunks as the frameworks of the field save them: documents of LangChain and Haystack, nodes of LlamaIndex, elements
of Unstructured. All are a text and a table about it; they differ in what they call the two.
"""

import re
from typing import Any, NamedTuple

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import json_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import derive_document_id, resolve_parent_id
from chunksink.producers.bridges.foreign import CHECKSUMS, NAMES, Context, foreign_draft
from chunksink.producers.errors import RecordRefused
from chunksink.producers.records.drafts import Draft
from chunksink.producers.records.keeping import checksum_of, first_string, tenant_of

SOURCES = ("source", "source_uri", "file_path", "filename", "file_name", "url", "path")
"""What in the table names the source: the first that is there."""
_FIELDS = (("page_content", "metadata"), ("content", "meta"), ("text", "metadata"))
_SIGNS = frozenset({"page_content", "element_id", "relationships", "sparse_embedding"})
_OF_DOCUMENTS = ("_id", "title", "headline")
_IDS = ("id", "id_", "element_id")
_NODE_OF_SOURCE = "relationships.1.node_id"  # LlamaIndex numbers its relations: 1 is where a node comes from
_HEADING = re.compile(r"Header ([1-6])")  # of LangChain's splitters, as their documentation names them
_PAGE = re.compile(r"[0-9]{1,9}", re.ASCII)
_VECTOR = "sparse_embedding"
_WRAPPING = ("lc", "type", "id", "kwargs")


class Passage(NamedTuple):
    """What a record says, and under which names."""

    record: Record
    text: str
    about: dict[str, Any]
    names: tuple[str, str]


def passage_in(record: Record) -> Passage | None:
    """None where a record is no text with a table beside it, or neither names a source nor bears a framework's sign."""
    record = _unwrapped(record)
    for name, table in _FIELDS:
        text, about = record.get(name), record.get(table)
        if isinstance(text, str) and isinstance(about, dict):
            names_source = first_string(about, *SOURCES) and not isinstance(record.get("source"), dict)
            is_known = names_source or not _SIGNS.isdisjoint(record)
            return Passage(record, text, about, (name, table)) if is_known else None
    return None


def is_like_document(passage: Record) -> bool:
    """With a title beside its text, or the id of a database, as no framework writes a chunk by itself."""
    return _SIGNS.isdisjoint(passage) and any(passage.get(name) for name in _OF_DOCUMENTS)


def lacking(record: Record) -> str | None:
    """What keeps a record from being a passage that has a framework's fields; None where it is not that near."""
    record = _unwrapped(record)
    if isinstance(record.get("source"), dict):  # a document's
        return None
    for name, table in _FIELDS:
        if name in record and isinstance(record.get(table), dict):
            if not isinstance(record[name], str):
                return f"has a `{table}`, but its `{name}` is {'null' if record[name] is None else 'no text'}"
            if not first_string(record[table], *SOURCES):
                return _without_source(table)
    return None


def bridge_framework(record: Record, data: bytes, context: Context) -> Draft:
    """Its ids are often made anew with each export, or are those of the whole document: they tell equal texts of a
    source apart, and name none for good."""
    passage = passage_in(record)
    if passage is None:
        raise RecordRefused(findings.FIELD_MISSING, "has no text with a table about it")
    own_id = _own_id(passage.record)
    source = _source(passage)
    if source is None and own_id is None:
        raise RecordRefused(findings.FIELD_MISSING, _without_source(passage.names[1]))
    rest = _rest(passage)
    own_tenant = tenant_of(rest) or tenant_of({"metadata": passage.about})
    tenant = own_tenant or context.making.tenant
    checksum = checksum_of(first_string(passage.record, *CHECKSUMS))
    document_id = derive_document_id(source, checksum, tenant=tenant) if source else json_hash([own_id, tenant])
    return foreign_draft(
        rest,
        context,
        placed=set(),
        text=passage.text,
        source=("source_uri", source) if source else ("source_ref", own_id or ""),
        parent=resolve_parent_id(None, source, own_id or ""),
        own_tenant=own_tenant,
        document_id=document_id,
        given_id=json_hash([document_id, own_id, passage.text, passage.about]),
        id_knows=tenant,
        index=None,
        version=(checksum,),
        order=(),
        checksum=checksum,
    )


def _without_source(table: str) -> str:
    return f"names no source: its `{table}` has none of {', '.join(SOURCES)}"


def _unwrapped(record: Record) -> Record:
    """What LangChain's `dumps` wraps: it says around it of which class that is, and in which version of its format.
    What others have put there stays."""
    held = record.get("kwargs")
    if "lc" not in record or not isinstance(held, dict):
        return record
    return {name: value for name, value in record.items() if name not in _WRAPPING} | held


def _rest(passage: Passage) -> Record:
    """Everything but the text, and where the contract has a place for it what the table says."""
    about = passage.about
    rest = {name: value for name, value in passage.record.items() if name not in (*passage.names, _VECTOR)}
    rest["metadata" if rest.get("metadata") is None else passage.names[1]] = about
    levels = sorted((int(match[1]), about[name]) for name in about if (match := _HEADING.fullmatch(name)))
    headings = [words for _, words in levels if isinstance(words, str) and words]
    if headings and rest.get("headings_path") is None:
        rest["headings_path"] = headings
    label = about.get("page_label")
    if isinstance(label, str) and _PAGE.fullmatch(label) and rest.get("span") is None:
        rest["span"] = {"pages": {"page_start": int(label), "page_end": int(label)}}
    return rest


def _own_id(record: Record) -> str | None:
    found = (record.get(name) for name in _IDS)
    return next((str(id) for id in found if isinstance(id, str | int) and not isinstance(id, bool) and id != ""), None)


def _source(passage: Passage) -> str | None:
    about = passage.about
    named, folder = first_string(about, *SOURCES), about.get("file_directory")
    if named is not None and named == about.get("filename") and isinstance(folder, str) and folder:
        return f"{folder.rstrip('/')}/{named}"
    return named or first_string(passage.record, *NAMES, _NODE_OF_SOURCE)
