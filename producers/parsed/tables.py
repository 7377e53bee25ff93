"""Tables as text: one line a row, parted between rows only, and under their header in every part."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from chunkbus import findings
from chunkbus.chunk import Record
from producers.errors import RecordRefused
from producers.markdown.normalise import clean
from producers.markdown.policy import Policy
from producers.markdown.tokens import Tokenizer


@dataclass(frozen=True)
class TablePart:
    """A part of a table that stands alone: its number, its text, and the rows in it, `[first_row, end_row)`."""

    number: int
    text: str
    first_row: int
    end_row: int


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
    """Header and rows. A header of `true` is the first row; rows that are objects have their keys as a header."""
    rows = fields.get("rows") or []
    if not isinstance(rows, list) or not all(isinstance(row, list | dict) for row in rows):
        raise RecordRefused(findings.WRONG_TYPE, "a table's rows are not a list of lists or objects")
    header = fields.get("header")
    if header is True and rows and isinstance(rows[0], list):
        header, rows = rows[0], rows[1:]
    names = list(header) if isinstance(header, list) else []
    keys = dict.fromkeys(key for row in rows if isinstance(row, dict) for key in row)
    names += [key for key in keys if key not in names]
    return names, [[row.get(name) for name in names] if isinstance(row, dict) else row for row in rows]


def _line(cells: list[Any]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(cell: Any) -> str:
    """A cell on one line: its text, or its value as JSON."""
    if isinstance(cell, dict) and isinstance(cell.get("text"), str):
        cell = cell["text"]
    text = "" if cell is None else cell if isinstance(cell, str) else orjson.dumps(cell).decode()
    return " ".join(clean(text).split()).replace("|", "\\|")
