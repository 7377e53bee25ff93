"""A family as it stands in a partition: who it is, its version, and where its lines lie."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import family_key, resolve_parent_id


@dataclass(slots=True)
class Family:
    """All chunks of one source in a partition.

    `document` is the id of the source as it is now; `origin` names the file that it was read from, where that is
    known; `newest` is the newest `created_at` of its chunks, None where one has none.
    """

    key: str
    name: str
    document: str
    tenant: str | None
    version: tuple[str | None, ...]
    origin: str | None = None
    newest: str | None = None
    chunks: int = 0
    stretches: list[tuple[int, int]] = field(default_factory=list)

    def extend(self, start: int, end: int) -> None:
        self.chunks += 1
        if self.stretches and self.stretches[-1][1] == start:
            self.stretches[-1] = (self.stretches[-1][0], end)
        else:
            self.stretches.append((start, end))


ABOUT = "family, name, document, tenant, origin, newest, version, chunks"
COLUMNS = f"{ABOUT}, stretches"
VALUES = ", ".join("?" for _ in COLUMNS.split(","))
Row = tuple[Any, ...]
"""A family in a table, by these columns; version and stretches are JSON."""


def row_of(family: Family) -> Row:
    version, stretches = orjson.dumps(family.version).decode(), orjson.dumps(family.stretches).decode()
    about = (family.key, family.name, family.document, family.tenant, family.origin, family.newest)
    return (*about, version, family.chunks, stretches)


def family_of(row: Row) -> Family:
    key, name, document, tenant, origin, newest, version, chunks, stretches = row
    pairs = [(start, end) for start, end in orjson.loads(stretches)]
    return Family(key, name, document, tenant, tuple(orjson.loads(version)), origin, newest, chunks, pairs)


def key_of_source(uri: str, tenant: str | None) -> str:
    """The family key that chunks of this source get."""
    return family_key(resolve_parent_id(None, uri, ""), tenant)


def version_of(provenance: Record) -> tuple[str | None, ...]:
    """Checksum, parser and canonicaliser, however they are written."""
    parser = provenance.get("parser") or provenance
    canonicalizer = provenance.get("canonicalizer") or provenance
    return (
        (provenance.get("source_checksum") or "").removeprefix("sha256:") or None,
        parser.get("parser_name"),
        parser.get("parser_version"),
        canonicalizer.get("canonicalizer_name"),
        canonicalizer.get("canonicalizer_version"),
    )


def origin_of(record: Record, name: str) -> str | None:
    """The file that a chunk of ours was read from: a document, or the file of records that its inputs name."""
    provenance = record["provenance"]
    if not str(version_of(provenance)[3]).startswith("chunksink-"):
        return None
    inputs = provenance.get("inputs") or []
    origin = inputs[0].get("source_uri") if inputs and isinstance(inputs[0], dict) else name
    return origin if isinstance(origin, str) else None
