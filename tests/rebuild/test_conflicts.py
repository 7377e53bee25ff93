"""Families that contradict each other or themselves are held."""

from __future__ import annotations

from itertools import combinations, product
from pathlib import Path
from random import Random

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild.errors import InvalidBus
from tests.rebuild.conftest import OLD_A, OLD_B, OLD_C
from tests.support.bus import FEBRUARY, MARCH, commit, parent_of, projected, source
from tests.support.home import CatalogProbe, Home, reasons
from tests.support.tampering import require_sound
from tests.support.watched_sinks import Calls

A, B, C, D = (parent_of(f"docs/{name}.md") for name in "abcd")


def test_two_families_with_one_id_are_both_held(root: BusRoot, indexed: Home, tmp_path: Path) -> None:
    one, other = source("docs/a.md", "a, edited", version="2"), source("docs/d.md", "d")
    one[0]["chunk_id"] = other[0]["chunk_id"] = "the-same"
    commit(root, "p1", one, at=FEBRUARY)
    commit(root, "p3", other)
    calls = Calls()
    indexed.sync(wrap=calls)
    assert calls == [], "a stays unchanged, d is not indexed"
    assert indexed.contents()["fts"] == projected(OLD_A, OLD_B, OLD_C)
    found = indexed.held()
    assert found.keys() == {A, D}
    for each in found.values():
        assert each.reason == "duplicate id"
        for name in ("the-same", "docs/a.md@2", "docs/d.md@1", "partition p1, byte 0", "partition p3, byte 0"):
            assert name in each.detail
    assert indexed.verify().ok
    with pytest.raises(InvalidBus, match=r"(?s)duplicate id: chunk_id the-same.*status --all"):
        indexed.rebuild()
    commit(root, "p4", another := source("docs/e.md", "e"))
    indexed.sync()
    assert indexed.held().keys() == {A, D}, "despite other changes"
    assert indexed.contents()["fts"] == projected(OLD_A, OLD_B, OLD_C, another)
    commit(root, "p3", source("docs/d.md", "d", version="2"))
    indexed.sync(wrap=calls)
    assert (calls.sent("fts"), reasons(indexed)) == (sorted([A, D]), {})
    require_sound(indexed, tmp_path)


def test_two_tenants_with_one_id_are_distinguished(root: BusRoot, home: Home) -> None:
    commit(root, "p1", source("docs/a.md", "same", tenant_id="north", parent_id="ours"))
    commit(root, "p2", source("docs/a.md", "same", tenant_id="south", parent_id="ours"))
    commit(root, "p3", OLD_B)
    with pytest.raises(InvalidBus, match="duplicate id"):
        home.rebuild()
    assert home.builds() == {"fts": [], "memory": []}
    home.rebuild(leave_out_held=True)
    assert home.contents()["fts"] == projected(OLD_B), "the first index has only sources without a conflict"
    details = [each.detail for each in home.held().values()]
    assert len(details) == 2
    assert all("partition p1, byte 0" in detail and "partition p2, byte 0" in detail for detail in details)


def test_parts_of_a_split_version_do_not_count_as_older_versions(root: BusRoot, probe: CatalogProbe) -> None:
    whole = source("docs/a.md", "one", "two")
    for record in whole:
        del record["chunk_count"], record["hashes"]["chunk_object_hash"]
    commit(root, "p1", [*whole, *OLD_B])
    assert probe.refresh().catalog.counts().superseded == 0
    commit(root, "p1", [*whole[:1], *OLD_B], at=FEBRUARY)
    commit(root, "p2", whole[1:], at=MARCH)
    catalog = probe.refresh().catalog
    assert [each.family for each in catalog.held()] == [parent_of("docs/a.md")]
    assert catalog.counts().superseded == 0


def test_version_is_split_when_two_partitions_share_no_id(root: BusRoot, probe: CatalogProbe) -> None:
    """Compared with a direct implementation of the rule, for many random sources in four partitions."""
    chance = Random(5)
    versions: dict[tuple[str, str], dict[str, set[str]]] = {}
    for key in ("p1", "p2", "p3", "p4"):
        records = []
        for name, version in product(map(str, range(80)), "12"):
            ids = {f"{name} {version} {number}" for number in range(3) if chance.random() < 0.6}
            if chance.random() < 0.7 and ids:
                versions.setdefault((name, version), {})[key] = ids
                chunks = source(name, *ids, version=version)
                for record, chunk_id in zip(chunks, ids, strict=True):
                    record["chunk_id"] = chunk_id
                    del record["hashes"]["chunk_object_hash"]
                records += chunks
        commit(root, key, records)
    split = {
        parent_of(name)
        for (name, _), partitions in versions.items()
        if any(one.isdisjoint(other) for one, other in combinations(partitions.values(), 2))
    }
    assert 10 < len(split) < 70
    held = {each.family: each.detail for each in probe.refresh().catalog.held()}
    assert held.keys() == split
    for (name, _), partitions in versions.items():
        for one, other in combinations(partitions, 2):
            is_split = partitions[one].isdisjoint(partitions[other])
            if is_split and held.get(parent_of(name), "").endswith(f"{one} and {other}"):
                del held[parent_of(name)]
    assert held == {}
