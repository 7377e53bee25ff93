"""Makes canonical chunks from passages: text, ids by the chunking specification, metadata, links, provenance."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from os.path import commonprefix
from typing import NamedTuple

from chunksink.chunkbus.canonical import canonical_text
from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.identity import derive_lasting_chunk_ids, resolve_parent_id
from chunksink.ingest.formats.markdown import tokens
from chunksink.ingest.formats.markdown.addresses import LinkKind, is_embedded, target_uri
from chunksink.ingest.formats.markdown.document import Kind, Link, Structure
from chunksink.ingest.formats.markdown.normalise import one_line, shortened
from chunksink.ingest.formats.markdown.passages import Passage
from chunksink.ingest.formats.markdown.policy import CANONICALIZER_NAME, DEFAULT_TENANT, Policy
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import Source
from chunksink.ingest.record_fields import new_provenance

_FOLDER_PAGES = ("index", "_index", "readme")
_YEAR = re.compile(r"\d{4}(?!\d)")
_INDENTATION = re.compile(r"^[ \t]*(?=\S)", re.MULTILINE)
_LITERAL = (Kind.CODE.value, Kind.TABLE.value)


Part = tuple[str, str, int]
"""Text, kind and `overlap_chars` of a chunk."""


class PassageText(NamedTuple):
    """The text of a chunk. `start` is its first visible character in the document, `end` is after the last."""

    text: str
    overlap_chars: int
    start: int
    end: int


def build_records(
    document: Structure, passages: Sequence[Passage], source: Source, format_: Format, policy: Policy
) -> Iterator[Record]:
    """The chunks of one version of a source, in order."""
    canonicalizer = (CANONICALIZER_NAME, policy.policy_id)
    checksum = f"sha256:{source.checksum}"
    provenance = new_provenance(("source_uri", source.uri), checksum, format_.parser, canonicalizer)
    about = _about(document, source, format_)
    document_id = source.document_id
    links = links_by_passage(document.links, passages, source.uri)
    texts = [text_of_passage(document.text, passage) for passage in passages]
    parent_id = resolve_parent_id(None, source.uri, document_id)
    parts = ((one.text, each.kind.value, one.overlap_chars) for each, one in zip(passages, texts, strict=True))
    ids = chunk_ids(policy, source.tenant, parent_id, document_id, source.checksum, parts)
    for ordinal, (passage, shown, chunk_id) in enumerate(zip(passages, texts, ids, strict=True)):
        headings = list(document.sections[passage.section])
        fields: Record = {
            "chunk_index": ordinal,
            "chunk_count": len(passages),
            "source": {"source_uri": source.uri, "source_type": format_.source_type},
            "metadata": about | _metadata(document, passage, ordinal, shown, links[ordinal]),
            "producer": source.producer,
            **place_and_size(passage, shown, headings, policy.policy_id),
            **({} if source.tenant is None else {"tenant_id": source.tenant}),
        }
        yield new_chunk(
            document_id=document_id,
            text=shown.text,
            provenance=provenance,
            span_key=ordinal,
            created_at=source.created_at,
            chunk_id=chunk_id,
            fields=fields,
            keeps_indentation=passage.kind is Kind.CODE,
        )


def place_and_size(passage: Passage, shown: PassageText, headings: list[str], policy_id: str) -> Record:
    """The place and the size of a passage, as fields of its chunk."""
    return {
        "span": {"char_range": {"char_start": shown.start, "char_end": shown.end}, "section": headings},
        "canonicalization": {"chunking_policy_id": policy_id},
        "tokens": {"count": passage.tokens, "tokenizer": tokens.VERSION},
    }


def chunk_ids(
    policy: Policy, tenant: str | None, parent_id: str, document_id: str, version: str, parts: Iterable[Part]
) -> Iterator[str]:
    """The ids of all chunks of a document in order, by the formula of the chunking specification (section 7)."""
    if policy.ids_survive_edits:
        yield from derive_lasting_chunk_ids(tenant, parent_id, (text for text, _, _ in parts))
        return
    for ordinal, part in enumerate(parts):
        key = f"{tenant or DEFAULT_TENANT}|{document_id}|{version}|{ordinal}|{canonical_chunk_text(*part)}"
        yield hashlib.sha256(key.encode()).hexdigest()


def canonical_chunk_text(text: str, kind: str, overlap_chars: int) -> str:
    """The text with runs of white space collapsed, except in code and tables.

    The overlap above code or a table is collapsed too, and ends with a line break.
    """
    if kind not in _LITERAL:
        return one_line(text)
    overlap = one_line(text[:overlap_chars])
    return f"{overlap}\n{text[overlap_chars:]}" if overlap else text[overlap_chars:]


def chunk_path(headings: Sequence[str], element: str) -> str:
    """Headings, then the list, table or code block: `/Setup/Linux/ol[1]`. Escaped as in JSON Pointer (RFC 6901)."""
    parts = [heading.replace("~", "~0").replace("/", "~1") for heading in headings]
    return "/" + "/".join([*parts, element] if element else parts)


def links_by_passage(links: Sequence[Link], passages: Sequence[Passage], source_uri: str) -> list[list[dict[str, str]]]:
    """Each link once, as metadata of the passage whose own part contains it."""
    found: list[list[dict[str, str]]] = [[] for _ in passages]
    number = 0
    for link in sorted(links, key=lambda link: link.at):
        while number + 1 < len(passages) and passages[number + 1].own_start <= link.at:
            number += 1
        if passages and not is_embedded(link.url):
            entry = {"url": link.url, "link_type": link.kind.lower()}
            target = target_uri(link.url, LinkKind(link.kind), source_uri)
            found[number].append(entry if target is None else entry | {"target_uri": target})
    return found


def text_of_passage(text: str, passage: Passage) -> PassageText:
    """The passage without its common indentation; a later part of a table gets the table's header.

    To strip only the first line would change the meaning of code and nested items. If the first line is still indented,
    it stays so in code. Code and tables are unindented separately from the overlap above them.
    """
    start, own_start, end = passage.start, passage.own_start, passage.end
    begin = _line_start(text, own_start if passage.part == 0 and passage.kind.is_literal else start)
    above, moved = text[start:begin], text[begin:end]
    has_margin = moved.lstrip("\n")[:1] in (" ", "\t")
    margin = commonprefix(_INDENTATION.findall(moved)) if has_margin else ""  # noqa: RUF071 (not paths)
    whole = above + _without_margin(margin, moved)
    overlap = above + _without_margin(margin, text[begin:own_start]) if own_start > start else ""
    stripped = len(whole) - len(whole.lstrip())
    if passage.kind is Kind.CODE and not above:
        stripped = _line_start(whole, stripped)
    shown, raw = whole[stripped:].rstrip(), text[start:end]
    kept = len(shown) - len(shown.lstrip())
    return PassageText(
        passage.header + shown,
        len(passage.header) + max(0, len(overlap) - stripped),
        start + len(raw) - len(raw.lstrip()) - kept,
        start + len(raw.rstrip()),
    )


def _line_start(text: str, at: int) -> int:
    """The beginning of the line, if only indentation comes before `at`; else `at`."""
    begin = at
    while begin and text[begin - 1] in " \t":
        begin -= 1
    return begin if not begin or text[begin - 1] == "\n" else at


def _without_margin(margin: str, lines: str) -> str:
    return lines.removeprefix(margin).replace(f"\n{margin}", "\n") if margin else lines


def _metadata(
    document: Structure, passage: Passage, ordinal: int, shown: PassageText, links: list[dict[str, str]]
) -> Record:
    headings = list(document.sections[passage.section])
    optional = {
        "anchor": document.anchors.get(passage.section),
        "code_language": passage.detail if passage.kind is Kind.CODE else "",
        "table_header": passage.detail if passage.kind is Kind.TABLE and passage.part else "",
        "links": links,
    }
    return {
        "chunk_path": chunk_path(headings, passage.element),
        "headings_path": headings,
        "ordinal": ordinal,
        "token_count": passage.tokens,
        "kind": passage.kind.value,
        "overlap_chars": shown.overlap_chars,
        **{name: value for name, value in optional.items() if value},
    }


def _about(document: Structure, source: Source, format_: Format) -> Record:
    """Metadata of the document and of its file."""
    name = _file_title(source.uri, format_)
    values: Record = {**({"title": name} if name else {}), **document.metadata}
    order = (key for key in ("title", "language", "date", *values) if key in values)
    about = {key: shortened(values[key]) if isinstance(values[key], str) else values[key] for key in order}
    if year := _YEAR.match(values.get("date", "")):
        about["year"] = int(year[0])
    return about | {"file_type": format_.source_type, "mime_type": format_.mime_type, "size_bytes": source.size}


def _file_title(uri: str, format_: Format) -> str:
    """The file's name, without its suffix if that is one of the format's; for a page such as README, the folder's
    name."""
    folder, _, file = uri.rpartition("/")
    name, dot, suffix = file.rpartition(".")
    if not name or f"{dot}{suffix}".lower() not in (*format_.suffixes, *format_.suffixes_if_asked):
        name = file
    if name.lower() in _FOLDER_PAGES:
        name = folder.rpartition("/")[2] or name
    return one_line(canonical_text(name))
