"""Renders a parsed document as one text with its structure, for `passages.cut`."""

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any, NamedTuple

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.formats.html import html_to_markdown
from chunksink.ingest.formats.markdown import tokens
from chunksink.ingest.formats.markdown.document import Block, Kind, Outline, Structure
from chunksink.ingest.formats.markdown.normalise import clean, one_line, shortened
from chunksink.ingest.formats.markdown.policy import Policy
from chunksink.ingest.formats.parsed.document import Element

_LEVELS = {"heading": 0, "section_header": 0, "title": 1, **{f"h{level}": level for level in range(1, 7)}}
_CELLS = ("header", "rows", "markdown", "text", "content", "html")
_MARKER = re.compile(r"(?:[-*+•]|\d{1,9}[.)])[ \t]")
_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_FENCE = re.compile("`{3,}")
_DEEPEST = 6


class Stretch(NamedTuple):
    """The text `[start, end)` of an element, its place in the file, and the metadata of a table or an image."""

    start: int
    end: int
    place: Record
    metadata: Record


class Renderer:
    """Takes elements in order. `document()` returns the text with its structure, `stretches` the elements' places."""

    def __init__(self, policy: Policy) -> None:
        self.stretches: list[Stretch] = []
        self._policy = policy
        self._text = StringIO()
        self._blocks: list[Block] = []
        self._outline = Outline()
        self._lists = 0
        self._list: tuple[str, str, int] | None = None  # kind, element, items so far

    def add(self, element: Element) -> bool:
        """Adds an element; returns whether it has a text or metadata."""
        kind, text, before = (element.type or "").lower(), element.words.strip(), len(self.stretches)
        if kind == "image":
            self._add_image(element)
        elif kind == "table":
            self._add_table(element)
        elif element.items is not None:
            if text:
                self._add(text, element.place)
            self._add_items(element.items, 1, element.ordered, element.place)
        elif kind in ("list_item", "list"):
            self._add_list_item(text, element.level or 0, element.ordered, element.place)
        elif kind in _LEVELS and text:
            self._add_heading(one_line(text), _LEVELS[kind] or element.level or 1, element.place)
        elif kind == "code" and text:
            self._add_code(element.words.strip("\n"), element.language or "", element.place)
        else:
            self._add(text, element.place)
        return len(self.stretches) > before

    def document(self) -> Structure:
        return Structure(self._text.getvalue(), tuple(self._blocks), tuple(self._outline.sections), (), {})

    def _add(
        self, text: str, place: Record, metadata: Record | None = None, kind: Kind = Kind.PROSE, **about: Any
    ) -> None:
        """Appends a block if there is text. An image without text adds only a stretch."""
        list_number = about.get("list_number")
        if list_number is None and (text or not metadata):
            self._list = None
        if text and self._blocks:
            self._text.write("\n" if list_number and list_number == self._blocks[-1].list_number else "\n\n")
        start = self._text.tell()
        end = start + self._text.write(text)
        if text:
            self._blocks.append(Block(kind, start, end, self._outline.section, **about))
        if text or metadata:
            self.stretches.append(Stretch(start, end, place, metadata or {}))

    def _add_heading(self, text: str, level: int, place: Record) -> None:
        self._outline.open_section(level, shortened(text))
        self._add(f"{'#' * min(level, _DEEPEST)} {text}", place, is_heading=True)

    def _add_code(self, code: str, language: str, place: Record) -> None:
        fence = "`" * (max(map(len, _FENCE.findall(code)), default=2) + 1)
        text, element = f"{fence}{language}\n{code}\n{fence}", self._outline.next_element("code")
        self._add(text, place, kind=Kind.CODE, element=element, detail=language)

    def _add_items(self, items: list[Element], level: int, is_ordered: bool | None, place: Record) -> None:
        """Adds the items of a list and of its nested lists."""
        for item in items:
            at = place | item.place
            self._add_list_item(item.words.strip(), level, is_ordered, at)
            self._add_items(item.items or [], level + 1, is_ordered if item.ordered is None else item.ordered, at)

    def _add_list_item(self, text: str, level: int, is_ordered: bool | None, place: Record) -> None:
        kind = "ol" if is_ordered else "ul"
        if not text:
            self._list = None
            return
        if self._list is None or self._list[0] != kind:
            self._lists += 1
            self._list = (kind, self._outline.next_element(kind), 0)
        _, element, count = self._list
        self._list = (kind, element, count + 1)
        indent = "  " * min(max(level - 1, 0), _DEEPEST)
        marker = "" if _MARKER.match(text) else f"{count + 1}. " if is_ordered else "- "
        text = indent + marker + text.replace("\n", f"\n{indent}  ")
        self._add(text, place, list_number=self._lists, element=element)

    def _add_table(self, table: Element) -> None:
        self._list, element = None, self._outline.next_element("table")
        about = {name: value for name, value in table.fields.items() if name not in _CELLS}
        for part, (text, first, end) in enumerate(_split_table(table, self._policy)):
            metadata = {"table": {**({} if part else about), "part": part, "first_row": first, "end_row": end}}
            detail = text.split("\n", 1)[0]
            self._add(text, table.place, metadata, Kind.TABLE, element=element, detail=detail, is_whole=True)

    def _add_image(self, image: Element) -> None:
        texts = (clean(text or "").strip() for text in (image.caption, image.alt, image.words))
        self._add("\n".join(dict.fromkeys(filter(None, texts))), image.place, {"images": [image.fields]})


def _split_table(table: Element, policy: Policy) -> Iterator[tuple[str, int, int]]:
    """The text and rows `[first, end)` of each part: one part if the table fits `soft_max`, else parts up to `target`.

    Every part repeats caption and header if they take at most half of `target`. Rows, captions and headers are never
    cut, so a part may exceed the hard maximum.
    """
    header, rows = _table_lines(table)
    head = [*filter(None, [clean(table.caption or "").strip()]), *header]
    if not head and not rows:
        return
    sizes = [tokens.count(line) for line in rows]
    head_size = tokens.count("\n".join(head))
    most = policy.soft_max if head_size + sum(sizes) <= policy.soft_max else policy.target
    start = end = 0
    while start < len(rows) or start == 0:
        above = head if start == 0 or head_size <= policy.target // 2 else []
        size = head_size if above else 0
        while end < len(rows) and (end == start or size + sizes[end] <= most):
            size += sizes[end]
            end += 1
        yield "\n".join([*above, *rows[start:end]]), start, end
        start = max(end, 1)


def _table_lines(table: Element) -> tuple[list[str], list[str]]:
    """Header and rows. `header: true` means the first row. If rows are objects, their keys are added to the header."""
    header: Any = table.header
    rows = list(table.rows or ())
    lines: list[str] = []
    if not rows:
        text = clean(table.markdown or table.words or (html_to_markdown(table.html) if table.html else ""))
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if len(lines) > 1 and "|" in lines[0] and _RULE.fullmatch(lines[1]):
            columns = lines[1].strip("|").count("|") + 1
            return [lines[0], _line(["---"] * columns)], lines[2:]
    elif header is True and isinstance(rows[0], list):
        header = rows.pop(0)
    names = [_text_of(cell) for cell in header] if isinstance(header, list) else []
    names += dict.fromkeys(key for row in rows if isinstance(row, dict) for key in row if key not in names)
    cells = ([row.get(name) for name in names] if isinstance(row, dict) else row for row in rows)
    return ([_line(names), _line(["---"] * len(names))] if names else []), [*lines, *map(_line, cells)]


def _line(cells: list[Any]) -> str:
    return "| " + " | ".join(one_line(_text_of(cell)).replace("|", "\\|") for cell in cells) + " |"


def _text_of(cell: Any) -> str:
    """The text of a cell, or its value as JSON."""
    if isinstance(cell, dict) and isinstance(cell.get("text"), str):
        cell = cell["text"]
    return clean("" if cell is None else cell if isinstance(cell, str) else orjson.dumps(cell).decode())
