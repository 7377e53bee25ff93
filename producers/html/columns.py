"""A table is as wide as its rows need: `colspan="100"` says no more than "all columns"."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from chunksink.producers.html.tags import Element

_CELLS = ("td", "th")


def narrow(parts: Iterable[Element]) -> None:
    """Takes from wide cells the columns that no row fills."""
    rows: list[list[Element]] = []
    for part in parts:
        if part.tag == "tr":
            rows.append([])
        elif part.tag in _CELLS and rows:
            rows[-1].append(part)
    if not any(_span(cell, "colspan") > 1 for row in rows for cell in row):
        return
    taken = _taken_from_above(rows)
    width = max(len(row) + above for row, above in zip(rows, taken, strict=True))
    for row, above in zip(rows, taken, strict=True):
        spare = width - len(row) - above
        for cell in row:
            more = min(_span(cell, "colspan") - 1, spare)
            spare -= more
            if "colspan" in cell.attrib:
                cell.set("colspan", str(1 + more))


def _taken_from_above(rows: Sequence[Sequence[Element]]) -> list[int]:
    """How many cells of rows before it reach down into each row."""
    changes = [0] * (len(rows) + 1)
    for number, row in enumerate(rows):
        for cell in row:
            changes[min(number + 1, len(rows))] += 1
            changes[min(number + _span(cell, "rowspan"), len(rows))] -= 1
    return list(accumulate(changes[:-1]))


def _span(cell: Element, name: str) -> int:
    value = cell.get(name, "").strip()
    return max(1, int(value)) if value.isascii() and value.isdigit() and len(value) < 10 else 1
