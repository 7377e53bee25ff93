"""Builders for valid chunks, manifests and buses, and for invalid variants."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.findings import Finding
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.validation import Summary, Validation
from chunksink.chunkbus.writer import PartitionWriter
from tests.conftest import ROOT

NOON = "2026-01-31T12:00:00Z"
PRODUCER = ManifestProducer("tests", "1")


def chunk(index: int = 0, uri: str = "docs/a.md", **changes: Any) -> Record:
    """A valid record, made without the code under test; `changes` replace whole top-level fields."""
    text = f"Chunk {index} says something of its own."
    record: Record = {
        "schema_version": "chunks.v1",
        "chunk_id": f"chunk-{index}",
        "document_id": "document-1",
        "text": text,
        "provenance": provenance(source_uri=uri),
    }
    record |= changes
    if isinstance(record.get("text"), str):
        digest = hashlib.sha256(record["text"].encode()).hexdigest()
        record.setdefault("hashes", {"text_hash": f"sha256:{digest}"})
    return record


def provenance(**changes: Any) -> dict[str, Any]:
    return {
        "source_uri": "docs/a.md",
        "source_checksum": "sha256:" + "a" * 64,
        "parser": {"parser_name": "markdown", "parser_version": "1"},
        "canonicalizer": {"canonicalizer_name": "plain", "canonicalizer_version": "1"},
        "inputs": [],
    } | changes


def without(record: dict[str, Any], path: str) -> dict[str, Any]:
    """A copy without the field at a dotted path."""
    record = json.loads(json.dumps(record))
    *parents, name = path.split(".")
    group = record
    for parent in parents:
        group = group[parent]
    del group[name]
    return record


def line_of(record: Any) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def lines_of(records: Iterable[Any]) -> bytes:
    return b"".join(line_of(record) + b"\n" for record in records)


def manifest(key: str, chunks: bytes, **changes: Any) -> dict[str, Any]:
    """A manifest that fits these bytes."""
    return {
        "schema_version": "chunks.v1",
        "partition_key": key,
        "created_at": NOON,
        "producer": {"name": "tests", "version": "1"},
        "counts": {"documents": 1, "chunks_emitted": chunks.count(b"\n"), "failures": 0},
        "checksums": {"chunks_file": "sha256:" + hashlib.sha256(chunks).hexdigest()},
        "idempotency": {"skipped": 0},
        "errors": {},
    } | changes


def put(root: FolderRoot, key: str, chunks: bytes, of_manifest: dict[str, Any] | bytes | None = None) -> FolderRoot:
    """Writes both files of a partition without any check."""
    put_chunks(root, key, chunks)
    put_manifest(root, key, manifest(key, chunks) if of_manifest is None else of_manifest)
    return root


def put_chunks(root: FolderRoot, key: str, chunks: bytes) -> None:
    root.canonical.mkdir(parents=True, exist_ok=True)
    (root.canonical / f"{key}.jsonl").write_bytes(chunks)


def put_manifest(root: FolderRoot, key: str, of_manifest: dict[str, Any] | bytes) -> None:
    root.manifests.mkdir(parents=True, exist_ok=True)
    data = of_manifest if isinstance(of_manifest, bytes) else json.dumps(of_manifest).encode()
    (root.manifests / f"{key}.manifest.json").write_bytes(data)


def commit(root: BusRoot, key: str, records: Iterable[Record], created_at: str = NOON, **facts: Any) -> None:
    """Writes a partition with a PartitionWriter."""
    with PartitionWriter(root, key) as writer:
        for record in records:
            writer.add(record)
        writer.commit(documents=1, producer=PRODUCER, created_at=created_at, **facts)


def validate(root: BusRoot, keys: list[str] | None = None, **options: Any) -> list[Finding]:
    return validate_all(root, keys, **options)[1]


def validate_all(root: BusRoot, keys: list[str] | None = None, **options: Any) -> tuple[Summary, list[Finding]]:
    found: list[Finding] = []
    summary = Validation(root, on_finding=found.append, **options).run(keys)
    assert summary.errors == sum(finding.is_error for finding in found)
    assert summary.errors + summary.warnings == len(found)
    return summary, found


def places(found: Iterable[Finding]) -> list[tuple[str, str, str, int | None]]:
    return [(finding.code, finding.severity.value, finding.partition, finding.line) for finding in found]


def codes(found: Iterable[Finding]) -> list[str]:
    return [finding.code for finding in found]


def listing(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Every file and folder below: its mode, time of change and content."""
    found = {}
    for parent, folders, files in os.walk(folder):
        for name in [".", *folders, *files]:
            path = Path(parent) / name
            state = path.lstat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path)] = (state.st_mode, state.st_mtime_ns, digest)
    return found


def schema_accepts(kind: str, value: Any) -> bool:
    """Whether the published JSON Schema of a chunk or a manifest accepts this value."""
    schema = json.loads((ROOT / "chunksink" / "schema" / f"{kind}.schema.json").read_text(encoding="utf-8"))
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))
