"""Converts the JSON export of Docling, a tree of items that refer to each other, to a parsed document."""

import re
from collections.abc import Iterator, Sequence
from posixpath import dirname, join, splitext
from typing import Any

import msgspec

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Count, Record
from chunksink.ingest.errors import RecordRefused
from chunksink.ingest.record_fields import first_string, read_as

_MAX_CELLS = 5_000_000
_LISTS = ("groups", "texts", "tables", "pictures", "key_value_items", "form_items", "field_regions", "field_items")


def is_docling(record: Record) -> bool:
    return record.get("schema_name") == "DoclingDocument" and isinstance(record.get("body"), dict)


class Ref(msgspec.Struct):
    pointer: str = msgspec.field(name="$ref")


class Cell(msgspec.Struct, rename={"row": "start_row_offset_idx", "column": "start_col_offset_idx"}):
    row: Count
    column: Count
    row_span: Count = 1
    col_span: Count = 1
    text: str = ""
    column_header: bool = False


class Table(msgspec.Struct):
    table_cells: list[Cell] = []


class Node(msgspec.Struct):
    """An item of the tree: a text, a group, a table, a picture, a form."""

    label: str = ""
    children: list[Ref] = []
    content_layer: str = "body"
    text: str = ""
    orig: str = ""
    level: int = 1
    enumerated: bool = False
    marker: str = ""
    prov: list[dict[str, Any]] = []
    captions: list[Ref] = []
    footnotes: list[Ref] = []
    data: Table | None = None
    graph: Any = None


def to_parsed(record: Record, uri: str) -> tuple[Record, int]:
    """The parsed document, in the folder of `uri`, and how many items were skipped. Raises RecordRefused."""
    tree = _Tree(record)
    file = first_string(record, "origin.filename", "name") or "document"
    source = {"path": join(dirname(uri), file), "type": splitext(file)[1][1:].lower()}
    parser = {"parser_name": "docling", "parser_version": first_string(record, "version") or "unknown"}
    return {"source": source, "blocks": list(tree.blocks()), "provenance": {"parser": parser}}, tree.skipped


class _Tree:
    def __init__(self, record: Record) -> None:
        self._nodes: dict[str, Node] = {"#/body": read_as(Node, record["body"])}
        for name in _LISTS:
            items = record.get(name)
            for number, item in enumerate(items if isinstance(items, list) else ()):
                self._nodes[f"#/{name}/{number}"] = read_as(Node, item)
        # Items that are not visited again. They include captions and footnotes, which are read with their item.
        self._seen = {ref.pointer for node in self._nodes.values() for ref in (*node.captions, *node.footnotes)}
        self.skipped = 0

    def blocks(self) -> Iterator[Record]:
        """The blocks of the parsed document in reading order."""
        waiting = [(Ref("#/body"), 0)]
        while waiting:
            ref, level = waiting.pop()
            if ref.pointer in self._seen:
                continue
            self._seen.add(ref.pointer)
            node = self._node(ref)
            if node.content_layer != "body" or node.graph is not None:
                self.skipped += bool(node.text or node.data or node.graph)
            else:
                pages = [one.get("page_no") for one in node.prov]
                place = {"page": pages[0], "page_end": pages[-1]} if pages else {}
                yield from (block | place for block in self._blocks_of(node, level))
            level += node.label in ("list", "ordered_list")
            children = node.children if node.data is None else []  # the text of a cell already contains the items in it
            waiting += [(child, level) for child in reversed(children)]

    def _blocks_of(self, node: Node, level: int) -> Iterator[Record]:
        """The block of a node itself, with its captions and footnotes."""
        text, caption = self._text(node), self._joined(node.captions)
        if node.data is not None:
            yield _table(node.data.table_cells) | {"caption": caption}
        elif node.label == "picture":
            yield {"type": "image", "caption": caption, "text": text}
        elif node.label in ("title", "section_header", "field_heading") and text:
            yield {"type": "heading", "text": text, "level": 1 if node.label == "title" else node.level + 1}
        elif node.label == "list_item":  # a marker such as `2.` or `(a)` is part of the text
            marker = node.marker if any(map(str.isalnum, node.marker)) else ""
            ordered = node.enumerated and re.fullmatch(r"(\d{1,9}[.)])?", marker) is not None
            yield {"type": "list_item", "text": f"{marker} {text}", "level": level, "ordered": ordered}
        elif text:
            yield {"type": "code" if node.label == "code" else "paragraph", "text": text}
            yield {"type": "paragraph", "text": caption}
        if note := self._joined(node.footnotes):
            yield {"type": "paragraph", "text": note}

    def _joined(self, refs: Sequence[Ref]) -> str:
        return "\n".join(filter(None, map(self._text, map(self._node, refs))))

    def _text(self, node: Node) -> str:
        """The node's text, else its parts joined: Docling splits a line at formatting, links and code."""
        if node.text or node.orig:
            return node.text or node.orig
        if node.label not in ("inline", "picture"):
            return "".join(self._text(one) for one in map(self._node, node.children[:1]) if one.label == "inline")
        texts = []
        for ref in node.children:
            part = self._node(ref)
            if (text := part.text or part.orig) and part.content_layer == "body" and ref.pointer not in self._seen:
                self._seen.add(ref.pointer)
                texts.append(text.strip())
        return re.sub(r" (?=[.,;:!?)\]])", "", " ".join(texts))

    def _node(self, ref: Ref) -> Node:
        if ref.pointer not in self._nodes:
            raise RecordRefused(findings.WRONG_TYPE, f"refers to {ref.pointer:.100}, which is not in its document")
        return self._nodes[ref.pointer]


def _table(cells: Sequence[Cell]) -> Record:
    """A cell is repeated in every row that it spans. Only header cells are also repeated in every column."""
    height = max((cell.row + cell.row_span for cell in cells), default=0)
    width = max((cell.column + cell.col_span for cell in cells), default=0)
    if height * width > _MAX_CELLS:
        reason = f"a table of {height:,} rows and {width:,} columns has more than {_MAX_CELLS:,} cells"
        raise RecordRefused(findings.WRONG_TYPE, reason)
    grid = [[""] * width for _ in range(height)]
    headers = {cell.row + below for cell in cells if cell.column_header for below in range(cell.row_span)}
    for cell in cells:
        span = cell.col_span if cell.column_header else min(cell.col_span, 1)
        for row in range(cell.row, cell.row + cell.row_span):
            grid[row][cell.column : cell.column + span] = [cell.text] * span
    count = next(row for row in range(height + 1) if row not in headers)
    header = [" ".join(dict.fromkeys(filter(None, texts))) for texts in zip(*grid[:count], strict=True)]
    return {"type": "table", "header": header, "rows": grid[count:]}
