"""Chunks of other programs become canonical chunks. docs/formats/chunks.md lists the fields of each form.

`drafts` reads `chunks.v1` and the forms of the specifications, `frameworks` the others.
"""

from collections.abc import Callable, Iterator
from functools import partial

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.codes import RECORD_FORM_UNKNOWN
from chunksink.ingest.errors import RecordRefused
from chunksink.ingest.family_groups import Draft, group_records
from chunksink.ingest.formats.chunks import drafts
from chunksink.ingest.formats.chunks.frameworks import (
    SOURCES,
    find_text,
    framework_draft,
    looks_like_row,
    refuse_wrong_text,
)
from chunksink.ingest.formats.registry import Format, Match
from chunksink.ingest.json_records import NumberedRecord
from chunksink.ingest.model import Item, Source

Form = Callable[[NumberedRecord, Source], Draft]
"""Makes drafts from the records of one form."""


class ChunksFormat(Format):
    """Reads chunks of other programs."""

    name = "chunks"
    suffixes = (".jsonl", ".ndjson", ".json")
    parser = drafts.PARSER
    canonicalizer = drafts.CANONICALIZER

    def match(self, record: Record, *, is_alone: bool = False) -> Match:
        form = form_of(record)
        if form is framework_draft:
            return Match.NO if looks_like_row(record) else Match.POSSIBLE
        if form is drafts.canonical_draft:
            return Match.DECLARED
        return Match.LIKELY if form else Match.NO

    def read(self, source: Source) -> Iterator[Item]:
        return group_records(source, partial(_draft, source=source), lambda record: form_of(record) is not None)


def form_of(record: Record) -> Form | None:
    """The form of a record; None if it has no known form. Fields that its form requires may still be missing."""
    if str(record.get("schema_version")).startswith("chunks."):
        return drafts.canonical_draft
    is_recorded = {"pane_id", "start_offset", "end_offset"} <= record.keys()
    if is_recorded or str(record.get("policy_version")).startswith("ft.recorder.chunking."):
        return drafts.recorder_draft
    if "chunk_text" in record or {"ordinal", "headings_path"} <= record.keys():
        return drafts.markdown_draft
    if "doc_id" in record and ("index" in record or "neighbors" in record):
        return None if record.get("blocks") else drafts.structural_draft  # a parsed document has blocks
    return framework_draft if find_text(record) is not None else None


def _draft(numbered: NumberedRecord, source: Source) -> Draft:
    form = form_of(numbered.record)
    if form is not None:
        return form(numbered, source)
    refuse_wrong_text(numbered.record)
    fields = ", ".join(sorted(numbered.record)[:8])
    raise RecordRefused(
        RECORD_FORM_UNKNOWN,
        f"is a chunk of an unknown form, with the fields {fields:.200}. The metadata of a framework's chunk must name "
        f"its source in one of the fields {', '.join(SOURCES)}; for whole documents use `--as rows`",
    )
