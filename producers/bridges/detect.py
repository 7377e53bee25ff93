"""Which form a record has, told by the fields that no other form has."""

from enum import StrEnum

from chunksink.chunkbus.chunk import Record
from chunksink.producers.bridges.framework import lacking, passage_in
from chunksink.producers.errors import RECORD_FORM_UNKNOWN, RecordRefused


class Form(StrEnum):
    """A form of chunk records that is read here."""

    CANONICAL = "chunks.v1"
    MARKDOWN = "chunking_spec_v1"
    STRUCTURAL = "structural_chunk"
    RECORDER = "ft.recorder.chunking.v1"
    FRAMEWORK = "framework_passage"


def detect(record: Record) -> Form:
    """Raises RecordRefused where it is none of them; which fields are missing then is for the form to say."""
    version = record.get("schema_version")
    if isinstance(version, str) and version.startswith("chunks."):
        return Form.CANONICAL
    policy = record.get("policy_version")
    if (isinstance(policy, str) and policy.startswith("ft.recorder.chunking.")) or {
        "pane_id",
        "start_offset",
        "end_offset",
    } <= record.keys():
        return Form.RECORDER
    if "chunk_text" in record or {"ordinal", "headings_path"} <= record.keys():
        return Form.MARKDOWN
    if "doc_id" in record and ("index" in record or "neighbors" in record):
        return Form.STRUCTURAL
    if passage_in(record) is not None:
        return Form.FRAMEWORK
    raise RecordRefused(RECORD_FORM_UNKNOWN, _hint(record))


def form_of(record: Record) -> Form | None:
    try:
        return detect(record)
    except RecordRefused:
        return None


def _hint(record: Record) -> str:
    if "content_hash" in record and isinstance(record.get("content"), dict):
        return "is an IR record, not a chunk: read it as one"
    if "blocks" in record and "doc_id" in record:
        return "is a parsed document, not a chunk: read it as one"
    if reason := lacking(record):
        return reason
    fields = ", ".join(sorted(record)[:8]) or "no fields"
    return (
        f"is neither chunks.v1 nor of a form in docs/seams.md; it has {fields:.200}: it would be one with a `text` "
        "beside a table `metadata` that names its `source`; whole documents are read with `--as rows`"
    )
