"""Reads small files that the tests make, and returns the results."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from chunksink.chunkbus.chunk import Record
from chunksink.ingest.formats.html import HtmlFormat
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import Empty, Family, Notice
from tests.ingest.reading import read_items


@dataclass(frozen=True)
class Reading:
    records: list[Record]
    notices: list[Notice]
    is_empty: bool

    @property
    def text(self) -> str:
        return "\n\n".join(record["text"][record["metadata"]["overlap_chars"] :] for record in self.records)

    @property
    def codes(self) -> list[str]:
        assert not any(notice.is_failure for notice in self.notices)
        return [notice.code for notice in self.notices]

    @property
    def headings(self) -> list[list[str]]:
        return [path for record in self.records if (path := record["metadata"]["headings_path"])]

    @property
    def links(self) -> list[str]:
        return [link["url"] for record in self.records for link in record["metadata"].get("links", [])]

    @property
    def metadata(self) -> Record:
        return dict(self.records[0]["metadata"])


def read(format_: Format, data: bytes, name: str = "folder/file") -> Reading:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        items = read_items(format_, path, uri=name)
    records = [record for item in items if isinstance(item, Family) for record in item.chunks]
    notices = [item for item in items if isinstance(item, Notice)]
    return Reading(records, notices, any(isinstance(item, Empty) for item in items))


def page(html: str) -> Reading:
    return read(HtmlFormat(), html.encode())
