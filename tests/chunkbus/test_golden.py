"""Values that every implementation of the contract must produce, in any language.

`golden.json` was computed from the words of `docs/contract.md` by a program that shares no code with this one.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import canonical, identity

Vector = dict[str, Any]

GOLDEN: dict[str, list[Vector]] = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))

# The function for each, and the field of a vector with the result.
RECIPES: dict[str, tuple[Callable[[Vector], str | None], str]] = {
    "canonical_text": (lambda v: canonical.canonical_text(v["input"]), "output"),
    "canonical_json": (lambda v: canonical.canonical_json(json.loads(v["input"])).decode(), "output"),
    "text_hash": (lambda v: canonical.text_hash(v["text"]), "text_hash"),
    "chunk_object_hash": (lambda v: canonical.chunk_object_hash(v["record"]), "chunk_object_hash"),
    "normalise_source": (lambda v: identity.normalise_source(v["input"]), "output"),
    "document_id": (
        lambda v: identity.derive_document_id(v["source"], v["source_checksum"], v["title"]),
        "document_id",
    ),
    "chunk_id": (lambda v: identity.derive_chunk_id(v["document_id"], v["span_key"], v["text_hash"]), "chunk_id"),
    "parent_id": (lambda v: identity.parent_id(v["record"]), "parent_id"),
    "family_key": (lambda v: identity.family_key(v["parent_id"], v["tenant_id"]), "family_key"),
    "tenant_key": (lambda v: identity.tenant_key(v["tenant_id"]), "tenant_key"),
}


@pytest.mark.parametrize(("recipe", "vector"), [(name, one) for name, vectors in GOLDEN.items() for one in vectors])
def test_a_golden_value_is_reached(recipe: str, vector: Vector) -> None:
    compute, result = RECIPES[recipe]
    assert compute(vector) == vector[result]


def test_every_recipe_has_golden_values() -> None:
    assert GOLDEN.keys() == RECIPES.keys()
    assert all(len(vectors) >= 4 for vectors in GOLDEN.values())
