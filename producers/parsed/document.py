"""A parsed document as parsers give it, read tolerantly: its blocks, tables and images in one reading order.

`docs/seams.md` says which fields are known. A table or an image stands where a block of that type stands, else after
the block that it names, else after the last block of its page, else at the end. A block that does not say its page is
on the page of the last block before it that does.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Annotated, Any

import msgspec

from chunkbus import findings
from chunkbus.chunk import Record
from producers.errors import RecordRefused
from producers.markdown.normalise import clean
from producers.records.keeping import read_as

Name = Annotated[str, msgspec.Meta(min_length=1)]

HEADINGS = {"heading": 0, "title": 1, "section_header": 0, **{f"h{level}": level for level in range(1, 7)}}
_LISTS = ("list_item", "bullet", "list")
_CODE = ("code", "code_block", "preformatted")
_TABLES = ("table",)
_IMAGES = ("image", "picture", "figure")
_COUNTS = {"page_number": ("page", "page_number"), "page_end": ("page_end",), "slide_number": ("slide", "slide_number")}
_NAMES = {"sheet_name": ("sheet", "sheet_name"), "speaker": ("speaker",)}
_TIMES = {"timestamp_start": ("timestamp_start", "start"), "timestamp_end": ("timestamp_end", "end")}


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


@dataclass(frozen=True)
class Item:
    """One unit in reading order. `where` is its place in the file, by the names that a chunk's locator has."""

    kind: str
    text: str = ""
    level: int = 0
    ordered: bool = False
    language: str = ""
    where: Record = field(default_factory=dict)
    fields: Record = field(default_factory=dict)


def read_document(record: Record) -> ParsedDocument:
    """The typed view of a record. Raises RecordRefused."""
    document: ParsedDocument = read_as(ParsedDocument, record)
    for name in (document.source.path, document.source.folder or ""):
        if "\x00" in name:
            raise RecordRefused(findings.WRONG_TYPE, "source.path or source.folder holds U+0000")
    return document


def items_in_order(document: ParsedDocument) -> list[Item]:
    """Everything that the document says. Raises RecordRefused where a text is no string."""
    blocks = document.blocks or ([document.text] if document.text else [])
    items = [_read_block(block, f"blocks[{number}]") for number, block in enumerate(blocks)]
    pages = _pages(items)
    following: dict[int, list[Item]] = {}
    for name, kind, group in (("tables", "table", document.tables), ("images", "image", document.images)):
        for number, unit in enumerate(group or ()):
            item = _read_unit(unit, kind, f"{name}[{number}]")
            following.setdefault(_place_of(unit, pages), []).append(item)
    ordered = list(following.get(-1, ()))
    for number, item in enumerate(items):
        ordered += [item, *following.get(number, ())]
    return ordered


def _pages(items: list[Item]) -> list[int]:
    """For each block the lowest page from it on, so that they rise and the last block up to a page is soon found."""
    pages: list[int] = []
    for item in items:
        pages.append(item.where.get("page_number", pages[-1] if pages else 0))
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


def _read_block(block: Record | str, place: str) -> Item:
    if isinstance(block, str):
        return Item("paragraph", clean(block).strip())
    type_ = str(block.get("type") or "paragraph").lower()
    if type_ in _TABLES and "rows" in block:
        return _read_unit(block, "table", place)
    if type_ in _IMAGES:
        return _read_unit(block, "image", place)
    text = _string(block, "text", place)
    where = read_where(block)
    level = block.get("level")
    number = level if isinstance(level, int) and level > 0 else 0
    if type_ in HEADINGS:
        return Item("heading", " ".join(text.split()), HEADINGS[type_] or number or 1, where=where)
    if type_ in _LISTS:
        return Item("list_item", text.strip(), number, ordered=block.get("ordered") is True, where=where)
    if type_ in _CODE:
        language = block.get("language")
        return Item("code", text.strip("\n"), language=language if isinstance(language, str) else "", where=where)
    if type_ in _TABLES:
        return Item("table", where=where, fields={"rows": [[line] for line in text.splitlines() if line.strip()]})
    return Item("paragraph", text.strip(), where=where)


def _read_unit(unit: Record, kind: str, place: str) -> Item:
    said = [_string(unit, name, place).strip() for name in ("caption", "alt")]
    if kind == "table":
        return Item(kind, said[0], where=read_where(unit), fields=unit)
    described = "\n".join(dict.fromkeys(text for text in (*said, _string(unit, "text", place).strip()) if text))
    return Item(kind, described, where=read_where(unit), fields=unit)


def _string(unit: Record, name: str, place: str) -> str:
    value = unit.get(name)
    if value is not None and not isinstance(value, str):
        raise RecordRefused(findings.WRONG_TYPE, f"{place}.{name} is {type(value).__name__}, not a string")
    return clean(value or "")


def read_where(unit: Record) -> Record:
    """Where a unit lies. A value of another type is none: a block without its page still says something."""
    found: Record = {}
    for accepts, table in ((_is_count, _COUNTS), (_is_name, _NAMES), (_is_time, _TIMES)):
        for locator, names in table.items():
            value = next((unit[name] for name in names if accepts(unit.get(name))), None)
            if value is not None:
                found[locator] = value
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
