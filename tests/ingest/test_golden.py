"""The chunk ids of the examples, recorded when their formats were first released: they do not change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.ingest.bench import Bench

GOLDEN: dict[str, list[str]] = json.loads((Path(__file__).parent / "golden.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", GOLDEN)
def test_the_chunk_ids_of_an_example_do_not_change(bench: Bench, name: str) -> None:
    bench.docs = ROOT / "examples" / name
    assert bench.ingest().failed == 0
    assert [record["chunk_id"] for record in bench.records()] == GOLDEN[name]


def test_chunks_of_others_keep_their_ids(bench: Bench) -> None:
    """Canonical chunks of one bus, ingested into another."""
    bench.docs = ROOT / "examples"
    bench.ingest(partition="theirs")
    chunks = bench.fresh("other")
    chunks.docs = bench.bus.canonical
    assert chunks.ingest("theirs.jsonl", format="chunks").failed == 0
    assert {record["chunk_id"] for record in chunks.records()} == {record["chunk_id"] for record in bench.records()}
