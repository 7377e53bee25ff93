"""Values that every implementation of the contract must reach, whatever its language.

`golden.json` was computed from the words of `docs/contract.md` by a program that shares no code with this one.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import canonical, identity

GOLDEN: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "golden.json").read_text(encoding="utf-8")
)


def each(recipe: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", GOLDEN[recipe])


@each("canonical_text")
def test_canonical_text(vector: dict[str, Any]) -> None:
    assert canonical.canonical_text(vector["input"]) == vector["output"]


@each("canonical_json")
def test_canonical_json(vector: dict[str, Any]) -> None:
    assert canonical.canonical_json(json.loads(vector["input"])).decode() == vector["output"]


@each("text_hash")
def test_text_hash(vector: dict[str, Any]) -> None:
    assert canonical.text_hash(vector["text"]) == vector["text_hash"]


@each("chunk_object_hash")
def test_chunk_object_hash(vector: dict[str, Any]) -> None:
    assert canonical.chunk_object_hash(vector["record"]) == vector["chunk_object_hash"]


@each("normalise_source")
def test_normalise_source(vector: dict[str, Any]) -> None:
    assert identity.normalise_source(vector["input"]) == vector["output"]


@each("document_id")
def test_document_id(vector: dict[str, Any]) -> None:
    found = identity.derive_document_id(vector["source"], vector["source_checksum"], vector["title"])
    assert found == vector["document_id"]


@each("chunk_id")
def test_chunk_id(vector: dict[str, Any]) -> None:
    found = identity.derive_chunk_id(vector["document_id"], vector["span_key"], vector["text_hash"])
    assert found == vector["chunk_id"]


@each("parent_id")
def test_parent_id(vector: dict[str, Any]) -> None:
    assert identity.parent_id(vector["record"]) == vector["parent_id"]


@each("family_key")
def test_family_key(vector: dict[str, Any]) -> None:
    assert identity.family_key(vector["parent_id"], vector["tenant_id"]) == vector["family_key"]


@each("tenant_key")
def test_tenant_key(vector: dict[str, Any]) -> None:
    assert identity.tenant_key(vector["tenant_id"]) == vector["tenant_key"]


def test_every_recipe_has_a_test() -> None:
    assert {f"test_{recipe}" for recipe in GOLDEN} <= set(globals())
    assert all(len(vectors) >= 4 for vectors in GOLDEN.values())
