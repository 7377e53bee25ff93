"""Which version of a family counts."""

from __future__ import annotations

import pytest

from chunksink.chunkbus.canonical import json_hash
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import PartitionReader
from chunksink.rebuild.catalog import CatalogCounts
from tests.rebuild.support import FEBRUARY, JANUARY, MARCH, CatalogProbe, commit, parent_of, source

A, B = parent_of("docs/a.md"), parent_of("docs/b.md")


def test_the_newest_created_at_of_the_chunks_wins(root: BusRoot, probe: CatalogProbe) -> None:
    """Not the partition that sorts last, nor the manifest that was written last."""
    commit(root, "p1", source("docs/a.md", "new", version="2", at=FEBRUARY), at=JANUARY)
    commit(root, "p2", source("docs/a.md", "old", version="1", at=JANUARY), at=MARCH)
    assert probe.refresh().current() == {A: "p1"}
    assert probe.catalog.counts() == CatalogCounts(families=1, chunks=1, superseded=1)


def test_the_newest_of_several_chunks_is_the_rank_of_their_family(root: BusRoot, probe: CatalogProbe) -> None:
    mixed = [*source("docs/a.md", "one", "two", version="2")]
    mixed[0]["created_at"], mixed[1]["created_at"] = MARCH, JANUARY
    commit(root, "p1", mixed)
    commit(root, "p2", source("docs/a.md", "other", version="1", at=FEBRUARY))
    assert probe.refresh().current() == {A: "p1"}


@pytest.mark.parametrize(("manifest_at", "winner"), [(MARCH, "p1"), (JANUARY, "p2")])
def test_the_manifest_ranks_a_family_of_which_one_chunk_has_no_created_at(
    root: BusRoot, probe: CatalogProbe, manifest_at: str, winner: str
) -> None:
    half = source("docs/a.md", "one", "two", version="2", at="2026-09-09T00:00:00Z")
    del half[1]["created_at"]
    commit(root, "p1", half, at=manifest_at)
    commit(root, "p2", source("docs/a.md", "other", at=FEBRUARY))
    assert probe.refresh().current() == {A: winner}


def test_equal_ranks_go_to_the_later_partition_key(root: BusRoot, probe: CatalogProbe) -> None:
    commit(root, "p2", source("docs/a.md", "two", version="2"))
    commit(root, "p1", source("docs/a.md", "one", version="1"))
    assert probe.refresh().current() == {A: "p2"}


def test_ranks_are_instants_not_texts(root: BusRoot, probe: CatalogProbe) -> None:
    """01:30 in Berlin is half an hour before 01:00 in London."""
    commit(root, "p1", source("docs/a.md", "later", version="2", at="2026-06-01T00:00:00+00:00"))
    commit(root, "p2", source("docs/a.md", "earlier", version="1", at="2026-06-01T01:30:00+02:00"))
    assert probe.refresh().current() == {A: "p1"}


def test_the_last_source_checksum_in_a_partition_wins(root: BusRoot, probe: CatalogProbe) -> None:
    """Even where an earlier line bears a later time; what lost is counted, not indexed."""
    old = source("docs/a.md", "old one", "old two", version="1", at=MARCH)
    new = source("docs/a.md", "new", version="2", at=JANUARY)
    commit(root, "p1", [*old, *source("docs/b.md", "between"), *new])
    probe.refresh()
    assert probe.catalog.counts() == CatalogCounts(families=2, chunks=2, superseded=1)
    with PartitionReader(root, "p1") as reader:
        texts = [
            reader.record(chunk.place, chunk.text_hash)["text"]
            for family in probe.catalog.families()
            for chunk in family.chunks
        ]
    assert texts == ["between", "new"]


def test_a_text_that_lost_does_not_rank_its_family(root: BusRoot, probe: CatalogProbe) -> None:
    old, new = source("docs/a.md", "old", at=MARCH), source("docs/a.md", "new", version="2", at=JANUARY)
    commit(root, "p1", [*old, *new])
    commit(root, "p2", source("docs/a.md", "newest", version="3", at=FEBRUARY))
    assert probe.refresh().current() == {A: "p2"}


def test_tenants_with_one_source_are_two_families(root: BusRoot, probe: CatalogProbe) -> None:
    commit(root, "p1", source("docs/a.md", "ours", tenant_id="north", ids="n", at=JANUARY))
    commit(root, "p2", source("docs/a.md", "theirs", tenant_id="south", ids="s", version="2", at=MARCH))
    commit(root, "p3", source("docs/a.md", "everyone's", version="3", at=FEBRUARY))
    assert probe.refresh().current() == {
        json_hash(["north", A]): "p1",
        json_hash(["south", A]): "p2",
        A: "p3",
    }
    assert probe.catalog.counts().superseded == 0


def test_families_come_whole_and_in_the_order_in_which_they_lie(root: BusRoot, probe: CatalogProbe) -> None:
    """Interleaved in the file, and named so that no order of names is the order on disk."""
    a, b = source("docs/b.md", "b0", "b1", "b2"), source("docs/a.md", "a0", "a1", "a2")
    commit(root, "p1", [a[0], b[0], a[1], b[2], a[2], b[1]])
    commit(root, "p0", source("docs/z.md", "z0"))
    found = list(probe.refresh().catalog.families())
    assert [family.family for family in found] == [parent_of("docs/z.md"), B, A]
    texts = []
    for family in found:
        with PartitionReader(root, family.partition) as reader:
            texts.append([reader.record(chunk.place, chunk.text_hash)["text"] for chunk in family.chunks])
    assert texts == [["z0"], ["b0", "b1", "b2"], ["a0", "a2", "a1"]]


def test_a_checksum_is_the_same_with_and_without_its_prefix(root: BusRoot, probe: CatalogProbe) -> None:
    bare, prefixed = source("docs/a.md", "one", "two")
    bare["provenance"]["source_checksum"] = bare["provenance"]["source_checksum"].removeprefix("sha256:")
    del bare["hashes"]["chunk_object_hash"]
    commit(root, "p1", [bare, prefixed])
    assert probe.refresh().catalog.counts() == CatalogCounts(families=1, chunks=2, superseded=0)
