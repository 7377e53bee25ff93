"""Parsed documents: JSON from Docling and other parsers of PDF, Office and other files (docs/formats/parsed.md).

In: documents of blocks, tables and images. Out: chunks that keep sections and tables together, with their places in
the parsed file. Families are sorted by folder, then path, so the order of the lines hardly affects the chunks.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.ingest import codes, record_fields
from chunksink.ingest.errors import NotRead, RecordRefused
from chunksink.ingest.formats.markdown.document import Structure
from chunksink.ingest.formats.markdown.passages import Passage, cut
from chunksink.ingest.formats.markdown.policy import CutByPolicy
from chunksink.ingest.formats.markdown.records import PassageText
from chunksink.ingest.formats.parsed.docling import is_docling, to_parsed
from chunksink.ingest.formats.parsed.document import ParsedDocument, read_document
from chunksink.ingest.formats.parsed.render import Renderer, Stretch
from chunksink.ingest.formats.registry import Match
from chunksink.ingest.json_records import MAX_VALUE_BYTES, NumberedRecord, read_records
from chunksink.ingest.model import Family, Item, Notice, Source
from chunksink.ingest.record_documents import ChunkParts, CutDocument, Origin, make_family
from chunksink.ingest.spool import Spool

_RULES_VERSION = "8"  # increase it with every change to rendering or to the fields of a chunk
_CHECKSUMS = (
    *("source.source_checksum", "source.checksum", "source.content_hash"),
    *("provenance.source_checksum", "metadata.content_hash", "content_hash"),
)


@dataclass(frozen=True)
class ParsedFormat(CutByPolicy):
    """Parsed documents, cut by the Markdown policy; `Policy(overlap_percent=0)` turns the overlap off."""

    name = "parsed"
    suffixes = (".jsonl", ".ndjson", ".json")
    parser = ("parsed-document", "1")

    @property
    def canonicalizer(self) -> tuple[str, str]:  # type: ignore[override]
        return ("chunksink-parsed", f"structural.{_RULES_VERSION}+{self.policy.policy_id}")

    def match(self, record: Record, *, is_alone: bool = False) -> Match:
        if is_docling(record):
            return Match.DECLARED
        source = record.get("source")
        if not isinstance(source, dict) or not isinstance(source.get("path"), str):
            return Match.NO
        if record.get("blocks") is not None:
            return Match.LIKELY
        has_content = any(record.get(name) is not None for name in ("text", "tables", "images"))
        is_event = "event_type" in record or "pane_id" in record
        return Match.POSSIBLE if (has_content or is_alone) and not is_event else Match.NO

    def read(self, source: Source) -> Iterator[Item]:
        reader = _Reader(self, source)
        records = read_records(source.path, lambda record: bool(self.match(record)), MAX_VALUE_BYTES)
        with closing(Spool()) as spool:
            for found in records:
                try:
                    yield from [found] if isinstance(found, Notice) else reader.store(found, spool)
                except RecordRefused as refusal:
                    yield Notice(refusal.code, refusal.reason, found.line)
            for line, data in spool.records():
                try:
                    yield from reader.chunk(orjson.loads(data), line)
                except NotRead as refusal:
                    yield Notice(refusal.code, refusal.reason, line)


class _Reader:
    def __init__(self, format_: ParsedFormat, source: Source) -> None:
        self._format, self._policy = format_, format_.policy
        self._source = source
        self._documents = 0
        self._chunks = 0

    def store(self, found: NumberedRecord, spool: Spool) -> Iterator[Notice]:
        record, skipped = found.record, 0
        if is_docling(record):
            record, skipped = to_parsed(record, self._source.uri)
        parsed = read_document(record)
        origin, data = self._origin(record, parsed), (found.line, orjson.dumps(record))
        if replaced := spool.put(origin.family, data, parsed.traversal_key):
            reason = f"{origin.name}: replaced by a later version on line {found.line}"
            yield Notice(codes.RECORD_SUPERSEDED, reason, replaced[0], is_failure=False)
        if skipped:
            reason = f"{origin.name}: {skipped:,} page headers, footers, notes, forms and the like"
            yield Notice(codes.PARTS_LEFT_OUT, reason, found.line, is_failure=False)

    def chunk(self, record: Record, line: int) -> Iterator[Item]:
        parsed = read_document(record)
        origin, renderer = self._origin(record, parsed), Renderer(self._policy)
        unread = [element for element in parsed.elements if not renderer.add(element) and element.may_have_text]
        document = renderer.document()
        passages = list(cut(document, self._policy))
        headings = (heading for section in document.sections for heading in section)
        if title := origin.metadata.get("title") or parsed.title or next(headings, None):
            origin.metadata["title"] = title
        parts = _chunk_parts(document, passages, renderer.stretches)
        _number_chunks(parts, parsed.doc_id or f"doc_{self._documents + 1:04d}", self._chunks + 1)
        left_out = {}
        if unread:
            fields = f"the first has {', '.join(unread[0].fields):.200}"
            left_out[codes.BLOCK_WITHOUT_TEXT] = f": {len(unread):,} blocks or tables lack a known text field; {fields}"
        cut_document = CutDocument(origin, document, passages, parts)
        for item in make_family(self._format, self._policy, self._source, cut_document, left_out, line):
            if isinstance(item, Family):
                self._documents += 1
                self._chunks += len(item.chunks)
                for chunk in item.chunks:
                    del chunk["hashes"]["chunk_object_hash"]  # it would change whenever the numbers shift
            yield item

    def _origin(self, record: Record, parsed: ParsedDocument) -> Origin:
        return Origin(
            name=parsed.source.path,
            address=parsed.source.path,
            checksum=record_fields.checksum_of(*(record_fields.first_string(record, name) for name in _CHECKSUMS)),
            tenant=record_fields.tenant_of(record) or self._source.tenant,
            source=record["source"],
            metadata=dict(parsed.metadata or {}),
            provenance=record.get("provenance"),
        )


def _number_chunks(parts: Sequence[ChunkParts], doc_id: str, first: int) -> None:
    """Numbers chunks and documents. Numbers shift when documents are added, so no id or hash depends on them."""
    ids = [f"chunk_{number:04d}" for number in range(first, first + len(parts))]
    for index, part in enumerate(parts):
        neighbors = [*ids[max(0, index - 1) : index], *ids[index + 1 : index + 2]]
        part.metadata.update(stable_id=ids[index], doc_id=doc_id, neighbors=neighbors)


def _chunk_parts(document: Structure, passages: Sequence[Passage], stretches: Sequence[Stretch]) -> list[ChunkParts]:
    """The text, headings and place of each chunk, and the tables and images that begin in it."""
    parts = []
    for passage in passages:
        raw = document.text[passage.start : passage.end]
        start = passage.start + len(raw) - len(raw.lstrip())
        text = PassageText(raw, max(0, passage.own_start - start), start, start + len(raw.strip()))
        locator = _locator(stretches, text.start, text.end)
        fields = {"headings": list(document.sections[passage.section]), "locator": locator}
        parts.append(ChunkParts(text, {}, {name: value for name, value in fields.items() if value}))
    starts = [passage.own_start for passage in passages]
    for stretch in stretches if passages else ():
        metadata = parts[max(0, bisect_right(starts, stretch.start) - 1)].metadata
        images = [*metadata.get("images", ()), *stretch.metadata.get("images", ())]
        metadata |= stretch.metadata | ({"images": images} if images else {})
    return parts


def _locator(stretches: Sequence[Stretch], start: int, end: int) -> Record:
    """The first and the last page of a chunk, and its first slide and sheet."""
    first = bisect_right(stretches, start, key=lambda stretch: stretch.end)
    last = bisect_left(stretches, end, key=lambda stretch: stretch.start)
    places = [stretch.place for stretch in stretches[first:last]]
    found: dict[str, Any] = {name: value for place in reversed(places) for name, value in place.items()}
    pages = [place[name] for place in places for name in ("page_number", "page_end") if name in place]
    return found | ({"page_number": min(pages), "page_end": max(pages)} if pages else {})
