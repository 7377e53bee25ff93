"""A family whose lines are the same is known, whatever else its partition says now: it is not projected again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.identity import family_key, parent_id, tenant_id
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import read_lines
from chunksink.rebuild import families
from chunksink.rebuild.catalog_rows import COLUMNS, ContentOf, rows_of
from chunksink.sinks.document import Document
from chunksink.sinks.projection import project_family
from tests.support.bus import FEBRUARY, commit, projected, source
from tests.support.home import Home
from tests.support.local_engines import fts

A, B, C = source("docs/a.md", "first", "second"), source("docs/b.md", "other"), source("docs/c.md", "third")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that were projected."""
    seen: list[str] = []

    def noting(records: Sequence[Record]) -> list[Document]:
        seen.append(records[0]["provenance"]["source_uri"])
        return project_family(records)

    monkeypatch.setattr(families, "project_family", noting)
    return seen


@pytest.fixture
def synced(root: BusRoot, tmp_path: Path, read: list[str]) -> Home:
    home = Home(tmp_path / "home", root, fts)
    commit(root, "p1", [*A, *B])
    home.rebuild()
    home.sync()
    assert set(read) == {"docs/a.md", "docs/b.md"}
    read.clear()
    return home


def test_an_edit_beside_it_leaves_it_known(synced: Home, read: list[str]) -> None:
    edited = source("docs/b.md", "an edit, which is longer", version="2", at=FEBRUARY)
    commit(synced.root, "p1", [*C, *edited, *A])
    assert (synced.sync().families.changed, set(read)) == (1, {"docs/b.md", "docs/c.md"})
    assert synced.contents() == {"fts": projected(A, edited, C)}
    assert synced.verify().ok


def test_it_may_move_to_another_partition(synced: Home, read: list[str]) -> None:
    commit(synced.root, "p1", B)
    commit(synced.root, "p2", A)
    assert (synced.sync().families.unchanged, read) == (2, [])
    assert synced.verify().ok


@pytest.mark.parametrize(
    "change",
    [
        lambda: source("docs/a.md", "first", "second", tags=["new"]),
        lambda: source("docs/a.md", "first", "second", "more"),
        lambda: source("docs/a.md", "first"),
        lambda: source("docs/a.md", "first", "edited"),
        lambda: source("docs/a.md", "first", "second", ids="other "),
    ],
)
def test_whatever_else_its_lines_say_is_seen(synced: Home, read: list[str], change: Callable[[], list[Record]]) -> None:
    commit(synced.root, "p1", [*change(), *B])
    assert (synced.sync().families.changed, set(read)) == (1, {"docs/a.md"})
    assert synced.contents() == {"fts": projected(change(), B)}


def test_the_order_of_its_lines_is_nothing(synced: Home, read: list[str]) -> None:
    commit(synced.root, "p1", [*A[::-1], *B])
    assert (synced.sync().families.unchanged, read) == (2, [])
    assert synced.contents() == {"fts": projected(A[::-1], B)}


def test_one_that_is_unknown_makes_all_unknown() -> None:
    def content(*lines: bytes | None) -> bytes | None:
        of = ContentOf()
        for line in lines:
            of.step(line)
        return of.finalize()

    assert content(b"a" * 16, None) is None
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
def test_a_family_is_the_one_that_its_records_say(root: BusRoot, fields: dict[str, Any]) -> None:
    record = new_chunk(
        document_id="d", text="x", provenance=A[0]["provenance"], span_key=0, created_at=FEBRUARY, fields=fields
    )
    commit(root, "p1", [record])
    with root.chunks_file("p1").open("rb") as file:
        [row] = rows_of("p1", read_lines(file))
    with root.chunks_file("p1").open("rb") as file:
        [(place, line)] = read_lines(file)
    noted = dict(zip(COLUMNS.split(", "), row, strict=True))
    assert noted["family"] == family_key(parent_id(record), tenant_id(record))
    assert (noted["parent_id"], noted["offset"], noted["length"]) == (parent_id(record), place.offset, place.length)
    assert orjson.loads(line) == record
