"""Files of rows for tests, and the chunks that are read from them."""

from pathlib import Path
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.formats.rows import RowsFormat
from chunksink.ingest.model import Item
from tests.ingest.reading import families, notices, read_items, write_lines

FORMAT = RowsFormat()
WHALES = {"id": 7, "title": "Whales", "text": "Whales breathe air."}


def read_file(path: Path, data: bytes | str, format_: RowsFormat = FORMAT, tenant: str | None = None) -> list[Item]:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_items(format_, path, tenant)


def read_rows(
    folder: Path, *rows: Record | bytes, format_: RowsFormat = FORMAT, tenant: str | None = None
) -> list[Item]:
    return read_items(format_, write_lines(folder / "records.jsonl", rows), tenant)


def chunks_of(folder: Path, row: Record, **about: Any) -> list[Record]:
    """The chunks of the only row, without notices."""
    items = read_rows(folder, row, **about)
    assert notices(items) == []
    (chunks,) = families(items)
    return chunks
