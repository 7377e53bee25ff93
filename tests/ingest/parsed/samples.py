"""Parsed documents for tests, and the chunks that are read from them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.formats.parsed import ParsedFormat
from chunksink.ingest.model import Item
from tests.ingest.reading import read_items, write_lines

FORMAT = ParsedFormat()


def read_documents(
    folder: Path, documents: Iterable[Record | bytes], format_: ParsedFormat = FORMAT, tenant: str | None = None
) -> list[Item]:
    return read_items(format_, write_lines(folder / "records.jsonl", documents), tenant)


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
