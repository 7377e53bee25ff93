"""What a tombstone retires, and what it leaves."""

from __future__ import annotations

import pytest

from chunksink.chunkbus.canonical import json_hash
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import Tombstone
from chunksink.rebuild.catalog import CatalogCounts
from tests.rebuild.support import (
    APRIL,
    FEBRUARY,
    JANUARY,
    MARCH,
    CatalogProbe,
    commit,
    document_id,
    parent_of,
    source,
)

A, B = parent_of("docs/a.md"), parent_of("docs/b.md")

BY_PARENT = Tombstone(parent_id=A)
BY_DOCUMENT = Tombstone(document_id=document_id("docs/a.md"))


@pytest.mark.parametrize("tombstone", [BY_PARENT, BY_DOCUMENT], ids=["parent", "document"])
def test_a_later_tombstone_retires_its_family_and_no_other(
    root: BusRoot, probe: CatalogProbe, tombstone: Tombstone
) -> None:
    commit(root, "p1", [*source("docs/a.md", "a"), *source("docs/b.md", "b")])
    commit(root, "p2", [], at=FEBRUARY, tombstones=[tombstone])
    assert probe.refresh().current() == {B: "p1"}
    # Withdrawn is not superseded: no newer version stands in its place.
    assert probe.catalog.counts() == CatalogCounts(families=1, chunks=1, superseded=0)


@pytest.mark.parametrize("tombstone", [BY_PARENT, BY_DOCUMENT], ids=["parent", "document"])
@pytest.mark.parametrize(("chunks_at", "left"), [(JANUARY, {}), (MARCH, {A: "p1"})])
def test_only_what_ranks_below_the_tombstone_is_retired(
    root: BusRoot, probe: CatalogProbe, tombstone: Tombstone, chunks_at: str, left: dict[str, str]
) -> None:
    commit(root, "p1", source("docs/a.md", "a", at=chunks_at))
    commit(root, "p2", [], at=FEBRUARY, tombstones=[tombstone])
    assert probe.refresh().current() == left


@pytest.mark.parametrize("tombstone", [BY_PARENT, BY_DOCUMENT], ids=["parent", "document"])
@pytest.mark.parametrize(("key", "left"), [("p0", {A: "p1"}), ("p2", {})])
def test_of_one_instant_the_greater_partition_ranks_higher(
    root: BusRoot, probe: CatalogProbe, tombstone: Tombstone, key: str, left: dict[str, str]
) -> None:
    commit(root, "p1", source("docs/a.md", "a"))
    commit(root, key, [], at=JANUARY, tombstones=[tombstone])
    assert probe.refresh().current() == left


@pytest.mark.parametrize(("at", "left"), [(APRIL, {}), (JANUARY, {A: "p1"})])
def test_its_own_time_counts_before_that_of_its_manifest(
    root: BusRoot, probe: CatalogProbe, at: str, left: dict[str, str]
) -> None:
    """A rewrite of the partition gives the manifest a new time; the tombstone keeps its own."""
    commit(root, "p1", source("docs/a.md", "a", at=FEBRUARY))
    commit(root, "p2", [], at=MARCH, tombstones=[Tombstone(parent_id=A, at=at)])
    assert probe.refresh().current() == left


def test_records_of_its_own_partition_stay(root: BusRoot, probe: CatalogProbe) -> None:
    commit(root, "p1", source("docs/a.md", "a"), tombstones=[Tombstone(parent_id=A, at=APRIL)])
    assert probe.refresh().current() == {A: "p1"}


def test_records_of_its_own_partition_stay_when_it_retires_a_newer_version_elsewhere(
    root: BusRoot, probe: CatalogProbe
) -> None:
    commit(root, "p1", source("docs/a.md", "newer, withdrawn", version="2", at=FEBRUARY))
    commit(root, "p2", source("docs/a.md", "put back", at=JANUARY), tombstones=[Tombstone(parent_id=A, at=APRIL)])
    assert probe.refresh().current() == {A: "p2"}


def test_a_later_version_brings_the_family_back(root: BusRoot, probe: CatalogProbe) -> None:
    commit(root, "p1", source("docs/a.md", "old", at=JANUARY))
    commit(root, "p2", [], at=FEBRUARY, tombstones=[BY_PARENT])
    commit(root, "p3", source("docs/a.md", "new", version="2", at=MARCH))
    assert probe.refresh().current() == {A: "p3"}
    assert probe.catalog.counts().superseded == 1


def test_a_withdrawn_document_does_not_bring_back_what_it_had_superseded(root: BusRoot, probe: CatalogProbe) -> None:
    commit(root, "p1", source("docs/a.md", "old", version="1", at=JANUARY))
    commit(root, "p2", source("docs/a.md", "new", version="2", at=FEBRUARY))
    commit(root, "p3", [], at=MARCH, tombstones=[Tombstone(document_id=document_id("docs/a.md", "2"))])
    assert probe.refresh().current() == {}


@pytest.mark.parametrize("same_partition", [True, False])
def test_withdrawing_a_superseded_document_leaves_the_newer_one(
    root: BusRoot, probe: CatalogProbe, same_partition: bool
) -> None:
    old, new = source("docs/a.md", "old", at=JANUARY), source("docs/a.md", "new", version="2", at=FEBRUARY)
    commit(root, "p1", [*old, *new] if same_partition else old)
    if not same_partition:
        commit(root, "p2", new)
    commit(root, "p3", [], at=MARCH, tombstones=[Tombstone(document_id=document_id("docs/a.md", "1"))])
    assert probe.refresh().current() == {A: "p1" if same_partition else "p2"}


def test_the_family_key_withdraws_one_tenant_alone(root: BusRoot, probe: CatalogProbe) -> None:
    north, south = json_hash(["north", A]), json_hash(["south", A])
    commit(root, "p1", source("docs/a.md", "ours", tenant_id="north", ids="n"))
    commit(root, "p2", source("docs/a.md", "theirs", tenant_id="south", ids="s", version="2"))
    commit(root, "p3", [], at=FEBRUARY, tombstones=[Tombstone(parent_id=north)])
    assert probe.refresh().current() == {south: "p2"}


@pytest.mark.parametrize("by", ["parent_id", "document_id"])
def test_a_tombstone_of_one_tenant_leaves_the_others(root: BusRoot, probe: CatalogProbe, by: str) -> None:
    south = json_hash(["south", A])
    commit(root, "p1", source("docs/a.md", "ours", tenant_id="north", ids="n"))
    commit(root, "p2", source("docs/a.md", "theirs", tenant_id="south", ids="s"))
    commit(root, "p3", source("docs/a.md", "nobody's", version="2"))
    names = {"parent_id": A, "document_id": document_id("docs/a.md")}
    commit(root, "p4", [], at=FEBRUARY, tombstones=[Tombstone(**{by: names[by]}, tenant_id="north")])
    assert probe.refresh().current() == {south: "p2", A: "p3"}


def test_an_empty_tenant_of_a_tombstone_withdraws_nobodys(root: BusRoot, probe: CatalogProbe) -> None:
    """It would mean every tenant's; so the partition is not taken in."""
    commit(root, "p1", source("docs/a.md", "a"))
    commit(root, "p2", [], at=FEBRUARY, tombstones=[Tombstone(parent_id=A, tenant_id="nobody")])
    manifest = root.manifest_file("p2")
    manifest.write_text(manifest.read_text(encoding="utf-8").replace('"nobody"', '""'), encoding="utf-8")
    assert probe.refresh().current() == {A: "p1"}
    (found,) = probe.catalog.findings()
    assert "tombstones[0].tenant_id is empty" in found.detail


def test_a_tombstone_added_to_a_partition_of_the_same_chunks_is_seen(root: BusRoot, probe: CatalogProbe) -> None:
    """The chunks file keeps its checksum: an empty one always does."""
    commit(root, "p1", [*source("docs/a.md", "a"), *source("docs/b.md", "b")])
    commit(root, "p2", [], at=FEBRUARY, tombstones=[Tombstone(parent_id=B)])
    assert probe.refresh().current() == {A: "p1"}
    commit(root, "p2", [], at=FEBRUARY, tombstones=[Tombstone(parent_id=B), BY_PARENT])
    assert probe.refresh().current() == {}
    commit(root, "p2", [], at=FEBRUARY)
    assert probe.refresh().current() == {A: "p1", B: "p1"}


def test_the_sources_own_parent_withdraws_it_for_every_tenant(root: BusRoot, probe: CatalogProbe) -> None:
    """And gives it back to every one: a family key is not the parent_id that the tombstone names."""
    commit(root, "p1", source("docs/a.md", "ours", tenant_id="north", ids="n"))
    commit(root, "p2", source("docs/a.md", "theirs", tenant_id="south", ids="s", version="2"))
    assert len(probe.refresh().current()) == 2
    commit(root, "p3", [], at=FEBRUARY, tombstones=[BY_PARENT])
    assert probe.refresh().current() == {}
    commit(root, "p3", [], at=FEBRUARY)
    assert probe.refresh().current() == {json_hash(["north", A]): "p1", json_hash(["south", A]): "p2"}
