"""A family with unchanged lines is not read, decided or projected again, even if its partition changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.identity import family_key, parent_id, tenant_id
from chunksink.chunkbus.manifest import Tombstone
from chunksink.chunkbus.reader import read_lines
from chunksink.rebuild import families
from chunksink.rebuild.catalog_rows import CHUNK_COLUMNS, LINE_COLUMNS, ContentOf, rows_of
from chunksink.rebuild.family_versions import decide
from chunksink.rebuild.intake import Intake
from chunksink.sinks.document import Document
from chunksink.sinks.projection import project_family
from tests.support.bus import FEBRUARY, commit, parent_of, projected, source
from tests.support.home import CatalogProbe, Home
from tests.support.local_engines import fts

A, B, C = (
    source("docs/a.md", "first", "second"),
    source("docs/b.md", "other", "another"),
    source("docs/c.md", "third", "fourth"),
)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that were projected."""
    seen: list[str] = []

    def noting(records: Iterable[Record], *fields: Any, **part: Any) -> list[Document]:
        members = list(records)
        seen.append(members[0]["provenance"]["source_uri"])
        return project_family(members, *fields, **part)

    monkeypatch.setattr(families, "project_family", noting)
    return seen


@pytest.fixture
def synced(root: FolderRoot, tmp_path: Path, read: list[str]) -> Home:
    home = Home(tmp_path / "home", root, fts)
    commit(root, "p1", [*A, *B])
    home.rebuild()
    home.sync()
    assert set(read) == {"docs/a.md", "docs/b.md"}
    read.clear()
    return home


def test_neighbouring_edit_leaves_a_family_known(synced: Home, read: list[str]) -> None:
    edited = source("docs/b.md", "an edit, which is longer", version="2", at=FEBRUARY)
    commit(synced.root, "p1", [*C, *edited, *A])
    assert (synced.sync().families.changed, set(read)) == (1, {"docs/b.md", "docs/c.md"})
    assert synced.contents() == {"fts": projected(A, edited, C)}
    assert synced.verify().ok


def test_family_moved_to_another_partition_and_order_stays_known(synced: Home, read: list[str]) -> None:
    commit(synced.root, "p1", B)
    commit(synced.root, "p2", A[::-1])
    assert (synced.sync().families.unchanged, read) == (2, [])
    assert synced.verify().ok


@pytest.mark.parametrize(
    "changed",
    [
        source("docs/a.md", "first", "second", tags=["new"]),
        source("docs/a.md", "first", "second", "more"),
        source("docs/a.md", "first"),
        source("docs/a.md", "first", "edited"),
        source("docs/a.md", "first", "second", ids="other "),
    ],
)
def test_change_in_any_other_field_is_seen(synced: Home, read: list[str], changed: list[Record]) -> None:
    commit(synced.root, "p1", [*changed, *B])
    assert (synced.sync().families.changed, set(read)) == (1, {"docs/a.md"})
    assert synced.contents() == {"fts": projected(changed, B)}


def test_lines_in_any_order_have_one_content_hash() -> None:
    def content(*lines: bytes) -> bytes:
        of = ContentOf()
        for line in lines:
            of.step(line)
        return of.finalize()

    assert content(b"a" * 16, b"b" * 16) == content(b"b" * 16, b"a" * 16) != content(b"a" * 16)
    assert content(b"a" * 16) != content(b"a" * 16, b"a" * 16)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"parent_id": "p"},
        {"parent_id": "", "metadata": {"parent_id": "of metadata"}},
        {"parent_id": "p", "metadata": {"parent_id": "of metadata"}},
        {"metadata": {"parent_id": None, "tenant_id": "", "other": {"parent_id": "no"}}},
        {"tenant_id": "acme", "metadata": {"tenant_id": "other"}},
        {"metadata": {"tenant_id": "acme", "parent_id": ""}},
        {"metadata": {"tenant_id": None}},
    ],
)
def test_family_key_follows_its_records(root: FolderRoot, fields: dict[str, Any]) -> None:
    record = new_chunk(
        document_id="d", text="x", provenance=A[0]["provenance"], span_key=0, created_at=FEBRUARY, fields=fields
    )
    commit(root, "p1", [record])
    with root.chunks_file("p1").open("rb") as file:
        [(of_line, of_chunk)] = rows_of("p1", read_lines(file), 0)
    with root.chunks_file("p1").open("rb") as file:
        [(place, line)] = read_lines(file)
    noted = dict(zip([*LINE_COLUMNS.split(", "), *CHUNK_COLUMNS.split(", ")], [*of_line, *of_chunk], strict=True))
    assert noted["family"] == family_key(parent_id(record), tenant_id(record))
    assert (noted["parent_id"], noted["offset"], noted["length"]) == (parent_id(record), place.offset, place.length)
    assert orjson.loads(line) == record


NEW_B = source("docs/b.md", "second", "an edit that is longer", version="2", at=FEBRUARY)


def undecided(root: FolderRoot, probe: CatalogProbe) -> set[str]:
    """The undecided families after the bus was read."""
    Intake(root, probe.state).read()
    return {family for (family,) in probe.state.db.execute("select distinct family from undecided")}


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ([*A, *B, *C], [*A, *NEW_B, *C], "b"),
        ([*A, *B], [*A, *B, *C], "c"),
        ([*A, *B, *C], [*B, *C], "a"),
        ([*A, *B], [*A, *source("docs/b.md", "other")], "b"),
        ([*A, *B], [A[0], *B, A[1]], "ab"),
        ([*A, *B], [*B, *A], "ab"),
        ([*A, *B], [], "ab"),
    ],
)
def test_only_changed_families_are_decided(
    before: Sequence[Record],
    after: Sequence[Record],
    changed: str,
    root: FolderRoot,
    probe: CatalogProbe,
    tmp_path: Path,
) -> None:
    """If the order changes, all families are decided, since the last version counts. Other families only move."""
    commit(root, "p1", before)
    probe.refresh()
    commit(root, "p1", after)
    assert undecided(root, probe) == {parent_of(f"docs/{name}.md") for name in changed}
    decide(probe.state.db)
    new = CatalogProbe(tmp_path / "new", root).refresh()
    for table in ("last_version", "current"):
        versions = f"select family, partition, chunks, content from {table} order by family"
        assert probe.state.db.execute(versions).fetchall() == new.state.db.execute(versions).fetchall()
    places = "select chunk_id, offset, length, line from chunk join chunk_line using (id) order by offset"
    assert probe.state.db.execute(places).fetchall() == new.state.db.execute(places).fetchall()
    new.state.db.close()


def test_rows_of_an_unchanged_family_stay(root: FolderRoot, probe: CatalogProbe) -> None:
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


def test_withdrawal_by_name_does_not_depend_on_history(root: FolderRoot, probe: CatalogProbe, tmp_path: Path) -> None:
    """Chunks of one family may have its parent_id or its key."""
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


def test_hashes_from_an_outdated_read_are_not_recorded(root: FolderRoot, probe: CatalogProbe) -> None:
    """The partition was read again meanwhile."""

    def noted() -> list[tuple[str | None, ...]]:
        return probe.state.db.execute("select family_hash from current").fetchall()

    commit(root, "p1", source("docs/a.md", "a"))
    (before,) = probe.refresh().catalog.families()
    commit(root, "p1", source("docs/a.md", "a, edited", version="2"))
    (now,) = probe.refresh().catalog.families()
    probe.catalog.note_hashes([(now.family, before.reading_id, "old hash")])
    assert noted() == [(None,)]
    probe.catalog.note_hashes([(now.family, now.reading_id, "hash")])
    assert noted() == [("hash",)]
