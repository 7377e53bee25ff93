"""Blocks, tables and images of a parsed document as items. Parsers call their fields by several names.

What an item says under none of them is told by the item itself, so that no text vanishes without a word.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import RecordRefused
from chunksink.producers.markdown.normalise import clean
from chunksink.producers.parsed.tables import find_rows

HEADINGS = {"heading": 0, "title": 1, "section_header": 0, **{f"h{level}": level for level in range(1, 7)}}
_LISTS = ("list_item", "bullet", "list")
_CODE = ("code", "code_block", "preformatted")
TABLES = ("table",)
IMAGES = ("image", "picture", "figure")
_COUNTS = {"page_number": ("page", "page_number"), "page_end": ("page_end",), "slide_number": ("slide", "slide_number")}
_NAMES = {"sheet_name": ("sheet", "sheet_name"), "speaker": ("speaker",)}
_TIMES = {"timestamp_start": ("timestamp_start", "start"), "timestamp_end": ("timestamp_end", "end")}
# Kind, place, name and layout say nothing that could be missed.
NO_TEXT = frozenset(("type", "level", "ordered", "language", "id", "bbox", "after_block", "position"))
NO_TEXT |= {name for table in (_COUNTS, _NAMES, _TIMES) for names in table.values() for name in names}
_READ_OF_UNITS = ("header", "caption", "alt")


@dataclass(frozen=True)
class Item:
    """One unit in reading order. `where` is its place in the file, by the names that a chunk's locator has.

    `unread` names the fields of a unit of which nothing was read, as `blocks[3]: words, spans`.
    """

    kind: str
    text: str = ""
    level: int = 0
    ordered: bool = False
    language: str = ""
    where: Record = field(default_factory=dict)
    fields: Record = field(default_factory=dict)
    unread: str = ""


def read_block(block: Record | str, place: str) -> list[Item]:
    """At least one item; several of a block that holds a whole list. Raises RecordRefused where a text is no string."""
    if isinstance(block, str):
        return [Item("paragraph", clean(block).strip())]
    type_ = str(block.get("type") or "paragraph").lower()
    if type_ in TABLES:
        return [read_table(block, place)]
    if type_ in IMAGES:
        return [read_image(block, place)]
    if isinstance(block.get("items"), list):
        head = [Item("paragraph", text, where=read_where(block))] if (text := _text(block, place).strip()) else []
        return head + list(_list_items(block, place, 0)) or [Item("paragraph", where=read_where(block))]
    return [_read_plain(block, type_, place)]


def _read_plain(block: Record, type_: str, place: str) -> Item:
    text = _text(block, place)
    where = read_where(block)
    level = block.get("level")
    number = level if isinstance(level, int) and level > 0 else 0
    if not text.strip():
        return Item("paragraph", where=where, unread=_unread(block, place))
    if type_ in HEADINGS:
        return Item("heading", " ".join(text.split()), HEADINGS[type_] or number or 1, where=where)
    if type_ in _LISTS:
        return Item("list_item", text.strip(), number, ordered=block.get("ordered") is True, where=where)
    if type_ in _CODE:
        language = block.get("language")
        return Item("code", text.strip("\n"), language=language if isinstance(language, str) else "", where=where)
    return Item("paragraph", text.strip(), where=where)


def _list_items(block: Record, place: str, level: int) -> Iterator[Item]:
    """The items of a list, and of the lists in them."""
    where, ordered = read_where(block), block.get("ordered") is True
    for number, entry in enumerate(block["items"]):
        of_entry = f"{place}.items[{number}]"
        said = entry if isinstance(entry, dict) else {"text": entry}
        text = _text(said, of_entry).strip()
        has_items = isinstance(said.get("items"), list)
        unread = "" if text or has_items else _unread(said, of_entry)
        yield Item("list_item", text, level + 1, ordered, where=where | read_where(said), unread=unread)
        if has_items:
            yield from _list_items({"ordered": ordered, **said}, of_entry, level + 1)


def read_table(unit: Record, place: str) -> Item:
    """`fields` has its `rows` and `header`, under whatever name they stand."""
    fields = find_rows(unit)
    is_read = fields.get("rows") or isinstance(fields.get("header"), list)
    unread = "" if is_read else _unread(unit, place)
    return Item("table", _string(unit, "caption", place).strip(), where=read_where(unit), fields=fields, unread=unread)


def read_image(unit: Record, place: str) -> Item:
    said = [*(_string(unit, name, place).strip() for name in ("caption", "alt")), _text(unit, place).strip()]
    return Item("image", "\n".join(dict.fromkeys(filter(None, said))), where=read_where(unit), fields=unit)


def _text(unit: Record, place: str) -> str:
    """Of `content` only a string: other parsers have a structure there."""
    text = _string(unit, "text", place)
    content = unit.get("content")
    return text if text.strip() or not isinstance(content, str) else clean(content)


def is_text(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


def _string(unit: Record, name: str, place: str) -> str:
    value = unit.get(name)
    if value is not None and not isinstance(value, str):
        raise RecordRefused(findings.WRONG_TYPE, f"{place}.{name} is {type(value).__name__}, not a string")
    return clean(value or "")


def _unread(unit: Record, place: str) -> str:
    names = [
        name
        for name, value in unit.items()
        if name not in NO_TEXT and name not in _READ_OF_UNITS and _says_something(value)
    ]
    return f"{place}: {', '.join(names[:8]):.200}" if names else ""


def _says_something(value: Any) -> bool:
    return bool(value.strip() if isinstance(value, str) else isinstance(value, list | dict) and value)


def read_where(unit: Record) -> Record:
    """Where a unit lies. A value of another type is none: a block without its page still says something."""
    found: Record = {}
    for accepts, table in ((_is_count, _COUNTS), (is_text, _NAMES), (_is_time, _TIMES)):
        for locator, names in table.items():
            value = next((unit[name] for name in names if accepts(unit.get(name))), None)
            if value is not None:
                found[locator] = value
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
