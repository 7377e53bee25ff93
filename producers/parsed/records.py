"""Passages of a parsed document become canonical chunks: identity, provenance, numbers, neighbours."""

from collections.abc import Iterator, Sequence
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import derive_document_id, resolve_parent_id
from chunksink.producers.markdown.passages import Passage
from chunksink.producers.markdown.records import chunk_path
from chunksink.producers.parsed.document import ParsedDocument
from chunksink.producers.parsed.places import Places
from chunksink.producers.parsed.render import Rendered
from chunksink.producers.records.drafts import make_chunk
from chunksink.producers.records.frame import Frame, refuse_heavy
from chunksink.producers.records.keeping import (
    checksum_of,
    first_string,
    keep,
    keep_original,
    make_provenance,
    tenant_of,
)

PARSER = ("parsed-document", "1")
_CHECKSUMS = (
    "source.source_checksum",
    "source.checksum",
    "source.content_hash",
    "provenance.source_checksum",
    "metadata.content_hash",
    "content_hash",
)


def parent_of(document: ParsedDocument) -> str:
    path = document.source.path
    return resolve_parent_id(None, path, path)


def build_chunks(
    record: Record,
    document: ParsedDocument,
    rendered: Rendered,
    passages: Sequence[Passage],
    frame: Frame,
    *,
    doc_id: str,
    first_number: int,
) -> Iterator[Record]:
    """The document's chunks in order; the first has this number in the traversal. Raises RecordRefused."""
    path, tenant = document.source.path, frame.tenant_for(tenant_of(record))
    checksum = checksum_of(*(first_string(record, name) for name in _CHECKSUMS))
    document_id = derive_document_id(path, checksum, tenant=tenant)
    provenance, displaced = make_provenance(
        record.get("provenance"),
        source=("source_uri", path),
        checksum=checksum,
        parser=PARSER,
        canonicalizer=frame.canonicalizer,
        uri=frame.uri,
    )
    about = _about(document, rendered)
    places = Places(rendered.stretches, passages)
    for index, passage in enumerate(passages):
        said = {**places.said(index), **_numbers(first_number, index, len(passages), doc_id)}
        fields = keep({"source": record["source"], "metadata": {**about, **said}})
        fields.update(_place(rendered, passage, places))
        fields.update(
            parent_id=parent_of(document),
            chunk_index=index,
            chunk_count=len(passages),
            canonicalization={"chunking_policy_id": frame.canonicalizer[1]},
            tokens={"count": passage.tokens, "tokenizer": frame.tokenizer_version},
            producer=frame.making.producer,
        )
        if tenant is not None:
            fields["tenant_id"] = tenant
        if about.keys() & said.keys():
            keep_original(fields, "metadata", {name: about[name] for name in about if name in said})
        if displaced is not None:
            keep_original(fields, "provenance", displaced)
        chunk = make_chunk(
            document_id=document_id,
            text=rendered.document.text[passage.start : passage.end],
            provenance=provenance,
            span_key=index,
            created_at=frame.making.created_at,
            fields=fields,
        )
        del chunk["hashes"]["chunk_object_hash"]  # it would cover the numbers
        yield chunk


def stable_id(kind: str, number: int) -> str:
    """`chunk_0481`: a number of the traversal, which shifts when files are added; no id and no hash rests on it."""
    return f"{kind}_{number:04d}"


def _numbers(first: int, index: int, count: int, doc_id: str) -> Record:
    neighbors = [number for number in (index - 1, index + 1) if 0 <= number < count]
    return {
        "stable_id": stable_id("chunk", first + index),
        "doc_id": doc_id,
        "neighbors": [stable_id("chunk", first + number) for number in neighbors],
    }


def _place(rendered: Rendered, passage: Passage, places: Places) -> Record:
    """Where the chunk lies in the text, under which headings, and in the file."""
    headings = list(rendered.document.sections[passage.section])
    raw = rendered.document.text[passage.start : passage.end]
    start = passage.start + len(raw) - len(raw.lstrip())
    end = start + len(raw.strip())
    locator = places.where(start, end)
    span: dict[str, Any] = {"char_range": {"char_start": start, "char_end": end}, "section": headings}
    place: Record = {
        "span": span,
        "chunk_path": chunk_path(headings, passage.element),
        "kind": passage.kind.value,
        "overlap_chars": max(0, passage.own_start - start),
    }
    if "page_number" in locator:
        span["pages"] = {"page_start": locator["page_number"], "page_end": locator["page_end"]}
    if headings:
        place["headings"] = headings
    if locator:
        place["locator"] = locator
    return place


def _about(document: ParsedDocument, rendered: Rendered) -> Record:
    """What the document says about itself; its title, else its first heading, among it."""
    metadata = dict(document.metadata or {})
    title = document.title or rendered.document.metadata.get("title")
    if title and not metadata.get("title"):
        metadata["title"] = title
    refuse_heavy(metadata)
    return metadata
