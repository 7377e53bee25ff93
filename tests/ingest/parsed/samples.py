"""Parsed documents to try things on, and what is read of them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.formats.parsed import ParsedFormat
from chunksink.ingest.model import Family, Item, Notice, Source

FORMAT = ParsedFormat()
PRODUCER = {"name": "test", "version": "1"}


def read(path: Path, format_: ParsedFormat = FORMAT, uri: str = "records.jsonl", **about: Any) -> list[Item]:
    data = path.read_bytes()
    given = {"created_at": "2026-01-01T00:00:00.000000Z", "producer": PRODUCER, **about}
    return list(format_.read(Source(uri, path, hashlib.sha256(data).hexdigest(), len(data), **given)))


def read_documents(
    folder: Path, documents: Iterable[Record | bytes], format_: ParsedFormat = FORMAT, **about: Any
) -> list[Item]:
    lines = (one if isinstance(one, bytes) else orjson.dumps(one) for one in documents)
    path = folder / "records.jsonl"
    path.write_bytes(b"\n".join(lines))
    return read(path, format_, **about)


def families(items: Iterable[Item]) -> list[list[Record]]:
    return [list(item.chunks) for item in items if isinstance(item, Family)]


def paths(items: Iterable[Item]) -> list[str]:
    return [chunks[0]["provenance"]["source_uri"] for chunks in families(items)]


def notices(items: Iterable[Item]) -> list[tuple[int | None, str, bool]]:
    return [(item.line, item.code, item.is_failure) for item in items if isinstance(item, Notice)]


def parsed(path: str = "policies/data/retention.pdf", *blocks: Any, **about: Any) -> Record:
    return {
        "doc_id": "doc_0007",
        "source": {"path": path, "folder": path.rpartition("/")[0], "type": "policy"},
        "blocks": list(blocks) or [paragraph("Enterprise data is retained for 90 days.")],
        **about,
    }


def heading(text: str, level: int = 1, **about: Any) -> Record:
    return {"type": "heading", "text": text, "level": level, **about}


def paragraph(text: str, **about: Any) -> Record:
    return {"type": "paragraph", "text": text, **about}


def sentences(number: int, start: int = 0) -> str:
    return " ".join(f"Sentence number {n} tells of rain and wind." for n in range(start, start + number))
