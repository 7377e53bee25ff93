"""A small reader of records for tests: a line `{"name": ..., "text": ...}` is a family of one chunk."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chunksink.chunkbus.canonical import sha256_hex
from chunksink.chunkbus.chunk import new_chunk
from chunksink.chunkbus.identity import derive_document_id
from chunksink.producers.errors import EVENT_MALFORMED, EVENT_WITHOUT_TEXT
from chunksink.producers.kinds import KINDS, Kind
from chunksink.producers.produced import LeftOut, Making, Produced


@dataclass(frozen=True)
class LineReader:
    """Families in the order of the lines; a line that is no JSON is a failure, one without text is none."""

    version: str = "1"

    @property
    def parser(self) -> tuple[str, str]:
        return ("lines", "1")

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return ("chunksink-lines", self.version)

    def read(self, path: Path, uri: str, making: Making) -> Iterator[Produced | LeftOut]:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            try:
                said = json.loads(line)
            except ValueError as error:
                yield LeftOut(uri, number, EVENT_MALFORMED, f"no JSON: {error}")
                continue
            if not said["text"]:
                yield LeftOut(uri, number, EVENT_WITHOUT_TEXT, "no text", is_failure=False)
                continue
            checksum = sha256_hex(said["text"].encode())
            names = dict(zip(("canonicalizer_name", "canonicalizer_version"), self.canonicalizer, strict=True))
            fields = {"producer": making.producer, "metadata": {"modified_at": said.get("at")}}
            fields["source"] = {"source_type": said.get("type", "line")}
            if making.tenant is not None:
                fields["tenant_id"] = making.tenant
            record = new_chunk(
                document_id=derive_document_id(said["name"], checksum, tenant=making.tenant),
                text=said["text"],
                provenance={
                    "source_uri": said["name"],
                    "source_checksum": f"sha256:{checksum}",
                    "parser": {"parser_name": "lines", "parser_version": "1"},
                    "canonicalizer": names,
                    "inputs": [{"source_uri": uri}],
                },
                span_key=0,
                created_at=making.created_at,
                chunk_id=said.get("id"),
                fields=fields,
            )
            yield Produced(said["name"], making.tenant, [record])


def line(name: str, text: str, **more: str) -> str:
    return json.dumps({"name": name, "text": text, **more}) + "\n"


def kinds(version: str = "1") -> dict[str, Kind]:
    """Markdown and lines."""
    return {"markdown": KINDS["markdown"], "lines": Kind("lines", (".jsonl",), records=lambda: LineReader(version))}
