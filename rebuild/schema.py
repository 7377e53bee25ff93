"""The tables of `state.db`, and the home's id, which is a separate file.

`state.db` can be lost: a rebuild recreates it from the chunks.
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
_SCHEMA = "tables 3"
"""Change it with the tables: a `state.db` with another schema is refused."""

RECORDS_OF_BUILD = (
    "compared",
    "to_compare",
    "receipt",
    "intent",
    "dead_letter",
    "changed",
    "stamp",
    "coverage",
    "projected",
)
"""Tables with rows of builds. Deleting from `compared` first keeps triggers from adding to `to_compare`."""

_GENERATIONS = """
-- `shown`: it was live once; else it is being filled, or a run that filled it did not finish.
create table generation (
    id text primary key, created_at text, encoder text, model text, model_fingerprint text, shown integer);
-- Generations may share a build.
create table build (
    generation text references generation (id), sink text, id text, primary key (generation, sink));
-- The build shown under each sink's public name, by which other programs find the index. The table also has rows for
-- sinks that are no longer configured.
create table public (sink text primary key, build text);
-- The target of a flip that has begun.
create table flipping (generation text primary key);
create table pointer (live text, previous text);
insert into pointer values (null, null);
create table pace (what text primary key, amount real, seconds real);
"""
_CATALOG = """
-- `reading_id` identifies the last reading that was valid. A partition that is missing or invalid now keeps the chunks
-- of that reading. If it was never valid, `checksum` is null. If `signature` is null, the next refresh reads it again.
create table partition (
    reading_id integer primary key autoincrement, key text not null unique, signature text, state text not null,
    manifest text, checksum text, created_at text);
create table finding (partition text, code text, severity text, line integer, detail text);
create index finding_partition on finding (partition);
create table tombstone (partition text, parent_id text, document_id text, at text, tenant_id text);
create index tombstone_parent on tombstone (parent_id);
create index tombstone_document on tombstone (document_id);
-- `context`: the hash of the words that are embedded before the text.
create table chunk (
    id integer primary key, partition text, family text, parent_id text, document_id text, chunk_id text,
    text_hash text, source_checksum text, version text, created_at text, context blob not null default x'');
create index chunk_partition on chunk (partition);
create index chunk_family on chunk (family, partition);
create index chunk_id on chunk (chunk_id);
create index chunk_document on chunk (document_id);
create index chunk_parent on chunk (parent_id);
-- The place of each chunk in its file, and `line`, the hash of its line. A table of its own, without an index: most
-- chunks of a file move when one of them changes, and then only these short rows are updated.
create table chunk_line (id integer primary key, offset integer, length integer, line blob);
create trigger chunk_gone after delete on chunk begin delete from chunk_line where id = old.id; end;
-- Former texts of families. There can be many, after a partition was chunked again.
create table former_text (family text, text_hash text, primary key (family, text_hash)) without rowid;
create table former_document (
    family text, document_id text, parent_id text, primary key (family, document_id)) without rowid;
create index former_document_id on former_document (document_id);
create index former_parent on former_document (parent_id);
"""
_DECISIONS = """
-- Every version of a family in each partition.
create table family_version (family text, partition text, document_id text, source_checksum text, version text);
create index family_version_family on family_version (family, partition);
-- A family's last version in one partition. `rank` is a time: the newest `created_at` of its chunks if all have one,
-- else the manifest's. `content` is the hash of its lines; if it has not changed, the projected documents are the same.
-- `first`: the lowest id of its chunks, for an order that is nearly that of the files.
create table last_version (
    family text, partition text, reading_id integer, parent_id text, source_checksum text, first integer,
    chunks integer, versions integer, rank text, content blob, primary key (family, partition)) without rowid;
-- The version of each family that counts; no row if all are retired. `family_hash` is null until the
-- documents of the family are hashed.
create table current (
    family text primary key, partition text, reading_id integer, source_checksum text, first integer,
    chunks integer, family_hash text, content blob) without rowid;
create index current_first on current (first);
create index current_unhashed on current (first) where family_hash is null;
-- Families that stay in the index unchanged, and why.
create table held (family text primary key, reason text, detail text) without rowid;
-- Families whose current version must be decided again, and the partition in which they changed; '' if they have not
-- changed in any.
create table undecided (family text, partition text, primary key (family, partition)) without rowid;
create table projection (version integer);
create view current_chunk as
    select c.*, l.offset, l.length, l.line, u.first, u.reading_id from current u
    join chunk c on c.family = u.family and +c.partition = u.partition left join chunk_line l on l.id = c.id
    where c.source_checksum is u.source_checksum;
-- The same rows, for queries by family: the index lets them skip other partitions.
create view family_chunk as
    select c.*, l.offset, l.length, l.line, u.first, u.reading_id from current u
    cross join chunk c indexed by chunk_family on c.family = u.family and c.partition = u.partition
    left join chunk_line l on l.id = c.id
    where c.source_checksum is u.source_checksum;
"""
_RECORDS = """
-- `confirmed`: if a scan found that the family differs (`family_hash` is ''), how many documents count for the brake:
-- the number before the scan or, if the build had no receipts, the number found.
create table receipt (
    build text, family text, family_hash text, documents integer, label text, confirmed integer,
    primary key (build, family)) without rowid;
-- While an intent is open, the family's state in the build is unknown.
create table intent (build text, family text, primary key (build, family)) without rowid;
create table dead_letter (
    build text, id text, family text, reason text, at text, primary key (build, id)) without rowid;
create index dead_letter_family on dead_letter (build, family);
-- The stamps that the build's marker may have: none before the first write, two during a change.
create table stamp (build text, stamp text, primary key (build, stamp)) without rowid;
-- Builds that were compared with the catalog as a whole.
create table compared (build text primary key) without rowid;
-- Families of compared builds that must be compared again: they differed or were held, or rows about them have changed.
create table to_compare (build text, family text, primary key (build, family)) without rowid;
-- Documents that a scan found changed. They are sent again, even if the engine reports the expected hash.
create table changed (build text, family text, id text, primary key (build, family, id)) without rowid;
-- Progress of spot checks: the last family, when this round began, when the last complete round began, and how many
-- rounds are due.
create table coverage (build text primary key, family text, began text, since text, due integer) without rowid;
-- The projection by which all documents of a build were written.
create table projected (build text primary key, projection text) without rowid;
-- Work of all runs of this home, for metrics.
create table total (what text, part text, amount real, primary key (what, part)) without rowid;
"""
# Triggers that fill `to_compare`. Not `insert or ignore`: the conflict policy of the statement that fires a trigger
# would override it.
_TRIGGER = """
create trigger {table}_{name} after {event} on {table} {condition} begin
    insert into to_compare select build, {row}.family from compared where {builds}
    on conflict do nothing; end
"""
_OTHER_HASH = "when new.family_hash is not old.family_hash"
# Table, name of the trigger, event, condition, and the row that names the family.
_TRIGGERS = (
    ("current", "added", "insert", "", "new"),
    ("current", "changed", "update of family_hash", _OTHER_HASH, "new"),
    ("current", "gone", "delete", "", "old"),
    ("held", "ended", "delete", "", "old"),
    ("receipt", "added", "insert", "", "new"),
    ("receipt", "changed", "update of family_hash", _OTHER_HASH, "new"),
    ("receipt", "gone", "delete", "", "old"),
    ("intent", "added", "insert", "", "new"),
)


WHOLE = "not exists (select 1 from partition where state <> 'valid')"
"""SQL: every known partition is present and valid. Otherwise no source may be removed from the index."""


def migrations() -> Migrations:
    from sqlite_utils import Migrations  # slow to import

    steps = Migrations("chunksink.state")
    steps(name=_SCHEMA)(create_tables)
    return steps


def create_tables(db: Database) -> None:
    for script in (_GENERATIONS, _CATALOG, _DECISIONS, _RECORDS):
        for statement in script.split(";\n"):
            db.execute(statement)
    for table, name, event, condition, row in _TRIGGERS:
        builds = f"build = {row}.build" if table in RECORDS_OF_BUILD else "true"
        db.execute(_TRIGGER.format(table=table, name=name, event=event, condition=condition, row=row, builds=builds))


def marks(values: Sequence[object]) -> str:
    """Placeholders for these values in a statement."""
    return ", ".join("?" * len(values))


def number(db: Database, select: str, values: Sequence[object] | dict[str, Any] = ()) -> int:
    return int(db.execute(select, values).fetchone()[0])


def exists(db: Database, rows: str, values: Sequence[object] = ()) -> bool:
    return db.execute(f"select 1 from {rows} limit 1", values).fetchone() is not None


def is_whole(db: Database) -> bool:
    """See `WHOLE`."""
    return bool(number(db, f"select {WHOLE}"))


def home_id(home: Path) -> str:
    """Created once. The id is in a separate file, so that a home that lost its records still recognises its builds."""
    while (existing := existing_home_id(home)) is None:
        new = home / f".{_HOME_ID}.{secrets.token_hex(4)}"
        new.write_text(secrets.token_hex(16), encoding="ascii")
        with suppress(FileExistsError):
            os.link(new, home / _HOME_ID)  # atomic, and never replaces the id of another process
        new.unlink()
    return existing


def existing_home_id(home: Path) -> str | None:
    file = home / _HOME_ID
    return file.read_text(encoding="ascii") if file.exists() else None
