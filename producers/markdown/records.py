"""Passages become canonical chunks: ids by the chunking specification's formula, metadata, links, provenance."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chunksink.chunkbus.canonical import canonical_text, sha256_hex
from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.identity import derive_document_id
from chunksink.producers.markdown.document import Document, Kind, Link
from chunksink.producers.markdown.embedded import is_embedded
from chunksink.producers.markdown.headings import carried
from chunksink.producers.markdown.links import LinkKind, target_uri
from chunksink.producers.markdown.passages import Passage
from chunksink.producers.markdown.policy import CANONICALIZER_NAME, PARSER_NAME, PARSER_VERSION
from chunksink.producers.markdown.shown import shown_of

DEFAULT_TENANT = "default"
_SUFFIX = re.compile(r"(?<=.)\.[A-Za-z]\w{0,9}\Z", re.ASCII)
_OF_FOLDER = ("index", "_index", "readme")
_IS_LITERAL = {kind.value: kind in (Kind.CODE, Kind.TABLE) for kind in Kind}  # an enum is slow to call


@dataclass(frozen=True)
class Form:
    """What a source was before it was text: who read it, and how its type is called."""

    parser: tuple[str, str]
    source_type: str
    mime_type: str


MARKDOWN = Form((PARSER_NAME, PARSER_VERSION), "md", "text/markdown")


@dataclass(frozen=True)
class SourceVersion:
    """One version of one source: its name, the hex sha256 of its bytes and their number, and whose it is."""

    uri: str
    checksum: str
    size: int
    tenant: str | None = None

    @classmethod
    def of(cls, uri: str, data: bytes, tenant: str | None = None) -> "SourceVersion":
        return cls(uri, sha256_hex(data), len(data), tenant)

    @property
    def document_id(self) -> str:
        return derive_document_id(self.uri, self.checksum, tenant=self.tenant)


def stable_chunk_id(
    tenant: str | None, document_id: str, source_version_id: str, ordinal: int, canonical_chunk_text: str
) -> str:
    """The chunking specification's formula, section 7."""
    key = f"{tenant or DEFAULT_TENANT}|{document_id}|{source_version_id}|{ordinal}|{canonical_chunk_text}"
    return hashlib.sha256(key.encode()).hexdigest()


def canonical_chunk_text(text: str, kind: str, overlap_chars: int) -> str:
    """The text with each run of white space as one space, but in code and tables as it stands.

    What such a chunk repeats of its predecessor collapses too, and a line break parts it from what is literal.
    """
    if not _IS_LITERAL[kind]:
        return _collapsed(text)
    overlap = _collapsed(text[:overlap_chars])
    return f"{overlap}\n{text[overlap_chars:]}" if overlap else text[overlap_chars:]


def _collapsed(text: str) -> str:
    flat = " ".join(filter(None, text.split("\n")))
    if "  " not in flat and flat.isprintable():  # of all white space only the space is printable
        return flat.strip(" ")
    return " ".join(text.split())  # the same for any text, but it makes each word anew


def chunk_path(headings: Sequence[str], element: str) -> str:
    """Headings, then the list, table or code block: `/Setup/Linux/ol[1]`. Escaped as in JSON Pointer (RFC 6901)."""
    parts = [heading.replace("~", "~0").replace("/", "~1") for heading in headings]
    if element:
        parts.append(element)
    return "/" + "/".join(parts)


def build_records(
    document: Document,
    passages: Sequence[Passage],
    source: SourceVersion,
    *,
    policy_id: str,
    tokenizer_version: str,
    created_at: str,
    producer: Record,
    form: Form = MARKDOWN,
) -> list[Record]:
    """The chunks of one version of a source, in order."""
    provenance = {
        "source_uri": source.uri,
        "source_checksum": f"sha256:{source.checksum}",
        "parser": {"parser_name": form.parser[0], "parser_version": form.parser[1]},
        "canonicalizer": {"canonicalizer_name": CANONICALIZER_NAME, "canonicalizer_version": policy_id},
        "inputs": [],
    }
    about = _about(document, source, form)
    document_id = source.document_id
    links = links_by_passage(document.links, passages, source.uri)
    records = []
    for ordinal, passage in enumerate(passages):
        headings = list(document.sections[passage.section])
        shown = shown_of(document.text, passage)
        metadata: dict[str, Any] = {
            **about,
            "chunk_path": chunk_path(headings, passage.element),
            "headings_path": headings,
            "ordinal": ordinal,
            "token_count": passage.tokens,
            "kind": passage.kind.value,
            "overlap_chars": shown.overlap_chars,
        }
        if passage.section in document.anchors:
            metadata["anchor"] = document.anchors[passage.section]
        if passage.kind is Kind.CODE and passage.detail:
            metadata["code_language"] = passage.detail
        if passage.kind is Kind.TABLE and passage.part:
            metadata["table_header"] = passage.detail
        if links[ordinal]:
            metadata["links"] = links[ordinal]
        fields: Record = {
            "chunk_index": ordinal,
            "chunk_count": len(passages),
            "source": {"source_uri": source.uri, "source_type": form.source_type},
            "span": {"char_range": {"char_start": shown.start, "char_end": shown.end}, "section": headings},
            "metadata": metadata,
            "canonicalization": {"chunking_policy_id": policy_id},
            "tokens": {"count": passage.tokens, "tokenizer": tokenizer_version},
            "producer": producer,
        }
        if source.tenant is not None:
            fields["tenant_id"] = source.tenant
        canonical = canonical_chunk_text(shown.text, passage.kind.value, shown.overlap_chars)
        records.append(
            new_chunk(
                document_id=document_id,
                text=shown.text,
                provenance=provenance,
                span_key=ordinal,
                created_at=created_at,
                chunk_id=stable_chunk_id(source.tenant, document_id, source.checksum, ordinal, canonical),
                fields=fields,
            )
        )
    return records


def _about(document: Document, source: SourceVersion, form: Form) -> dict[str, Any]:
    """What the document says about itself, and what its file does."""
    about: dict[str, Any] = {}
    name = _name_of(source.uri)
    told = ({"title": name} if name else {}) | document.metadata
    said = {field: carried(value) for field, value in told.items()}
    for field in ("title", "language", "date"):
        if field in said:
            about[field] = said[field]
    if "author" in said:
        about["authors"] = [said["author"]]
    about |= {name: list(items) for name, items in document.lists.items()}
    year = re.match(r"\d{4}(?!\d)", said.get("date", ""))
    if year:
        about["year"] = int(year[0])
    return {**about, "file_type": form.source_type, "mime_type": form.mime_type, "size_bytes": source.size}


def _name_of(uri: str) -> str:
    """What the file is called, without its suffix; a page that stands for its folder is called as that is."""
    folder, _, file = uri.rpartition("/")
    name = _SUFFIX.sub("", file)
    if name.lower() in _OF_FOLDER:
        name = folder.rpartition("/")[2] or name
    return " ".join(canonical_text(name).split())


def links_by_passage(links: Sequence[Link], passages: Sequence[Passage], source_uri: str) -> list[list[dict[str, str]]]:
    """Each link once, with the passage whose own part holds it."""
    found: list[list[dict[str, str]]] = [[] for _ in passages]
    number = 0
    for link in sorted(links, key=lambda link: link.at):
        while number + 1 < len(passages) and passages[number + 1].own_start <= link.at:
            number += 1
        if passages and not is_embedded(link.url):
            found[number].append(_link(link, source_uri))
    return found


def _link(link: Link, source_uri: str) -> dict[str, str]:
    entry = {"url": link.url, "link_type": link.kind.lower()}
    target = target_uri(link.url, LinkKind(link.kind), source_uri)
    if target is not None:
        entry["target_uri"] = target
    return entry
