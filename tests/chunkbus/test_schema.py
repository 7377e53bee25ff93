"""The published JSON Schemas accept and refuse what the code does."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import orjson
import pytest

from chunksink.chunkbus.chunk import new_chunk
from chunksink.chunkbus.examine import examine_line
from chunksink.chunkbus.manifest import (
    Counts,
    ManifestProducer,
    Tombstone,
    encode_manifest,
    examine_manifest,
    new_manifest,
)
from tests.conftest import ROOT

SCHEMAS = ROOT / "docs" / "schema"
CHUNK_SCHEMA = json.loads((SCHEMAS / "chunk.schema.json").read_text(encoding="utf-8"))
MANIFEST_SCHEMA = json.loads((SCHEMAS / "manifest.schema.json").read_text(encoding="utf-8"))

Change = Callable[[dict[str, Any]], object]


def chunk() -> dict[str, Any]:
    provenance = {
        "source_uri": "notes/a.md",
        "source_checksum": f"sha256:{0:064x}",
        "parser": {"parser_name": "p", "parser_version": "1"},
        "canonicalizer": {"canonicalizer_name": "c", "canonicalizer_version": "1"},
        "inputs": [],
    }
    return new_chunk(
        document_id="d",
        text="Boats leave at nine.",
        provenance=provenance,
        span_key=0,
        created_at="2026-01-01T00:00:00Z",
        fields={"chunk_index": 0, "span": {"pages": {"page_start": 1}}, "metadata": {"year": 2026}, "anything": [1]},
    )


def manifest() -> dict[str, Any]:
    made = new_manifest(
        partition_key="p",
        created_at="2026-01-01T00:00:00Z",
        producer=ManifestProducer("test", "1"),
        counts=Counts(documents=1, chunks_emitted=1, failures=0),
        chunks_checksum=f"sha256:{0:064x}",
        errors={"CHUNKING_FAILED": 1},
        tombstones=[Tombstone(parent_id="x", reason="withdrawn", at="2026-01-01T00:00:00Z")],
    )
    value: dict[str, Any] = orjson.loads(encode_manifest(made))
    return value


def accepts(schema: dict[str, Any], value: dict[str, Any]) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def refuses_chunk(value: dict[str, Any]) -> bool:
    return bool(examine_line(orjson.dumps(value))[1])


CHUNK_CHANGES: dict[str, Change] = {
    "no schema_version": lambda c: c.pop("schema_version"),
    "no chunk_id": lambda c: c.pop("chunk_id"),
    "no document_id": lambda c: c.pop("document_id"),
    "no text": lambda c: c.pop("text"),
    "no provenance": lambda c: c.pop("provenance"),
    "no inputs": lambda c: c["provenance"].pop("inputs"),
    "no source name": lambda c: c["provenance"].pop("source_uri"),
    "no parser": lambda c: c["provenance"].pop("parser"),
    "no canonicalizer": lambda c: c["provenance"].pop("canonicalizer"),
    "no parser version": lambda c: c["provenance"]["parser"].pop("parser_version"),
    "text null": lambda c: c.update(text=None),
    "text a number": lambda c: c.update(text=1),
    "chunk_id empty": lambda c: c.update(chunk_id=""),
    "another version": lambda c: c.update(schema_version="chunks.v2"),
    "index negative": lambda c: c.update(chunk_index=-1),
    "page a word": lambda c: c["span"]["pages"].update(page_start="one"),
    "a vector in embedding_ref": lambda c: c.update(embedding_ref=[0.1, 0.2]),
}


def test_a_good_chunk_is_accepted_by_both() -> None:
    assert not refuses_chunk(chunk())
    assert accepts(CHUNK_SCHEMA, chunk())


def test_flat_names_and_a_reference_are_accepted_by_both() -> None:
    flat = chunk()
    provenance = flat["provenance"]
    provenance |= provenance.pop("parser") | provenance.pop("canonicalizer")
    provenance["source_ref"] = provenance.pop("source_uri")
    assert not refuses_chunk(flat)
    assert accepts(CHUNK_SCHEMA, flat)


@pytest.mark.parametrize("name", CHUNK_CHANGES)
def test_a_bad_chunk_is_refused_by_both(name: str) -> None:
    changed = copy.deepcopy(chunk())
    CHUNK_CHANGES[name](changed)
    assert refuses_chunk(changed)
    assert not accepts(CHUNK_SCHEMA, changed)


MANIFEST_CHANGES: dict[str, Change] = {
    **{f"no {name}": lambda m, name=name: m.pop(name) for name in manifest() if name != "tombstones"},
    "no checksum": lambda m: m["checksums"].pop("chunks_file"),
    "no count": lambda m: m["counts"].pop("chunks_emitted"),
    "a count of -1": lambda m: m["counts"].update(failures=-1),
    "errors a list": lambda m: m.update(errors=[]),
    "another version": lambda m: m.update(schema_version="chunks.v0"),
    "a tombstone for nothing": lambda m: m["tombstones"][0].pop("parent_id"),
}


def test_a_good_manifest_is_accepted_by_both() -> None:
    assert examine_manifest("p", orjson.dumps(manifest())) == []
    assert accepts(MANIFEST_SCHEMA, manifest())


@pytest.mark.parametrize("name", MANIFEST_CHANGES)
def test_a_bad_manifest_is_refused_by_both(name: str) -> None:
    changed = copy.deepcopy(manifest())
    MANIFEST_CHANGES[name](changed)
    assert examine_manifest("p", orjson.dumps(changed)) != []
    assert not accepts(MANIFEST_SCHEMA, changed)
