"""A bus written by hand: sources, versions, partitions, and the expected documents."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import ManifestProducer, Tombstone
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.sinks.document import Document
from chunksink.sinks.projection import project_family

JANUARY, FEBRUARY, MARCH, APRIL = (f"2026-0{month}-01T00:00:00Z" for month in range(1, 5))


def source(
    name: str, *texts: str, version: str = "1", at: str | None = JANUARY, ids: str = "", **fields: Any
) -> list[Record]:
    """All chunks of one version of a source. `ids` replaces the ids that depend on the version alone."""
    records = [
        new_chunk(
            document_id=document_id(name, version),
            text=text,
            provenance={
                "source_uri": name,
                "source_checksum": "sha256:" + hashlib.sha256(version.encode()).hexdigest(),
                "parser": {"parser_name": "sample", "parser_version": "1"},
                "canonicalizer": {"canonicalizer_name": "sample", "canonicalizer_version": "1"},
                "inputs": [],
            },
            span_key=f"{ids}{index}",
            created_at=at or JANUARY,
            fields={"chunk_index": index, "chunk_count": len(texts), **fields},
        )
        for index, text in enumerate(texts)
    ]
    if at is None:
        for record in records:
            del record["created_at"], record["hashes"]["chunk_object_hash"]
    return records


def document_id(name: str, version: str = "1") -> str:
    return f"{name}@{version}"


def parent_of(name: str) -> str:
    """The family key of a source without a tenant, made without the code under test."""
    return hashlib.sha256(name.encode()).hexdigest()


def commit(
    root: BusRoot, key: str, records: Iterable[Record], *, at: str = JANUARY, tombstones: Sequence[Tombstone] = ()
) -> None:
    with PartitionWriter(root, key) as writer:
        documents = set()
        for record in records:
            writer.add(record)
            documents.add(record["document_id"])
        producer = ManifestProducer("tests", "1")
        writer.commit(documents=len(documents), producer=producer, created_at=at, tombstones=list(tombstones))


def projected(*families: list[Record]) -> list[Document]:
    """The documents in an index of exactly these families."""
    return sorted((d for records in families for d in project_family(records)), key=lambda d: d.id)
