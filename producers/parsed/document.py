"""A parsed document as parsers give it, read tolerantly: its blocks, tables and images in one reading order.

`docs/seams.md` says which fields are known. A table or an image stands where a block of that type stands, else after
the block that it names, else after the last block of its page, else at the end. A block that does not say its page is
on the page of the last block before it that does.
"""

from bisect import bisect_right
from itertools import accumulate
from typing import Annotated, Any

import msgspec

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import RecordRefused
from chunksink.producers.parsed.blocks import Item, read_block, read_image, read_table, read_where
from chunksink.producers.records.keeping import read_as

Name = Annotated[str, msgspec.Meta(min_length=1)]


class ParsedSource(msgspec.Struct, gc=False, kw_only=True):
    """The file that was parsed; its path is who it is."""

    path: Name
    folder: str | None = None
    type: str | None = None


class ParsedDocument(msgspec.Struct, gc=False, kw_only=True):
    """One document; every group may be absent. `text` stands for blocks where there are none."""

    source: ParsedSource
    doc_id: str | None = None
    blocks: list[dict[str, Any] | str] | None = None
    tables: list[dict[str, Any]] | None = None
    images: list[dict[str, Any]] | None = None
    metadata: dict[str, Any] | None = None
    title: str | None = None
    text: str | None = None


def read_document(record: Record) -> ParsedDocument:
    """The typed view of a record. Raises RecordRefused."""
    document: ParsedDocument = read_as(ParsedDocument, record)
    for name in (document.source.path, document.source.folder or ""):
        if "\x00" in name:
            raise RecordRefused(findings.WRONG_TYPE, "source.path or source.folder holds U+0000")
    return document


def is_parsed(record: Record, *, is_alone: bool) -> bool:
    """Whether a record is one of these and no other JSON; alone, one that lacks what it could say is told so."""
    source = record.get("source")
    says = any(record.get(name) is not None for name in ("blocks", "text", "tables", "images"))
    return isinstance(source, dict) and isinstance(source.get("path"), str) and (is_alone or says)


def items_in_order(document: ParsedDocument) -> list[Item]:
    """Everything that the document says. Raises RecordRefused where a text is no string."""
    blocks = document.blocks or ([document.text] if document.text else [])
    groups = [read_block(block, f"blocks[{number}]") for number, block in enumerate(blocks)]
    pages = _pages(groups)
    following: dict[int, list[Item]] = {}
    for name, read, units in (("tables", read_table, document.tables), ("images", read_image, document.images)):
        for number, unit in enumerate(units or ()):
            following.setdefault(_place_of(unit, pages), []).append(read(unit, f"{name}[{number}]"))
    ordered = list(following.get(-1, ()))
    for number, group in enumerate(groups):
        ordered += [*group, *following.get(number, ())]
    return ordered


def _pages(groups: list[list[Item]]) -> list[int]:
    """For each block the lowest page from it on, so that they rise and the last block up to a page is soon found."""
    pages: list[int] = []
    for first, *_ in groups:
        pages.append(first.where.get("page_number", pages[-1] if pages else 0))
    return list(accumulate(reversed(pages), min))[::-1]


def _place_of(unit: Record, pages: list[int]) -> int:
    """The number of the block that it follows; -1 before all."""
    last = len(pages) - 1
    for name, shift in (("after_block", 0), ("position", -1)):
        number = unit.get(name)
        if isinstance(number, int) and not isinstance(number, bool):
            return min(max(number + shift, -1), last)
    page = read_where(unit).get("page_number")
    return last if page is None else bisect_right(pages, page) - 1
