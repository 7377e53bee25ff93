"""Which version of a family is current, and what a tombstone withdraws."""

from __future__ import annotations

import orjson
import pytest

from chunksink.chunkbus.canonical import json_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import Tombstone
from chunksink.chunkbus.reader import PartitionReader
from chunksink.rebuild.catalog import CatalogCounts
from tests.support.bus import APRIL, FEBRUARY, JANUARY, MARCH, commit, document_id, parent_of, source
from tests.support.home import CatalogProbe

A, B = parent_of("docs/a.md"), parent_of("docs/b.md")


def of(version: str, *times: str | None, at: str = JANUARY) -> tuple[list[Record], str]:
    """The times of a version's chunks (None: no time), and the time of its manifest."""
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
def test_family_versions_are_ranked(
    one: tuple[list[Record], str], two: tuple[list[Record], str], winner: str, root: FolderRoot, probe: CatalogProbe
) -> None:
    for key, (records, at) in (("p2", two), ("p1", one)):
        commit(root, key, records, at=at)
    assert probe.refresh().current() == {A: winner}


def test_last_source_checksum_in_a_partition_wins(root: FolderRoot, probe: CatalogProbe) -> None:
    """Even if an earlier line has a later time. The other version is counted as superseded, not indexed."""
    old = source("docs/a.md", "old one", "old two", version="1", at=MARCH)
    new = source("docs/a.md", "new", version="2", at=JANUARY)
    commit(root, "p1", [*old, *source("docs/b.md", "between"), *new])
    probe.refresh()
    assert probe.catalog.counts() == CatalogCounts(families=2, chunks=2, superseded=1)
    with PartitionReader(root, "p1") as reader:
        texts = [
            orjson.loads(reader.line(chunk.place))["text"]
            for family in probe.catalog.families()
            for chunk in family.chunks
        ]
    assert texts == ["between", "new"]


def test_families_are_complete_and_in_file_order(root: FolderRoot, probe: CatalogProbe) -> None:
    """Their lines are interleaved, and no order of their names is their order on disk."""
    a, b = source("docs/b.md", "b0", "b1", "b2"), source("docs/a.md", "a0", "a1", "a2")
    commit(root, "p1", [a[0], b[0], a[1], b[2], a[2], b[1]])
    commit(root, "p0", source("docs/z.md", "z0"))
    found = list(probe.refresh().catalog.families())
    assert [family.family for family in found] == [parent_of("docs/z.md"), B, A]
    texts = []
    for family in found:
        with PartitionReader(root, family.partition) as reader:
            texts.append([orjson.loads(reader.line(chunk.place))["text"] for chunk in family.chunks])
    assert texts == [["z0"], ["b0", "b1", "b2"], ["a0", "a2", "a1"]]


def test_checksum_with_and_without_prefix_is_the_same(root: FolderRoot, probe: CatalogProbe) -> None:
    bare, prefixed = source("docs/a.md", "one", "two")
    bare["provenance"]["source_checksum"] = bare["provenance"]["source_checksum"].removeprefix("sha256:")
    del bare["hashes"]["chunk_object_hash"]
    commit(root, "p1", [bare, prefixed])
    assert probe.refresh().catalog.counts() == CatalogCounts(families=1, chunks=2, superseded=0)


# -- tombstones: the families that they retire, and those that they do not

BY_PARENT = Tombstone(parent_id=A)
BY_DOCUMENT = Tombstone(document_id=document_id("docs/a.md"))
NORTH, SOUTH = json_hash(["north", A]), json_hash(["south", A])


def a(version: str = "1", at: str = JANUARY, **fields: str) -> list[Record]:
    return source("docs/a.md", f"version {version}", version=version, at=at, **fields)


Left = dict[str, str]
ONE, LATER = {"p1": a(at=FEBRUARY)}, {"p1": a(), "p2": a("2", FEBRUARY)}
TENANTS = {"p1": a(tenant_id="north", ids="n"), "p2": a(tenant_id="south", ids="s"), "p3": a("3")}
LATEST = Tombstone(document_id=document_id("docs/a.md", "2"))
NORTHS, NORTHS_DOCUMENT = (
    Tombstone(**by, tenant_id="north") for by in ({"parent_id": A}, {"document_id": document_id("docs/a.md")})
)

# Chunks by partition; the tombstone's partition and the time of its manifest; the versions that remain.
BY_EITHER: dict[str, tuple[dict[str, list[Record]], str, str, Left]] = {
    "leaves other families": ({"p1": [*a(), *source("docs/b.md", "b")]}, "p2", FEBRUARY, {B: "p1"}),
    "retires what ranks below it": (ONE, "p2", MARCH, {}),
    "leaves what ranks above it": (ONE, "p2", JANUARY, {A: "p1"}),
    "retires the lesser partition of one instant": (ONE, "p2", FEBRUARY, {}),
    "leaves the greater partition of one instant": (ONE, "p0", FEBRUARY, {A: "p1"}),
}
CASES: dict[str, tuple[dict[str, list[Record]], str, str, Tombstone, Left]] = {
    # A rewrite of the partition gives the manifest a new time; the tombstone keeps its own.
    "has a later time than its manifest": (ONE, "p2", JANUARY, Tombstone(parent_id=A, at=APRIL), {}),
    "has an earlier time than its manifest": (ONE, "p2", MARCH, Tombstone(parent_id=A, at=JANUARY), {A: "p1"}),
    "leaves its own partition": (ONE, "p1", JANUARY, Tombstone(parent_id=A, at=APRIL), {A: "p1"}),
    "retires a newer version elsewhere": (LATER, "p1", JANUARY, Tombstone(parent_id=A, at=APRIL), {A: "p1"}),
    "leaves a later version": ({"p1": a(), "p3": a("2", MARCH)}, "p2", FEBRUARY, BY_PARENT, {A: "p3"}),
    "retires what the document had superseded": (LATER, "p3", MARCH, LATEST, {}),
    "leaves what superseded the document": (LATER, "p3", MARCH, BY_DOCUMENT, {A: "p2"}),
    "leaves what superseded it beside it": ({"p1": [*a(), *a("2")]}, "p3", MARCH, BY_DOCUMENT, {A: "p1"}),
    "is of one tenant by the family key": (TENANTS, "p4", FEBRUARY, Tombstone(parent_id=NORTH), {SOUTH: "p2", A: "p3"}),
    "is of one tenant by its parent": (TENANTS, "p4", FEBRUARY, NORTHS, {SOUTH: "p2", A: "p3"}),
    "is of one tenant by its document": (TENANTS, "p4", FEBRUARY, NORTHS_DOCUMENT, {SOUTH: "p2", A: "p3"}),
}
for name, (*before, left) in BY_EITHER.items():
    CASES |= {
        f"{name}, {by}": (*before, by_it, left) for by, by_it in (("parent", BY_PARENT), ("document", BY_DOCUMENT))
    }


@pytest.mark.parametrize(("chunks", "key", "at", "tombstone", "left"), CASES.values(), ids=CASES)
def test_tombstone_withdraws_what_it_names(
    chunks: dict[str, list[Record]],
    key: str,
    at: str,
    tombstone: Tombstone,
    left: Left,
    root: FolderRoot,
    probe: CatalogProbe,
) -> None:
    for partition, records in ({key: []} | chunks).items():
        if partition == key:
            commit(root, partition, records, at=at, tombstones=[tombstone])
        else:
            commit(root, partition, records)
    assert probe.refresh().current() == left


def test_withdrawn_family_is_not_superseded(root: FolderRoot, probe: CatalogProbe) -> None:
    """No newer version replaces it; a later one that brings the family back supersedes it."""
    commit(root, "p1", [*a(), *source("docs/b.md", "b")])
    commit(root, "p2", [], at=FEBRUARY, tombstones=[BY_PARENT])
    assert probe.refresh().catalog.counts() == CatalogCounts(families=1, chunks=1, superseded=0)
    commit(root, "p3", a("2", MARCH))
    assert probe.refresh().catalog.counts() == CatalogCounts(families=2, chunks=2, superseded=1)


def test_tombstone_with_an_empty_tenant_withdraws_nothing(root: FolderRoot, probe: CatalogProbe) -> None:
    """It would withdraw the source of every tenant, so the partition is invalid."""
    commit(root, "p1", source("docs/a.md", "a"))
    commit(root, "p2", [], at=FEBRUARY, tombstones=[Tombstone(parent_id=A, tenant_id="nobody")])
    manifest = root.manifest_file("p2")
    manifest.write_text(manifest.read_text(encoding="utf-8").replace('"nobody"', '""'), encoding="utf-8")
    assert probe.refresh().current() == {A: "p1"}
    (found,) = probe.catalog.findings()
    assert "tombstones[0].tenant_id is empty" in found.detail


def test_tombstone_of_the_parent_withdraws_it_for_every_tenant(root: FolderRoot, probe: CatalogProbe) -> None:
    """When the tombstone is removed, the source returns for every tenant."""
    commit(root, "p1", source("docs/a.md", "ours", tenant_id="north", ids="n"))
    commit(root, "p2", source("docs/a.md", "theirs", tenant_id="south", ids="s", version="2"))
    assert len(probe.refresh().current()) == 2
    commit(root, "p3", [], at=FEBRUARY, tombstones=[BY_PARENT])
    assert probe.refresh().current() == {}
    commit(root, "p3", [], at=FEBRUARY)
    assert probe.refresh().current() == {NORTH: "p1", SOUTH: "p2"}


def test_sample_has_texts_of_all_sources_however_large_one_is(root: FolderRoot, probe: CatalogProbe) -> None:
    log = source("log.md", *(f"line {number}" for number in range(300)))
    notes = [record for number in range(20) for record in source(f"{number}.md", f"note {number}")]
    commit(root, "p1", [*log, *notes])
    probe.refresh()
    keys_of_log = {chunk.key for chunk in probe.catalog.chunks() if chunk.chunk_id in {one["chunk_id"] for one in log}}
    sample = probe.catalog.sample_of_keys(50)
    assert len(set(sample)) == 50
    assert len(set(sample) - keys_of_log) == 20
    assert probe.catalog.sample_of_keys(50) == sample
