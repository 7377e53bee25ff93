"""Which version of a family counts."""

from __future__ import annotations

import pytest

from chunksink.chunkbus.canonical import json_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import PartitionReader
from chunksink.rebuild.catalog import CatalogCounts
from tests.support.bus import APRIL, FEBRUARY, JANUARY, MARCH, commit, parent_of, source
from tests.support.home import CatalogProbe

A, B = parent_of("docs/a.md"), parent_of("docs/b.md")


def of(version: str, *times: str | None, at: str = JANUARY) -> tuple[list[Record], str]:
    """A version whose chunks have these times, None for none; and the time of its manifest."""
    records = source("docs/a.md", *map(str, range(len(times))), version=version)
    for record, time in zip(records, times, strict=True):
        record["created_at"] = time
        if time is None:
            del record["created_at"], record["hashes"]["chunk_object_hash"]
    return records, at


RANKS = {
    # Not the partition that sorts last, nor the manifest that was written last.
    "the newest time of chunks": (of("2", FEBRUARY), of("1", JANUARY, at=MARCH), "p1"),
    "the newest of several chunks": (of("2", MARCH, JANUARY), of("1", FEBRUARY), "p1"),
    "the manifest where a chunk has no time": (of("2", APRIL, None, at=MARCH), of("1", FEBRUARY), "p1"),
    "an older manifest where a chunk has no time": (of("2", APRIL, None), of("1", FEBRUARY), "p2"),
    "the later key of equal times": (of("1", JANUARY), of("2", JANUARY), "p2"),
    # 01:30 in Berlin is half an hour before 01:00 in London.
    "instants": (of("2", "2026-06-01T00:00:00+00:00"), of("1", "2026-06-01T01:30:00+02:00"), "p1"),
    "not a text that lost": (([*of("1", MARCH)[0], *of("2", JANUARY)[0]], JANUARY), of("3", FEBRUARY), "p2"),
}


@pytest.mark.parametrize(("one", "two", "winner"), RANKS.values(), ids=RANKS)
def test_a_family_is_ranked_by(
    one: tuple[list[Record], str], two: tuple[list[Record], str], winner: str, root: BusRoot, probe: CatalogProbe
) -> None:
    for key, (records, at) in (("p2", two), ("p1", one)):
        commit(root, key, records, at=at)
    assert probe.refresh().current() == {A: winner}


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
