"""Rows, one document each, become chunks as the Markdown or HTML that their text is. `RowReader` is the way in.

row -> (the cutter of Markdown or HTML) -> records -> reader
"""

from producers.rows.reader import RowReader

__all__ = ["RowReader"]
