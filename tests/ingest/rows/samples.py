"""Files of rows to try things on, and what is read of them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.formats.rows import RowsFormat
from chunksink.ingest.model import Family, Item, Notice, Source
from chunksink.sinks.projection import project_family

FORMAT = RowsFormat()
WHALES = {"id": 7, "title": "Whales", "text": "Whales breathe air."}


def read_file(path: Path, data: bytes | str, format_: RowsFormat = FORMAT, **about: Any) -> list[Item]:
    content = data.encode() if isinstance(data, str) else data
    path.write_bytes(content)
    given = {"created_at": "2026-01-01T00:00:00.000000Z", "producer": {"name": "test", "version": "1"}, **about}
    source = Source(path.name, path, hashlib.sha256(content).hexdigest(), len(content), **given)
    return list(format_.read(source))


def read_rows(folder: Path, *rows: Record | bytes, format_: RowsFormat = FORMAT, **about: Any) -> list[Item]:
    lines = (row if isinstance(row, bytes) else orjson.dumps(row) for row in rows)
    return read_file(folder / "records.jsonl", b"\n".join(lines), format_, **about)


def families(items: Iterable[Item]) -> list[list[Record]]:
    return [list(item.chunks) for item in items if isinstance(item, Family)]


def chunks_of(folder: Path, row: Record, **about: Any) -> list[Record]:
    """The chunks of the only row, of which nothing is reported."""
    items = read_rows(folder, row, **about)
    assert notices(items) == []
    (chunks,) = families(items)
    return chunks


def fields_of(folder: Path, row: Record) -> dict[str, Any]:
    """The fields of a row's first document in an index."""
    return project_family(chunks_of(folder, row))[0].fields()


def texts(items: Iterable[Item]) -> list[list[str]]:
    return [[chunk["text"] for chunk in chunks] for chunks in families(items)]


def names(items: Iterable[Item]) -> list[str]:
    return [chunks[0]["provenance"]["source_uri"] for chunks in families(items)]


def notices(items: Iterable[Item]) -> list[tuple[int | None, str, bool]]:
    return [(item.line, item.code, item.is_failure) for item in items if isinstance(item, Notice)]
