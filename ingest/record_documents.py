"""Makes chunks from records that are whole documents (parsed documents and rows)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import derive_document_id, derive_lasting_chunk_ids, family_key, resolve_parent_id
from chunksink.ingest import codes, record_fields
from chunksink.ingest.errors import RecordRefused
from chunksink.ingest.formats.markdown.document import Structure
from chunksink.ingest.formats.markdown.passages import Passage
from chunksink.ingest.formats.markdown.policy import Policy
from chunksink.ingest.formats.markdown.records import PassageText, chunk_path, place_and_size
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import Empty, Family, Item, Notice, Source

MAX_METADATA_BYTES = 2**18


@dataclass(frozen=True, kw_only=True)
class Origin:
    """What all chunks of a document share. Ids depend on `name`; results show and link to `address`."""

    name: str
    address: str
    checksum: str | None
    tenant: str | None
    source: Record
    metadata: Record
    provenance: Any = None

    @property
    def parent_id(self) -> str:
        return resolve_parent_id(None, self.name, self.name)

    @property
    def family(self) -> str:
        return family_key(self.parent_id, self.tenant)


class ChunkParts(NamedTuple):
    """The text of one chunk, and its fields. `metadata` overrides the document's metadata."""

    text: PassageText
    metadata: Record
    fields: Record


class CutDocument(NamedTuple):
    """A document cut into passages, each with the parts of its chunk."""

    origin: Origin
    structure: Structure
    passages: Sequence[Passage]
    parts: Sequence[ChunkParts]


def make_family(
    format_: Format, policy: Policy, source: Source, document: CutDocument, left_out: Mapping[str, str], line: int
) -> Iterator[Item]:
    """Yields the document as a `Family`, or as `Empty` if it has no text, then notices. Raises RecordRefused.

    `left_out` maps codes of notices to reasons. With BLOCK_WITHOUT_TEXT, a document without text does not count as
    empty: its text may be in fields that are not read.
    """
    origin = document.origin
    record_fields.refuse_other_tenant(origin.tenant, source.tenant)
    ids: Iterable[str | None] = [None] * len(document.parts)
    if policy.ids_survive_edits:
        texts = (part.text.text for part in document.parts)
        ids = derive_lasting_chunk_ids(origin.tenant, origin.parent_id, texts)
    chunks = _build_chunks(format_, source, document, ids)
    reasons = {**dict.fromkeys(sorted(document.structure.notice_codes), ""), **left_out}
    if chunks:
        yield Family(chunks, line=line)
    else:
        reasons[codes.SOURCE_EMPTY] = " has no text"
        if codes.BLOCK_WITHOUT_TEXT not in left_out:
            yield Empty(origin.family)
    for code, reason in reasons.items():
        yield Notice(code, origin.name + reason, line, is_failure=False)


def _build_chunks(format_: Format, source: Source, document: CutDocument, ids: Iterable[str | None]) -> list[Record]:
    origin, structure, passages, parts = document
    if len(orjson.dumps(origin.metadata)) > MAX_METADATA_BYTES:
        largest = max(origin.metadata, key=lambda name: len(orjson.dumps(origin.metadata[name])))
        reason = f"has over {MAX_METADATA_BYTES:,} bytes of metadata, which each chunk repeats; remove {largest!r:.80}"
        raise RecordRefused(findings.LINE_TOO_LONG, reason)
    provenance, replaced = record_fields.make_provenance(
        origin.provenance,
        source=("source_uri", origin.address),
        checksum=origin.checksum,
        parser=format_.parser,
        canonicalizer=format_.canonicalizer,
        uri=source.uri,
    )
    chunks = []
    for index, (passage, (text, metadata, others), chunk_id) in enumerate(zip(passages, parts, ids, strict=True)):
        # A record's metadata may have its own `parent_id`, such as the comment that it replies to. Sinks would take it
        # for the family.
        moved = {name: value for name, value in origin.metadata.items() if name in {*metadata, "parent_id"}}
        kept = {name: value for name, value in origin.metadata.items() if name not in moved}
        fields = record_fields.keep({"source": origin.source, "metadata": kept | metadata})
        record_fields.add_original(fields, metadata=moved, provenance=replaced)
        headings = list(structure.sections[passage.section])
        fields |= {"parent_id": origin.parent_id, **place_and_size(passage, text, headings, format_.canonicalizer[1])}
        fields |= {"chunk_path": chunk_path(headings, passage.element), "kind": passage.kind.value}
        fields |= {"chunk_index": index, "chunk_count": len(passages), "overlap_chars": text.overlap_chars}
        fields |= {"producer": source.producer} | ({} if origin.tenant is None else {"tenant_id": origin.tenant})
        if "page_number" in (locator := others.get("locator", {})):
            fields["span"]["pages"] = {"page_start": locator["page_number"], "page_end": locator["page_end"]}
        chunk = record_fields.make_chunk(
            document_id=derive_document_id(origin.name, origin.checksum, tenant=origin.tenant),
            text=text.text,
            provenance=provenance,
            span_key=index,
            created_at=source.created_at,
            chunk_id=chunk_id,
            fields=fields | others,
        )
        chunks.append(chunk)
    return chunks
