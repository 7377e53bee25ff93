"""A parsed document as one text with its structure, in the form that the Markdown producer's cutter takes.

Headings bear `#`, list items `-` or their number, code stands between fences, a table is lines of cells. A table that
is too large for a chunk stands as several blocks, each under its header, so that cutting between blocks is enough.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.producers.markdown.document import Block, Document, Kind
from chunksink.producers.markdown.headings import carried
from chunksink.producers.markdown.policy import Policy
from chunksink.producers.markdown.tokens import Tokenizer
from chunksink.producers.parsed.blocks import Item
from chunksink.producers.parsed.tables import cut_table

_MARKER = re.compile(r"(?:[-*+•]|\d{1,9}[.)])[ \t]")
_FENCE = re.compile("`{3,}")
_DEEPEST = 6


@dataclass(frozen=True)
class Stretch:
    """Where a block of the text lies in the file, and what else its item said; `fields` of tables and images only."""

    start: int
    end: int
    where: Record
    kind: str
    fields: Record


@dataclass(frozen=True)
class Rendered:
    """The text with its structure, and a stretch for each of its blocks, in order."""

    document: Document
    stretches: tuple[Stretch, ...]


def render(items: Sequence[Item], policy: Policy, tokenizer: Tokenizer) -> Rendered:
    renderer = _Renderer(policy, tokenizer)
    for item in items:
        renderer.add(item)
    return renderer.rendered()


class _Renderer:
    def __init__(self, policy: Policy, tokenizer: Tokenizer) -> None:
        self._policy = policy
        self._tokenizer = tokenizer
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._stretches: list[Stretch] = []
        self._sections: list[tuple[str, ...]] = [()]
        self._headings: list[tuple[int, str]] = []
        self._elements: dict[str, int] = {}
        self._lists = 0
        self._list: tuple[int, str, bool, int] | None = None  # number, element, ordered, items so far

    def add(self, item: Item) -> None:
        if item.kind == "list_item" and item.text:
            self._add_list_item(item)
            return
        if item.kind != "image" or item.text:
            self._list = None
        if item.kind == "table":
            self._add_table(item)
        elif item.kind == "heading" and item.text:
            self._open_section(item)
            self._append(f"{'#' * min(item.level, _DEEPEST)} {item.text}", item, Kind.PROSE, is_heading=True)
        elif item.kind == "code" and item.text:
            marks = max((len(found[0]) for found in _FENCE.finditer(item.text)), default=2) + 1
            fence = "`" * max(3, marks)
            text = f"{fence}{item.language}\n{item.text}\n{fence}"
            self._append(text, item, Kind.CODE, element=self._next_element("code"), detail=item.language)
        elif item.text:
            self._append(item.text, item, Kind.PROSE, fields=item.fields)
        elif item.kind == "image":
            self._stretches.append(Stretch(self._length, self._length, item.where, item.kind, item.fields))

    def _add_list_item(self, item: Item) -> None:
        if self._list is None or self._list[2] != item.ordered:
            self._lists += 1
            self._list = (self._lists, self._next_element("ol" if item.ordered else "ul"), item.ordered, 0)
        number, element, ordered, count = self._list
        self._list = (number, element, ordered, count + 1)
        indent = "  " * min(max(item.level - 1, 0), _DEEPEST)
        marker = "" if _MARKER.match(item.text) else f"{count + 1}. " if ordered else "- "
        text = indent + marker + item.text.replace("\n", "\n" + indent + "  ")
        self._append(text, item, Kind.PROSE, list_number=number, element=element)

    def _add_table(self, item: Item) -> None:
        element = self._next_element("table")
        about = {name: value for name, value in item.fields.items() if name not in ("rows", "header")}
        for part in cut_table(item.fields, item.text, self._policy, self._tokenizer):
            fields: Record = {"part": part.number, "first_row": part.first_row, "end_row": part.end_row}
            if part.number == 0:
                fields = {**about, **fields}
            detail = part.text.split("\n", 1)[0]
            self._append(part.text, item, Kind.TABLE, element=element, detail=detail, is_whole=True, fields=fields)

    def _append(self, text: str, item: Item, kind: Kind, *, fields: Record | None = None, **about: Any) -> None:
        if self._parts:
            last = self._blocks[-1]
            in_list = last.list_number is not None and last.list_number == about.get("list_number")
            gap = "\n" if in_list else "\n\n"
            self._parts.append(gap)
            self._length += len(gap)
        start, end = self._length, self._length + len(text)
        self._parts.append(text)
        self._length = end
        self._blocks.append(Block(kind, start, end, len(self._sections) - 1, **about))
        self._stretches.append(Stretch(start, end, item.where, item.kind, fields or {}))

    def _open_section(self, item: Item) -> None:
        while self._headings and self._headings[-1][0] >= item.level:
            self._headings.pop()
        self._headings.append((item.level, carried(item.text)))
        self._sections.append(tuple(text for _, text in self._headings))
        self._elements.clear()

    def _next_element(self, name: str) -> str:
        self._elements[name] = self._elements.get(name, 0) + 1
        return f"{name}[{self._elements[name]}]"

    def rendered(self) -> Rendered:
        first = next((text for section in self._sections for text in section), None)
        metadata = {"title": first} if first else {}
        document = Document("".join(self._parts), tuple(self._blocks), tuple(self._sections), (), metadata)
        return Rendered(document, tuple(self._stretches))
