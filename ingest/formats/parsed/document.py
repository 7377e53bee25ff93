"""The types of a parsed document, and the reading order of its elements."""

from bisect import bisect_right
from itertools import accumulate
from posixpath import dirname
from typing import Annotated, Any

import msgspec

from chunksink.chunkbus.chunk import Count, Record
from chunksink.chunkbus.identity import normalise_source
from chunksink.ingest.formats.markdown.normalise import clean
from chunksink.ingest.record_fields import read_as

_DESCRIPTIONS = ("type", "id", "bbox", "text", "language", "caption", "alt", "header", "sheet", "speaker")
_WithoutNul = Annotated[str, msgspec.Meta(pattern="^[^\0]*$")]


class ParsedSource(msgspec.Struct):
    """The file that was parsed; its path is the document's name."""

    path: Annotated[_WithoutNul, msgspec.Meta(min_length=1)]
    folder: _WithoutNul | None = None


class Element(msgspec.Struct, kw_only=True):
    """A block, table or image, or an item of a list. `fields` has all of its fields, even unknown ones."""

    fields: Record = {}
    type: str | None = None
    text: str | None = None
    content: Any = None
    level: int | None = None
    ordered: bool | None = None
    language: str | None = None
    items: "list[Element] | None" = None
    caption: str | None = None
    alt: str | None = None
    header: list[Any] | bool | str | None = None
    rows: list[list[Any] | dict[str, Any]] | None = None
    markdown: str | None = None
    html: str | None = None
    after_block: int | None = None
    page: Count | None = None
    page_number: Count | None = None
    page_end: Count | None = None
    slide: Count | None = None
    sheet: str | None = None

    @property
    def words(self) -> str:
        """`text`, else `content` if it is a string; some parsers write a structure there."""
        text = clean(self.text or "")
        return text if text.strip() or not isinstance(self.content, str) else clean(self.content)

    @property
    def place(self) -> Record:
        """Its place in the file, as a chunk's locator."""
        page = self.page_number if self.page is None else self.page
        place = {"page_number": page, "page_end": self.page_end, "slide_number": self.slide, "sheet_name": self.sheet}
        return {name: value for name, value in place.items() if value is not None and value != ""}

    @property
    def may_have_text(self) -> bool:
        """Whether a field other than `_DESCRIPTIONS` has a string, a list or an object."""
        others = (value for name, value in self.fields.items() if name not in _DESCRIPTIONS)
        return any(isinstance(value, str | list | dict) and value for value in others)


class ParsedDocument(msgspec.Struct, kw_only=True):
    """`text` is used only if there are no blocks."""

    source: ParsedSource
    doc_id: str | None = None
    title: str | None = None
    metadata: Record | None = None
    blocks: list[Element] = []
    tables: list[Element] = []
    images: list[Element] = []
    text: str | None = None

    @property
    def traversal_key(self) -> bytes:
        """Sorts by folder, part by part, then by path. The separator NUL sorts before any other character."""
        path = normalise_source(self.source.path)
        folder = normalise_source(self.source.folder) if self.source.folder else dirname(path)
        return "\0".join([*filter(None, folder.split("/")), "", path]).encode()

    @property
    def elements(self) -> list[Element]:
        """All elements in reading order. A block without a page has the page of the block before it."""
        blocks = self.blocks or [Element(text=self.text)]
        pages: list[int] = []
        for block in blocks:
            pages.append(block.place.get("page_number", pages[-1] if pages else 0))
        # Ascending, so that bisection finds the last block of a page.
        pages = list(accumulate(reversed(pages), min))[::-1]
        following: dict[int, list[Element]] = {}
        for element in (*self.tables, *self.images):
            page = element.place.get("page_number", pages[-1])
            before = bisect_right(pages, page) - 1 if element.after_block is None else element.after_block
            following.setdefault(min(max(before, -1), len(blocks) - 1), []).append(element)
        ordered = following.get(-1, [])
        for number, block in enumerate(blocks):
            ordered += [block, *following.get(number, ())]
        return ordered


def read_document(record: Record) -> ParsedDocument:
    """Raises RecordRefused if a field has the wrong type."""
    lists = {}
    for name, about in (("blocks", {}), ("tables", {"type": "table"}), ("images", {"type": "image"})):
        items = record.get(name) or []
        lists[name] = [_with_fields(item) | about for item in items] if isinstance(items, list) else items
    document: ParsedDocument = read_as(ParsedDocument, record | lists)
    return document


def _with_fields(item: Any) -> Record:
    if not isinstance(item, dict):
        return {"text": item}
    items = item.get("items")
    return {**item, "fields": item, "items": [_with_fields(one) for one in items] if isinstance(items, list) else None}
