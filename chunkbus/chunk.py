"""The `chunks.v1` chunk: its types, and `new_chunk`, the only place that computes a new chunk's hashes.

Chunks are passed on as parsed JSON (`Record`), which keeps unknown fields. `Chunk` is the typed view of the fields in
the contract: validation decodes into it, and the published JSON Schema is generated from it.
"""

from typing import Annotated, Any

import msgspec

from chunksink.chunkbus.canonical import bare_hex, canonical_text, chunk_object_hash, text_hash
from chunksink.chunkbus.errors import InvalidChunk
from chunksink.chunkbus.identity import derive_chunk_id

CHUNK_VERSION = "chunks.v1"


Record = dict[str, Any]
Count = Annotated[int, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


# gc=False, because chunks contain no cycles and there are millions. With omit_defaults and the field order of
# `new_chunk`, encoding a typed chunk reproduces its line byte for byte (see `record_checks`).
class Parser(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """The program that read the source."""

    parser_name: Name
    parser_version: Name


class Canonicalizer(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """The program that normalised the text. Its version includes every option that changes the text."""

    canonicalizer_name: Name
    canonicalizer_version: Name


class Provenance(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """Where a chunk came from. Needs `source_uri` or `source_ref`; parser and canonicalizer may be nested or flat."""

    source_uri: str | None = None
    source_ref: str | None = None
    source_checksum: str | None = None
    parser: Parser | None = None
    canonicalizer: Canonicalizer | None = None
    inputs: list[Any]
    parser_name: str | None = None
    parser_version: str | None = None
    canonicalizer_name: str | None = None
    canonicalizer_version: str | None = None

    def source(self) -> str | None:
        return self.source_uri or self.source_ref

    def parser_pair(self) -> tuple[str | None, str | None]:
        if self.parser is not None:
            return self.parser.parser_name, self.parser.parser_version
        return self.parser_name, self.parser_version

    def canonicalizer_pair(self) -> tuple[str | None, str | None]:
        if self.canonicalizer is not None:
            return self.canonicalizer.canonicalizer_name, self.canonicalizer.canonicalizer_version
        return self.canonicalizer_name, self.canonicalizer_version

    def checksum(self) -> str | None:
        """The source's checksum: without the `sha256:` prefix if it is a sha256, else unchanged."""
        return bare_hex(self.source_checksum) or self.source_checksum

    def version(self) -> tuple[str | None, ...]:
        """Equal if source checksum, parser and canonicalizer are equal."""
        return (self.checksum(), *self.parser_pair(), *self.canonicalizer_pair())


class Source(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """The name and the type of the source, as recorded when its file was read."""

    source_uri: str | None = None
    source_type: str | None = None


class Pages(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    page_start: int | None = None
    page_end: int | None = None


class CharRange(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """Characters of the canonicalised text stream, end exclusive."""

    char_start: int | None = None
    char_end: int | None = None


class Span(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """The chunk's place in its document; best effort, may be absent."""

    pages: Pages | None = None
    char_range: CharRange | None = None
    section: str | list[str] | None = None
    tei: Any = None


class Hashes(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """`sha256:<hex>`; bare hex is accepted."""

    text_hash: str | None = None
    chunk_object_hash: str | None = None
    document_object_hash: str | None = None


class Producer(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """The program that wrote the chunk. It changes between runs, so no id and no `text_hash` depends on it."""

    name: str | None = None
    version: str | None = None
    run_id: str | None = None


class Chunk(msgspec.Struct, gc=False, kw_only=True, omit_defaults=True):
    """One canonical record of the chunk bus."""

    schema_version: str
    chunk_id: Name
    document_id: Name
    text: str
    provenance: Provenance
    parent_id: str | None = None
    tenant_id: str | None = None
    chunk_index: Count | None = None
    chunk_count: Count | None = None
    source: Source | None = None
    span: Span | None = None
    metadata: dict[str, Any] | None = None
    canonicalization: dict[str, Any] | None = None
    hashes: Hashes | None = None
    created_at: str | None = None
    producer: Producer | None = None
    tokens: Any = None
    quality: dict[str, Any] | None = None
    embedding_ref: str | None = None


FAMILY_FIELDS = ("tenant_id", "parent_id")
"""Fields that identify the family of a chunk; read from `metadata` if the chunk itself lacks them."""

_FIELDS_OF_ARGUMENTS = frozenset(
    ["schema_version", "chunk_id", "document_id", "text", "provenance", "hashes", "created_at"]
)


def new_chunk(
    *,
    document_id: str,
    text: str,
    provenance: Record,
    span_key: str | int,
    created_at: str,
    chunk_id: str | None = None,
    fields: Record | None = None,
    keeps_indentation: bool = False,
) -> Record:
    """A chunk ready for a `PartitionWriter`. Its canonical text and its hashes are computed here.

    `span_key` is the chunk's place in its document: a name that survives edits, else its index. `fields` are the
    contract's optional fields and any others. Without `chunk_id`, the id is derived from document, place and text.
    `keeps_indentation`: the first line keeps its indentation, as in code.
    """
    if fields and not _FIELDS_OF_ARGUMENTS.isdisjoint(fields):
        clash = sorted(_FIELDS_OF_ARGUMENTS.intersection(fields))
        raise InvalidChunk(f"fields may not set {', '.join(clash)}: new_chunk sets them from its arguments")
    indentation = text[: len(text) - len(text.lstrip(" \t"))] if keeps_indentation else ""
    text = indentation + canonical_text(text)
    hashed = text_hash(text)
    record: Record = {
        "schema_version": CHUNK_VERSION,
        "chunk_id": chunk_id or derive_chunk_id(document_id, span_key, hashed),
        "document_id": document_id,
        "text": text,
        "provenance": provenance,
        **(fields or {}),
        "hashes": {"text_hash": hashed},
        "created_at": created_at,
    }
    ordered = {name: record[name] for name in Chunk.__struct_fields__ if name in record}
    if len(ordered) < len(record):
        ordered |= record
    ordered["hashes"]["chunk_object_hash"] = chunk_object_hash(ordered)
    return ordered
