"""A catalog refresh reads only what has changed."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from chunksink.chunkbus.errors import PartitionChanged
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild import catalog_rows, intake
from chunksink.rebuild.catalog import HeldFamily
from tests.support.bus import FEBRUARY, MARCH, commit, parent_of, source
from tests.support.home import CatalogProbe, Home

A, B, C = parent_of("docs/a.md"), parent_of("docs/b.md"), parent_of("docs/c.md")


def test_unchanged_partition_is_not_read_and_a_changed_one_is(
    root: FolderRoot, probe: CatalogProbe, opened_files: list[str]
) -> None:
    commit(root, "p1", source("docs/a.md", "a"))
    commit(root, "p2", source("docs/b.md", "b"))
    probe.refresh()
    assert set(opened_files) == {"p1", "p2"}
    opened_files.clear()
    commit(root, "p2", source("docs/b.md", "b, edited", "and longer", version="2", at=FEBRUARY))
    assert probe.refresh().current() == {A: "p1", B: "p2"}
    assert probe.catalog.counts().chunks == 3
    assert set(opened_files) == {"p2"}


def test_changed_manifest_over_the_same_chunks_is_read(root: FolderRoot, probe: CatalogProbe) -> None:
    """The manifest's time is the rank of chunks without a time."""
    commit(root, "p1", source("docs/a.md", "one", at=None), at=FEBRUARY)
    commit(root, "p2", source("docs/a.md", "two", version="2", at=None))
    assert probe.refresh().current() == {A: "p1"}
    manifest = json.loads(root.manifest_file("p2").read_bytes())
    root.manifest_file("p2").write_text(json.dumps(manifest | {"created_at": MARCH}))
    assert probe.refresh().current() == {A: "p2"}


def test_touched_files_are_read_once_and_change_nothing(
    root: FolderRoot, probe: CatalogProbe, opened_files: list[str]
) -> None:
    """File times are compared with each other, never with a clock. A changed time alone is no change of content."""
    commit(root, "p1", source("docs/a.md", "a"))
    (before,) = probe.refresh().catalog.families()
    for path, moment in ((root.chunks_file("p1"), 0), (root.manifest_file("p1"), 4_000_000_000)):
        os.utime(path, (moment, moment))
        opened_files.clear()
        assert list(probe.refresh().catalog.families()) == [before]
        assert set(opened_files) == {"p1"}
        opened_files.clear()
        probe.refresh()
        assert opened_files == []


@pytest.mark.promise(6)
def test_changed_rules_cause_a_new_read(
    root: FolderRoot, probe: CatalogProbe, opened_files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules depend on a setting and on the version of the rules."""
    records = source("docs/a.md", "a")
    del records[0]["provenance"]["source_checksum"], records[0]["hashes"]["chunk_object_hash"]
    commit(root, "p1", records)
    for required, held in ((False, 0), (True, 1), (False, 0)):
        opened_files.clear()
        rules = intake.Intake(root, probe.state, require_source_checksum=required)
        assert rules.pending() == ["p1"]
        rules.refresh()
        assert set(opened_files) == {"p1"}
        assert (rules.pending(), len(probe.catalog.held())) == ([], held)
        assert probe.current() == {A: "p1"}
    monkeypatch.setattr(intake, "RULES_VERSION", intake.RULES_VERSION + 1)
    assert rules.pending() == ["p1"]


def test_invalid_partition_is_held_until_it_is_valid_again(root: FolderRoot, probe: CatalogProbe) -> None:
    commit(root, "p1", source("docs/a.md", "before"))
    probe.refresh()
    commit(root, "p1", [*source("docs/b.md", "b0", "b1"), *source("docs/c.md", "c")])
    good = root.chunks_file("p1").read_bytes()
    root.chunks_file("p1").write_bytes(good[:-20])
    assert probe.refresh().current() == {A: "p1"}
    assert probe.catalog.held() == [HeldFamily(A, "invalid", "partition p1 is invalid")]
    codes = {(finding.code, finding.partition) for finding in probe.catalog.findings() if finding.is_error}
    assert ("SCHEMA_INVALID:json_parse", "p1") in codes
    root.chunks_file("p1").write_bytes(good)
    assert probe.refresh().current() == {B: "p1", C: "p1"}
    assert probe.catalog.counts().chunks == 3
    assert (probe.catalog.held(), probe.catalog.findings()) == ([], [])


def test_partition_rewritten_at_every_read_stops_the_run(
    root: FolderRoot, probe: CatalogProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(root, "p1", source("docs/a.md", "before"))
    probe.refresh()
    commit(root, "p1", source("docs/b.md", "0"))
    real, times = catalog_rows._values, iter(range(1, 99))

    def rewriting(*arguments: Any) -> Any:
        commit(root, "p1", source("docs/b.md", f"{next(times)}"))
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(catalog_rows, "_values", rewriting)
        with pytest.raises(PartitionChanged, match="p1"):
            probe.refresh()
    assert next(times) > 3, "it was read several times"
    assert probe.current() == {A: "p1"}
    assert probe.refresh().current() == {B: "p1"}


def test_id_shared_only_by_a_superseded_version_is_no_conflict(root: FolderRoot, home: Home) -> None:
    old, other = source("docs/a.md", "old"), source("docs/b.md", "b")
    old[0]["chunk_id"] = other[0]["chunk_id"] = "the-same"
    commit(root, "p1", old)
    commit(root, "p2", [*other, *source("docs/a.md", "new", version="2", at=FEBRUARY)])
    assert home.rebuild().families == 2
