"""Tables as text: one line a row, parted between rows only, and under their header in every part."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import RecordRefused, SourceFailed
from chunksink.producers.html import document_of
from chunksink.producers.markdown.normalise import clean
from chunksink.producers.markdown.policy import Policy
from chunksink.producers.markdown.tokens import Tokenizer

_LINES = ("markdown", "text", "content")
_BETWEEN_CELLS = re.compile(r"(?<!\\)\|")
_BELOW_HEADER = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")


@dataclass(frozen=True)
class TablePart:
    """A part of a table that stands alone: its number, its text, and the rows in it, `[first_row, end_row)`."""

    number: int
    text: str
    first_row: int
    end_row: int


def find_rows(unit: Record) -> Record:
    """The unit with its `rows`, and its `header` where that is found with them, in place of the field that has them.

    `rows`, `cells` as a list of lists, lines of text or Markdown, `html`: the first of these that holds something.
    """
    if unit.get("rows"):
        return unit
    cells = unit.get("cells")
    if isinstance(cells, list) and cells and all(isinstance(row, list) for row in cells):
        return {**_without(unit, "cells"), "rows": cells}
    for name in _LINES:
        if isinstance(lines := unit.get(name), str) and lines.strip():
            return {**_without(unit, name), **_rows_of_lines(lines)}
    if isinstance(html := unit.get("html"), str) and html.strip():
        return {**_without(unit, "html"), **_rows_of_lines(_markdown_of(html))}
    return unit


def _without(unit: Record, name: str) -> Record:
    return {key: value for key, value in unit.items() if key != name}


def _rows_of_lines(text: str) -> Record:
    """A row a line. Lines of Markdown are parted into cells, and the first is the header where the second says so."""
    lines = [line.strip() for line in clean(text).splitlines() if line.strip()]
    rows = [_cells_of(line) for line in lines]
    if len(lines) > 1 and "|" in lines[0] and _BELOW_HEADER.fullmatch(lines[1]):
        return {"header": rows[0], "rows": rows[2:]}
    return {"rows": rows}


def _cells_of(line: str) -> list[str]:
    if not line.startswith("|"):
        return [line]
    cells = [cell.strip().replace("\\|", "|") for cell in _BETWEEN_CELLS.split(line[1:])]
    return cells if cells[-1] else cells[:-1]


def _markdown_of(html: str) -> str:
    try:
        return document_of(html).text
    except SourceFailed as failed:
        raise RecordRefused(failed.code, f"the html of a table {failed.reason}") from failed


def cut_table(fields: Record, caption: str, policy: Policy, tokenizer: Tokenizer) -> Iterator[TablePart]:
    """The table's parts: one where it fits `soft_max`, else as many rows as reach `target` with their header.

    Caption and header head every part, as long as they leave half of the room to the rows. A row is never cut, so a
    part of one huge row may be over the hard maximum.
    """
    header, rows = _read_rows(fields)
    lines = [_line(row) for row in rows]
    head = [*([caption] if caption else []), *([_line(header), _line(["---"] * len(header))] if header else [])]
    sizes = [tokenizer.count(line) for line in lines]
    head_size = tokenizer.count("\n".join(head))
    if head_size + sum(sizes) <= policy.soft_max:
        if head or lines:
            yield TablePart(0, "\n".join([*head, *lines]), 0, len(lines))
        return
    repeated = head if head_size <= policy.target // 2 else []
    start = number = 0
    while start < len(lines) or number == 0:
        above = repeated if number else head
        size = head_size if above else 0
        end = start
        while end < len(lines) and (end == start or size + sizes[end] <= policy.target):
            size += sizes[end]
            end += 1
        yield TablePart(number, "\n".join([*above, *lines[start:end]]), start, end)
        start, number = end, number + 1


def _read_rows(fields: Record) -> tuple[list[Any], list[list[Any]]]:
    """Header and rows. A header of `true` is the first row; rows that are objects have their keys as a header, after
    the names that the header has for them."""
    rows = fields.get("rows") or []
    if not isinstance(rows, list) or not all(isinstance(row, list | dict) for row in rows):
        raise RecordRefused(findings.WRONG_TYPE, "a table's rows are not a list of lists or objects")
    header = fields.get("header")
    if header is True and rows and isinstance(rows[0], list):
        header, rows = rows[0], rows[1:]
    elif isinstance(header, str):
        header = _cells_of(header.strip())
    elif not (header is None or isinstance(header, bool | list)):
        raise RecordRefused(findings.WRONG_TYPE, "a table's header is neither a list of cells nor text")
    cells = list(header) if isinstance(header, list) else []
    names = [_text_of(cell) for cell in cells]
    keys = dict.fromkeys(key for row in rows if isinstance(row, dict) for key in row)
    added = [key for key in keys if key not in names]
    names += added
    return [*cells, *added], [[row.get(name) for name in names] if isinstance(row, dict) else row for row in rows]


def _line(cells: list[Any]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(cell: Any) -> str:
    """A cell on one line."""
    return " ".join(_text_of(cell).split()).replace("|", "\\|")


def _text_of(cell: Any) -> str:
    """Its text, or its value as JSON. A cell of a header is so called by rows that are objects."""
    if isinstance(cell, dict) and isinstance(cell.get("text"), str):
        cell = cell["text"]
    return clean("" if cell is None else cell if isinstance(cell, str) else orjson.dumps(cell).decode())
