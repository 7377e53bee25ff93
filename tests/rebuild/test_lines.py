"""A partition that is written anew: what still stands in it is neither read again nor decided again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import family_key
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import Tombstone
from chunksink.chunkbus.reader import read_partition
from chunksink.rebuild.intake import Intake
from tests.support.bus import FEBRUARY, commit, parent_of, source
from tests.support.home import CatalogProbe

A, B, C = (source(f"docs/{name}.md", f"{name} one", f"{name} two") for name in "abc")
NEW_B = source("docs/b.md", "b two", "b, an edit that is longer", version="2", at=FEBRUARY)


def undecided(root: BusRoot, probe: CatalogProbe) -> set[str]:
    """The families that the next decision is about, once the bus is read."""
    Intake(root, probe.state).run()
    return {family for (family,) in probe.state.db.execute("select distinct family from undecided")}


def first_offsets(probe: CatalogProbe, table: str) -> set[tuple[str, int]]:
    return set(probe.state.db.execute(f"select family, first_offset from {table}").fetchall())


def lines_of(root: BusRoot) -> list[tuple[str, int]]:
    """Source and place of each chunk."""
    return [(record["provenance"]["source_uri"], place.offset) for place, record in read_partition(root, "p1")]


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ([*A, *B, *C], [*A, *NEW_B, *C], "b"),
        ([*A, *B, *C], [*NEW_B, *A, *C], "b"),
        ([*A, *B], [*A, *B, *C], "c"),
        ([*B, *C], [*A, *B, *C], "a"),
        ([*A, *B, *C], [*B, *C], "a"),
        ([*A, *B], [*A, *source("docs/b.md", "b one")], "b"),
        ([*A, *B], [A[0], *B, A[1]], "ab"),
        ([*A, *B], [*B, *A], "ab"),
        ([*A, *B], [], "ab"),
    ],
)
def test_only_what_changed_is_decided(
    before: Sequence[Record], after: Sequence[Record], changed: str, root: BusRoot, probe: CatalogProbe
) -> None:
    """In another order it is all of it: the last of several versions counts."""
    commit(root, "p1", before)
    probe.refresh()
    commit(root, "p1", after)
    assert undecided(root, probe) == {parent_of(f"docs/{name}.md") for name in changed}
    probe.catalog.decide()
    for table in ("standing", "current"):
        assert first_offsets(probe, table) == {
            (parent_of(f"docs/{name}.md"), min(places))
            for name in "abc"
            if (places := [place for uri, place in lines_of(root) if uri == f"docs/{name}.md"])
        }


def test_its_rows_stay(root: BusRoot, probe: CatalogProbe) -> None:
    def rows() -> dict[str, int]:
        return dict(probe.state.db.execute("select chunk_id, id from chunk").fetchall())

    commit(root, "p1", [*A, *B, *C])
    probe.refresh()
    before = rows()
    commit(root, "p1", [*NEW_B, *A, *C])
    probe.refresh()
    assert {name: rows()[name] for name in before if name in rows()} == {
        record["chunk_id"]: before[record["chunk_id"]] for record in [*A, *C]
    }


def test_by_which_name_a_source_is_withdrawn_depends_on_no_history(
    root: BusRoot, probe: CatalogProbe, tmp_path: Path
) -> None:
    """Chunks of one family may name it and its key."""
    named, keyed = (source("docs/a.md", name, ids=name, parent_id=name) for name in ("x", family_key("x", None)))
    for record in (*named, *keyed):
        del record["chunk_count"]
    commit(root, "withdrawn", [], at=FEBRUARY, tombstones=[Tombstone(parent_id="x", at=FEBRUARY)])
    for lines in (named, [*keyed, *named]):
        commit(root, "p1", lines)
        probe.refresh()
    new = CatalogProbe(tmp_path / "new", root)
    assert new.refresh().current() == probe.current()
    new.state.db.close()
