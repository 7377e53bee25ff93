"""A `state.db` of an earlier chunksink goes on where it was, also one whose run died between reading and deciding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild.state import State
from tests.rebuild.engines import fts
from tests.rebuild.support import FEBRUARY, Home, commit, projected, source

KEEP, OTHER = source("docs/keep.md", "stays"), source("docs/other.md", "other")
GONE = source("docs/gone.md", "is taken out")
MOVES, MOVED = (
    source("docs/moves.md", "was in the third", at="2026-05-01T00:00:00Z"),
    source("docs/moves.md", "is in the second", version="2", at=FEBRUARY),
)


@pytest.fixture
def undecided(root: BusRoot, tmp_path: Path) -> Iterator[Home]:
    """What has changed was read and not decided; then the tables are made as they were before editions."""
    commit(root, "p1", [*KEEP, *GONE])
    commit(root, "p2", OTHER)
    commit(root, "p3", MOVES)
    home = Home(tmp_path / "home", root, fts)
    home.rebuild()
    commit(root, "p1", KEEP)
    commit(root, "p2", [*OTHER, *MOVED])
    commit(root, "p3", [])
    with home.work() as work:
        work.intake.run()
    with State(home.folder) as state:
        state.db.executescript(
            """
            create table before (family text primary key) without rowid;
            insert or ignore into before select family from undecided;
            drop view family_chunk; drop table edition; drop table undecided;
            alter table before rename to undecided;
            delete from _sqlite_migrations where name = 'create_editions';
            """
        )
    yield home


def test_what_was_not_decided_is(undecided: Home) -> None:
    undecided.sync()
    assert undecided.contents() == {"fts": projected(KEEP, OTHER, MOVED)}
    with State(undecided.folder) as state:
        standing = state.db.execute("select family, partition from standing order by partition, family").fetchall()
        assert len(standing) == 3
        assert {partition for _, partition in standing} == {"p1", "p2"}
        assert state.db.execute("select count(*) from edition").fetchone() == (3,)
    undecided.rebuild()
    assert undecided.contents() == {"fts": projected(KEEP, OTHER, MOVED)}


@pytest.fixture
def placed(root: BusRoot, tmp_path: Path) -> Iterator[Home]:
    """Chunks were known by their places."""
    commit(root, "p1", [*KEEP, *MOVED])
    commit(root, "p2", OTHER)
    home = Home(tmp_path / "home", root, fts)
    home.rebuild()
    with State(home.folder) as state:
        state.db.executescript(
            """
            drop view current_chunk; drop view family_chunk;
            create table placed (
                partition text, offset integer, length integer, family text, parent_id text, document_id text,
                chunk_id text, text_hash text, source_checksum text, version text, created_at text, line blob,
                primary key (partition, offset)) without rowid;
            insert into placed
                select partition, offset, length, family, parent_id, document_id, chunk_id, text_hash, source_checksum,
                version, created_at, line from chunk;
            drop table chunk;
            alter table placed rename to chunk;
            create index chunk_family on chunk (family, partition);
            create view current_chunk as select * from chunk;
            create view family_chunk as select * from chunk indexed by chunk_family where family > '';
            delete from _sqlite_migrations where name = 'create_numbers_of_chunks';
            """
        )
    yield home


def test_chunks_that_were_known_by_their_places_are(placed: Home) -> None:
    commit(placed.root, "p1", [*GONE, *MOVED])
    report = placed.sync()
    assert (report.families.added, report.families.removed, report.families.unchanged) == (1, 1, 2)
    assert placed.contents() == {"fts": projected(GONE, MOVED, OTHER)}
    placed.rebuild()
    assert placed.contents() == {"fts": projected(GONE, MOVED, OTHER)}
