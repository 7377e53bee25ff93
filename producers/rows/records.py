"""Passages of a row become canonical chunks: who it is, what it says beside its text, and where each passage stands."""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from chunksink.chunkbus.canonical import sha256_hex
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import derive_document_id, resolve_parent_id
from chunksink.producers.markdown.document import Document
from chunksink.producers.markdown.passages import Passage
from chunksink.producers.markdown.records import chunk_path, links_by_passage
from chunksink.producers.markdown.shown import shown_of
from chunksink.producers.records.drafts import make_chunk
from chunksink.producers.records.frame import Frame
from chunksink.producers.records.keeping import keep, keep_original, make_provenance
from chunksink.producers.rows.about import about_of
from chunksink.producers.rows.row import Row

PARSER = ("rows", "1")
CANONICALIZER_NAME = "chunksink-rows"
SOURCE_TYPE = "rows"
_FAMILY = "parent_id"
"""Of a chunk it says whose that is, of a row often what it answers."""


def parent_of(name: str) -> str:
    return resolve_parent_id(None, name, name)


def build_chunks(
    row: Row, name: str, document: Document, passages: Sequence[Passage], frame: Frame
) -> Iterator[Record]:
    """The row's chunks in order. Raises RecordRefused."""
    tenant = frame.tenant_for(row.tenant)
    checksum = sha256_hex(row.text.encode())
    shown_name = row.address or name
    provenance, _ = make_provenance(
        None,
        source=("source_uri", shown_name),
        checksum=f"sha256:{checksum}",
        parser=PARSER,
        canonicalizer=frame.canonicalizer,
        uri=frame.uri,
    )
    source = {"source_uri": shown_name, "source_type": SOURCE_TYPE, **_file_of(row, frame.uri)}
    about = about_of(row.about, document)
    links = links_by_passage(document.links, passages, shown_name)
    for index, passage in enumerate(passages):
        said = _said(document, passage, links[index])
        moved = {name: value for name, value in about.items() if name in said or name == _FAMILY}
        stays = {name: value for name, value in about.items() if name not in moved}
        fields = keep({"source": source, "metadata": {**stays, **said}})
        if moved or row.moved:
            keep_original(fields, "metadata", row.moved | moved)
        headings = list(document.sections[passage.section])
        shown = shown_of(document.text, passage)
        fields.update(
            parent_id=parent_of(name),
            chunk_index=index,
            chunk_count=len(passages),
            chunk_path=chunk_path(headings, passage.element),
            kind=passage.kind.value,
            overlap_chars=shown.overlap_chars,
            span={"char_range": {"char_start": shown.start, "char_end": shown.end}, "section": headings},
            canonicalization={"chunking_policy_id": frame.canonicalizer[1]},
            tokens={"count": passage.tokens, "tokenizer": frame.tokenizer_version},
            producer=frame.making.producer,
        )
        if tenant is not None:
            fields["tenant_id"] = tenant
        yield make_chunk(
            document_id=derive_document_id(name, checksum, tenant=tenant),
            text=shown.text,
            provenance=provenance,
            span_key=index,
            created_at=frame.making.created_at,
            fields=fields,
        )


def _file_of(row: Row, uri: str) -> Record:
    """Its id stands where other sources have the name of a file, so that it is found by it."""
    told: Record = {} if row.address else {"path": uri}
    if row.id is not None:
        told |= {"filename": row.id, "extension": PurePosixPath(uri).suffix.removeprefix(".").lower()}
    return told


def _said(document: Document, passage: Passage, links: list[dict[str, str]]) -> Record:
    """What is said of the passage beside what is said of the row."""
    anchor = document.anchors.get(passage.section)
    return ({"anchor": anchor} if anchor else {}) | ({"links": links} if links else {})
