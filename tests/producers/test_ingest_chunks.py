"""Chunks that are canonical already and say no time: which run they came with decides which of them count."""

import pytest

from tests.producers.bench import LATER, NOW, Bench
from tests.producers.bridges.samples import canonical_chunk
from tests.producers.reading import write_lines


def ranks(bench: Bench, key: str) -> dict[str, str | None]:
    """What each family of a partition ranks by: its chunks' own time, None where that is the partition's."""
    return {record["document_id"]: record.get("created_at") for record in bench.records(key)}


def write(bench: Bench, name: str, document: str, text: str) -> None:
    provenance = {**canonical_chunk()["provenance"], "source_uri": document}
    chunk = canonical_chunk(document_id=document, chunk_id=document, text=text, provenance=provenance)
    del chunk["created_at"]
    write_lines(bench.docs / name, [chunk])


def ingest(bench: Bench, name: str, to: str, now: str) -> bool:
    return bench.ingest([bench.docs / name], kind="chunks", to=to, now=now).written


def test_a_rewrite_of_its_partition_does_not_bring_an_old_text_back(bench: Bench) -> None:
    write(bench, "jan.jsonl", "k", "old")
    write(bench, "feb.jsonl", "k", "new")
    write(bench, "other.jsonl", "other", "text")
    ingest(bench, "jan.jsonl", "jan", NOW)
    ingest(bench, "feb.jsonl", "feb", LATER)
    assert ingest(bench, "other.jsonl", "jan", "2026-03-03T12:00:00.000000Z")
    assert ranks(bench, "jan") == {"k": NOW, "other": "2026-03-03T12:00:00.000000Z"}
    assert ranks(bench, "feb") == {"k": LATER}


def test_reading_an_unchanged_file_again_leaves_its_rank(bench: Bench) -> None:
    write(bench, "jan.jsonl", "k", "text")
    ingest(bench, "jan.jsonl", "jan", NOW)
    before = bench.bytes_on_bus()
    bench.forget()
    assert not ingest(bench, "jan.jsonl", "jan", LATER)
    assert bench.bytes_on_bus() == before


@pytest.mark.parametrize("text", ["text", "other"])
def test_files_that_share_a_family_are_told_of_alike_by_every_run(bench: Bench, text: str) -> None:
    """Also by one that reads both again: nothing in such chunks names their file."""
    write(bench, "1.jsonl", "k", text)
    write(bench, "2.jsonl", "k", "text")
    first = bench.ingest(kind="chunks", to="jan")
    before = bench.bytes_on_bus()
    bench.forget()
    second = bench.ingest(kind="chunks", to="jan", now=LATER)
    assert first.left_out == second.left_out == {"SOURCE_IN_ANOTHER_FILE": 1}
    assert (second.written, bench.bytes_on_bus()) == (False, before)
