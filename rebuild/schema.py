"""The tables of `state.db`, and the home's own id, which outlives them.

All of it but the id can be lost: a rebuild makes it again from the chunks.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlite_utils import Database, Migrations


_HOME_ID = "home.id"

RECORDS_OF_BUILD = ("compared", "moved", "receipt", "intent", "dead_letter", "changed", "stamp", "coverage")
"""Tables that name a build; in this order, of one that was not compared no moves are noted."""

_GENERATIONS = """
-- `shown`: readers have seen it; one that was never shown is being filled, or was left by a run that died.
create table generation (
    id text primary key, created_at text, encoder text, model text, model_fingerprint text, shown integer);
-- A generation may share a build with another: then both name it.
create table build (
    generation text references generation (id), sink text, id text, primary key (generation, sink));
-- What each sink shows under its public name, also of sinks that are not written any more.
create table public (sink text primary key, build text);
create table flipping (generation text primary key);
create table pointer (live text, previous text);
insert into pointer values (null, null);
create table pace (what text primary key, amount real, seconds real);
"""
_CATALOG = """
-- `taken` numbers each reading of a partition; numbers are never reused. A partition that is not valid now keeps the
-- chunks of its last valid reading; where there was none, `checksum` is null.
create table partition (
    taken integer primary key autoincrement, key text not null unique, signature text, state text not null,
    manifest text, checksum text, created_at text);
create table finding (partition text, code text, severity text, line integer, detail text);
create index finding_partition on finding (partition);
create table tombstone (partition text, parent_id text, document_id text, at text, tenant_id text);
create index tombstone_parent on tombstone (parent_id);
create index tombstone_document on tombstone (document_id);
-- Chunks are numbered, so that one that moves within its file moves in no index but that of places. `line`: a hash of
-- the chunk's line.
create table chunk (
    id integer primary key, partition text, offset integer, length integer, family text, parent_id text,
    document_id text, chunk_id text, text_hash text, source_checksum text, version text, created_at text, line blob);
create index chunk_place on chunk (partition, offset);
create index chunk_family on chunk (family, partition);
create index chunk_id on chunk (chunk_id);
create index chunk_document on chunk (document_id);
create index chunk_parent on chunk (parent_id);
-- Former texts of families. A partition that is chunked again leaves many texts behind, so a row is small.
create table former_text (family text, text_hash text, primary key (family, text_hash)) without rowid;
create table former_document (
    family text, document_id text, parent_id text, primary key (family, document_id)) without rowid;
create index former_document_id on former_document (document_id);
create index former_parent on former_document (parent_id);
"""
_DECISIONS = """
-- Each version of a family in a partition.
create table edition (family text, partition text, document_id text, source_checksum text, version text);
create index edition_family on edition (family, partition);
-- A family in one partition, in its last source_checksum there, with its rank. `content`: one hash for the lines of a
-- family; while it is the same, so are the projected documents.
create table standing (
    family text, partition text, taken integer, parent_id text, source_checksum text, first_offset integer,
    chunks integer, versions integer, rank text, content blob, primary key (family, partition)) without rowid;
-- The standing that counts, of each family that is not retired; hashes where it was projected.
create table current (
    family text primary key, partition text, taken integer, source_checksum text, first_offset integer,
    chunks integer, family_hash text, content blob) without rowid;
create index current_place on current (partition, first_offset);
create index current_unhashed on current (partition, first_offset) where family_hash is null;
-- Families that nobody touches for now, and why.
create table held (family text primary key, reason text, detail text) without rowid;
-- Families that changed since the last decision, and in which partition, so that those in which they stood before are
-- not read again; '' where only what counts must be decided again.
create table undecided (family text, partition text, primary key (family, partition)) without rowid;
create table projection (version integer);
create view current_chunk as
    select c.*, u.first_offset, u.taken from current u
    join chunk c on c.family = u.family and +c.partition = u.partition
    where c.source_checksum is u.source_checksum;
-- The same for queries by family, which then skip former versions.
create view family_chunk as
    select c.*, u.first_offset, u.taken from current u
    cross join chunk c indexed by chunk_family on c.family = u.family and c.partition = u.partition
    where c.source_checksum is u.source_checksum;
"""
_RECORDS = """
create table receipt (
    build text, family text, family_hash text, documents integer, label text,
    primary key (build, family)) without rowid;
-- An intent without its receipt says: what this build holds of this family is unknown.
create table intent (build text, family text, primary key (build, family)) without rowid;
create table dead_letter (
    build text, id text, family text, reason text, at text, primary key (build, id)) without rowid;
create index dead_letter_family on dead_letter (build, family);
-- The stamps that the build's marker may have: none before the first run that writes, two while a run changes it.
create table stamp (build text, stamp text, primary key (build, stamp)) without rowid;
-- Builds that were compared with the catalog as a whole.
create table compared (build text primary key) without rowid;
-- Families of theirs that differed then, or of which a row that a comparison goes by was written since; what was held
-- then was not compared.
create table moved (build text, family text, primary key (build, family)) without rowid;
"""
_CHECKS = """
-- Documents that a scan found changed. They are sent again, even if the engine reports the expected hash.
create table changed (build text, family text, id text, primary key (build, family, id)) without rowid;
-- How far spot checks have come: the last family, when this round began, when the last whole round began, and how many
-- rounds are due.
create table coverage (build text primary key, family text, began text, since text, due integer) without rowid;
"""
# No `insert or ignore` in a trigger: a statement with a policy of its own overrides it.
_NOTE_MOVED = """
create trigger {table}_{name} after {event} on {table} {condition} begin
    insert into moved select build, {row}.family from compared where {builds}
    on conflict do nothing; end
"""
_CHANGED = "when new.family_hash is not old.family_hash"
_MOVES = (
    ("current", "added", "insert", "", "new"),
    ("current", "changed", "update of family_hash", _CHANGED, "new"),
    ("current", "gone", "delete", "", "old"),
    ("held", "ended", "delete", "", "old"),
    ("receipt", "added", "insert", "", "new"),
    ("receipt", "changed", "update of family_hash", _CHANGED, "new"),
    ("receipt", "gone", "delete", "", "old"),
    ("intent", "added", "insert", "", "new"),
)


def migrations() -> Migrations:
    from sqlite_utils import Migrations  # slow to import

    found = Migrations("chunksink.state")
    found()(create_tables)
    found()(create_tables_of_checks)
    found()(drop_texts)
    return found


def create_tables(db: Database) -> None:
    for script in (_GENERATIONS, _CATALOG, _DECISIONS, _RECORDS):
        for statement in script.split(";\n"):
            db.execute(statement)
    for table, name, event, condition, row in _MOVES:
        builds = f"build = {row}.build" if table in RECORDS_OF_BUILD else "true"
        db.execute(_NOTE_MOVED.format(table=table, name=name, event=event, condition=condition, row=row, builds=builds))


def create_tables_of_checks(db: Database) -> None:
    for statement in _CHECKS.split(";\n"):
        db.execute(statement)


def drop_texts(db: Database) -> None:
    """A home of an earlier version has a column that is no longer used."""
    for table in ("current", "receipt"):
        if "texts" in db[table].columns_dict:
            db.execute(f"alter table {table} drop column texts")


def marks(values: Sequence[object]) -> str:
    """Placeholders for these in a statement."""
    return ", ".join("?" * len(values))


def number(db: Database, select: str, values: Sequence[object] | dict[str, Any] = ()) -> int:
    return int(db.execute(select, values).fetchone()[0])


def exists(db: Database, rows: str, values: Sequence[object] = ()) -> bool:
    return db.execute(f"select 1 from {rows} limit 1", values).fetchone() is not None


def home_id(home: Path) -> str:
    """Made once for a home. In a file of its own, so that a home that lost its records still knows its builds."""
    while (known := existing_home_id(home)) is None:
        new = home / f".{_HOME_ID}.{secrets.token_hex(4)}"
        new.write_text(secrets.token_hex(16), encoding="ascii")
        with suppress(FileExistsError):
            os.link(new, home / _HOME_ID)  # whole or not at all, and never over another's
        new.unlink()
    return known


def existing_home_id(home: Path) -> str | None:
    file = home / _HOME_ID
    return file.read_text(encoding="ascii") if file.exists() else None
