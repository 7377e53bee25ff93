"""The canonical document 1.0 as types. They check records and define the published JSON Schema."""

from typing import Annotated, Any, Literal

import msgspec

from chunksink.chunkbus.chunk import Count, Name

IR_VERSION = "1.0"

Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", description="sha256, lower-case hex")]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Source(msgspec.Struct, gc=False, kw_only=True):
    """The file. `path` is for display and for opening it; ids are computed from its canonical form."""

    path: Name
    filename: str | None = None
    extension: str | None = None
    source_folder: str | None = None
    mime_type: str | None = None
    file_type: str | None = None
    size_bytes: Count | None = None
    created_at: str | None = None
    created_at_epoch: int | None = None
    modified_at: str | None = None
    modified_at_epoch: int | None = None
    host: str | None = None
    drive: str | None = None


class Provenance(msgspec.Struct, gc=False, kw_only=True):
    """The extractor of the record. `model` names OCR and ASR models, `ocr_*` and `asr_*`."""

    extractor_name: Name
    extractor_version: Name
    processed_at: str | None = None
    model: dict[str, Any] | None = None


class Content(msgspec.Struct, gc=False, kw_only=True):
    """The text, null if there is none, and facts about it."""

    content_text: str | None
    content_truncated: bool | None = None
    title: str | None = None
    language: str | None = None
    language_probability: Share | None = None
    tags: list[str] | None = None


class Locator(msgspec.Struct, gc=False, kw_only=True):
    """The record's place in the file, for links into it."""

    page_number: Count | None = None
    page_end: Count | None = None
    slide_number: Count | None = None
    sheet_name: str | None = None
    timestamp_start: Seconds | None = None
    timestamp_end: Seconds | None = None
    speaker: str | None = None


class Segment(msgspec.Struct, gc=False, kw_only=True):
    """A unit of the file's format. Audio and video have `start` and `end`, and may have words with their times."""

    type: Literal["page", "slide", "sheet", "row", "table", "paragraph", "transcript", "note"] | None = None
    text: str | None = None
    start: Seconds | None = None
    end: Seconds | None = None
    words: list[Any] | None = None


class IrRecord(msgspec.Struct, gc=False, kw_only=True):
    """One indexable unit: a whole document (`chunk_index` 0, `chunk_count` 1) or one of its chunks."""

    schema_version: str
    id: Hash
    parent_id: Hash
    chunk_index: Count
    chunk_count: Annotated[int, msgspec.Meta(ge=1)]
    content_hash: Hash
    source: Source
    provenance: Provenance
    content: Content
    status: Literal["success", "partial", "failed", "skipped"]
    locator: Locator | None = None
    segments: list[Segment] | None = None
    metadata: dict[str, Any] | None = None
    embedding: dict[str, Any] | None = None
    warnings: list[Any] | None = None
    errors: list[Any] | None = None


def ir_schema() -> dict[str, Any]:
    """The JSON Schema of a record. `chunksink schema ir` prints the copy in `chunksink/schema/ir-schema.json`."""
    schema = msgspec.json.schema(IrRecord)
    schema["$defs"]["IrRecord"]["properties"]["schema_version"] = {"const": IR_VERSION}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"The canonical document {IR_VERSION}",
        **schema,
    }
