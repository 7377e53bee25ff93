"""What a refresh reads, what it drops, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chunkbus.layout import BusRoot
from chunkbus.manifest import ManifestProducer
from chunkbus.writer import PartitionWriter
from rebuild.errors import InvalidBus
from tests.rebuild.support import FEBRUARY, MARCH, CatalogProbe, Home, commit, parent_of, source

A, B, C = parent_of("docs/a.md"), parent_of("docs/b.md"), parent_of("docs/c.md")


def test_an_unchanged_partition_is_not_read_and_a_changed_one_is(root: BusRoot, probe: CatalogProbe) -> None:
    commit(root, "p1", source("docs/a.md", "a"))
    commit(root, "p2", source("docs/b.md", "b"))
    probe.refresh()
    root.chunks_file("p1").write_text("whoever reads this stumbles")
    commit(root, "p2", source("docs/b.md", "b, edited", "and longer", version="2", at=FEBRUARY))
    assert probe.refresh().current() == {A: "p1", B: "p2"}
    assert probe.catalog.counts().chunks == 3


def test_a_changed_manifest_over_the_same_chunks_reads_no_chunks(root: BusRoot, probe: CatalogProbe) -> None:
    """Its time is a rank, where chunks have none."""
    commit(root, "p1", source("docs/a.md", "one", at=None), at=FEBRUARY)
    commit(root, "p2", source("docs/a.md", "two", version="2", at=None))
    assert probe.refresh().current() == {A: "p1"}
    manifest = json.loads(root.manifest_file("p2").read_bytes())
    root.manifest_file("p2").write_text(json.dumps(manifest | {"created_at": MARCH}))
    root.chunks_file("p2").write_text("whoever reads this stumbles")
    assert probe.refresh().current() == {A: "p2"}


def test_what_left_a_partition_and_a_partition_that_left_are_dropped(root: BusRoot, probe: CatalogProbe) -> None:
    commit(root, "p1", [*source("docs/a.md", "a"), *source("docs/b.md", "b")])
    commit(root, "p2", source("docs/c.md", "c"))
    assert probe.refresh().current() == {A: "p1", B: "p1", C: "p2"}
    commit(root, "p1", source("docs/b.md", "b"))
    root.chunks_file("p2").unlink()
    root.manifest_file("p2").unlink()
    assert probe.refresh().current() == {B: "p1"}


def test_the_older_version_counts_again_when_the_newer_partition_leaves(root: BusRoot, probe: CatalogProbe) -> None:
    commit(root, "p1", source("docs/a.md", "old"))
    commit(root, "p2", source("docs/a.md", "new", version="2", at=FEBRUARY))
    assert probe.refresh().current() == {A: "p2"}
    commit(root, "p2", [], at=FEBRUARY)
    assert probe.refresh().current() == {A: "p1"}


def test_a_partition_that_failed_halfway_is_taken_in_whole_the_next_time(root: BusRoot, probe: CatalogProbe) -> None:
    """And until then the catalog says what it said before."""
    commit(root, "p1", source("docs/a.md", "before"))
    probe.refresh()
    commit(root, "p1", [*source("docs/b.md", "b0", "b1"), *source("docs/c.md", "c")])
    good = root.chunks_file("p1").read_bytes()
    root.chunks_file("p1").write_bytes(good[:-20])
    with pytest.raises(ValueError, match="unexpected end of data"):
        probe.refresh()
    assert probe.current() == {A: "p1"}
    root.chunks_file("p1").write_bytes(good)
    assert probe.refresh().current() == {B: "p1", C: "p1"}
    assert probe.catalog.counts().chunks == 3


def test_chunks_that_wait_for_their_name_are_read(root: BusRoot, probe: CatalogProbe) -> None:
    """A writer was killed after its commit: the manifest names the waiting file."""

    class Killed(BaseException):
        pass

    def die(step: str) -> None:
        if step == "manifest_committed":
            raise Killed

    commit(root, "p1", source("docs/a.md", "old"))
    with pytest.raises(Killed), PartitionWriter(root, "p1", on_step=die) as writer:
        writer.add(source("docs/b.md", "new")[0])
        writer.commit(documents=1, producer=ManifestProducer("tests", "1"), created_at=FEBRUARY)
    assert probe.refresh().current() == {B: "p1"}


def test_an_id_that_two_current_families_claim_is_refused_with_both_names(root: BusRoot, home: Home) -> None:
    one, other = source("docs/a.md", "a"), source("docs/b.md", "b")
    one[0]["chunk_id"] = other[0]["chunk_id"] = "the-same"
    commit(root, "p1", one)
    commit(root, "p2", other)
    with pytest.raises(InvalidBus) as refused:
        home.rebuild()
    for name in ("the-same", "docs/a.md@1", "docs/b.md@1", "partition p1", "partition p2"):
        assert name in str(refused.value)
    assert home.builds() == {"fts": [], "memory": []}


def test_two_tenants_that_claim_one_id_are_told_apart_in_the_message(root: BusRoot, home: Home) -> None:
    commit(root, "p1", source("docs/a.md", "same", tenant_id="north", parent_id="ours"))
    commit(root, "p2", source("docs/a.md", "same", tenant_id="south", parent_id="ours"))
    with pytest.raises(InvalidBus, match=r"partition p1 at byte 0 and .*partition p2 at byte 0"):
        home.rebuild()


def test_an_id_that_only_a_superseded_version_shares_is_no_conflict(root: BusRoot, home: Home) -> None:
    old, other = source("docs/a.md", "old"), source("docs/b.md", "b")
    old[0]["chunk_id"] = other[0]["chunk_id"] = "the-same"
    commit(root, "p1", old)
    commit(root, "p2", [*other, *source("docs/a.md", "new", version="2", at=FEBRUARY)])
    assert home.rebuild().families == 2


def test_a_catalog_is_kept_between_runs(tmp_path: Path, root: BusRoot, probe: CatalogProbe) -> None:
    commit(root, "p1", source("docs/a.md", "a"))
    probe.refresh()
    root.chunks_file("p1").write_text("whoever reads this stumbles")
    assert CatalogProbe(tmp_path / "home", root).refresh().current() == {A: "p1"}
