"""The tables of `state.db`, and the home's own id, which outlives them.

All of it but the id can be lost: a rebuild makes it again from the chunks.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from sqlite_utils import Database, Migrations

migrations = Migrations("chunksink.state")

_HOME_ID = "home.id"

RECORDS_OF_BUILD = ("compared", "moved", "receipt", "intent", "dead_letter", "stamp")
"""Tables that name a build; in this order, of one that was not compared no moves are noted."""


@migrations()
def create_generations(db: Database) -> None:
    # `shown`: readers have seen it; one that was never shown is being filled, or was left by a run that died.
    columns = {"id": str, "created_at": str, "encoder": str, "model": str, "model_fingerprint": str, "shown": int}
    db.table("generation").create(columns, pk="id")
    # A generation may share a build with another: then both name it.
    columns = {"generation": str, "sink": str, "id": str}
    db.table("build").create(columns, pk=("generation", "sink"), foreign_keys=["generation"])
    # What each sink shows under its public name, also of sinks that are not written any more.
    db.table("public").create({"sink": str, "build": str}, pk="sink")
    db.table("flipping").create({"generation": str}, pk="generation")
    db.table("pointer").create({"live": str, "previous": str})
    db.table("pointer").insert({"live": None, "previous": None})


@migrations()
def create_catalog(db: Database) -> None:
    # `taken` numbers each reading of a partition, never one number twice. A partition that is not valid now keeps the
    # chunks of its last valid reading; where there was none, `checksum` is null.
    db.executescript(
        """
        create table partition (
            taken integer primary key autoincrement, key text not null unique, signature text, state text not null,
            manifest text, checksum text, created_at text);
        create table finding (partition text, code text, severity text, line integer, detail text);
        create index finding_partition on finding (partition);
        create table chunk (
            partition text, offset integer, length integer, family text, parent_id text, document_id text,
            chunk_id text, text_hash text, source_checksum text, version text, created_at text,
            primary key (partition, offset)) without rowid;
        create index chunk_family on chunk (family, partition);
        create index chunk_id on chunk (chunk_id);
        create index chunk_document on chunk (document_id);
        create index chunk_parent on chunk (parent_id);
        create table tombstone (partition text, parent_id text, document_id text, at text);
        create index tombstone_parent on tombstone (parent_id);
        create index tombstone_document on tombstone (document_id);
        """
    )


@migrations()
def create_decisions(db: Database) -> None:
    # `standing`: a family in one partition, in its last source_checksum there, with its rank.
    # `current`: the standing that counts, of each family that is not retired; hashes where it was projected.
    # `held`: families that nobody touches for now, and why. `undecided`: those that changed since the last decision.
    db.executescript(
        """
        create table standing (
            family text, partition text, taken integer, parent_id text, source_checksum text, first_offset integer,
            chunks integer, versions integer, rank text, primary key (family, partition)) without rowid;
        create table current (
            family text primary key, partition text, taken integer, source_checksum text, first_offset integer,
            chunks integer, family_hash text, digest text, texts text) without rowid;
        create index current_place on current (partition, first_offset);
        create index current_unhashed on current (partition, first_offset) where family_hash is null;
        create table held (family text primary key, reason text, detail text) without rowid;
        create table undecided (family text primary key) without rowid;
        create table projection (version integer);
        create view current_chunk as
            select c.*, u.first_offset, u.taken from current u
            join chunk c on c.family = u.family and +c.partition = u.partition
            where c.source_checksum is u.source_checksum;
        """
    )


@migrations()
def create_records(db: Database) -> None:
    # An intent without its receipt says: what this build holds of this family is unknown.
    db.executescript(
        """
        create table receipt (
            build text, family text, family_hash text, texts text, documents integer, label text,
            primary key (build, family)) without rowid;
        create table intent (build text, family text, primary key (build, family)) without rowid;
        create table dead_letter (
            build text, id text, family text, reason text, at text, primary key (build, id)) without rowid;
        create index dead_letter_family on dead_letter (build, family);
        create table pace (what text primary key, amount real, seconds real);
        """
    )


@migrations()
def create_editions(db: Database) -> None:
    # `edition`: each version of a family in a partition. `undecided` tells the partition in which a family changed, so
    # that those in which it stood before are not read again; '' where only what counts must be decided again.
    # `family_chunk` is `current_chunk` for whoever comes from the family: former versions are not gone through.
    db.executescript(
        """
        create table edition (family text, partition text, document_id text, source_checksum text, version text);
        create index edition_family on edition (family, partition);
        insert into edition select distinct family, partition, document_id, source_checksum, version from chunk;
        alter table undecided rename to changed;
        create table undecided (family text, partition text, primary key (family, partition)) without rowid;
        insert into undecided
            select family, '' from changed union select family, partition from changed join chunk using (family)
            union select family, partition from changed join standing using (family);
        drop table changed;
        create view family_chunk as
            select c.*, u.first_offset, u.taken from current u
            cross join chunk c indexed by chunk_family on c.family = u.family and c.partition = u.partition
            where c.source_checksum is u.source_checksum;
        """
    )


@migrations()
def create_compared(db: Database) -> None:
    # `compared`: builds that were compared with the catalog as a whole. `moved`: families of theirs that differed then,
    # or of which a row that a comparison goes by was written since; what was held then was not compared.
    # No `insert or ignore` in triggers: a statement with a policy of its own overrides it.
    db.executescript(
        """
        create table compared (build text primary key) without rowid;
        create table moved (build text, family text, primary key (build, family)) without rowid;
        create trigger current_added after insert on current begin
            insert into moved select build, new.family from compared where true
            on conflict do nothing; end;
        create trigger current_changed after update of family_hash on current
            when new.family_hash is not old.family_hash begin
            insert into moved select build, new.family from compared where true
            on conflict do nothing; end;
        create trigger current_gone after delete on current begin
            insert into moved select build, old.family from compared where true
            on conflict do nothing; end;
        create trigger held_ended after delete on held begin
            insert into moved select build, old.family from compared where true
            on conflict do nothing; end;
        create trigger receipt_added after insert on receipt begin
            insert into moved select build, new.family from compared where build = new.build
            on conflict do nothing; end;
        create trigger receipt_changed after update of family_hash on receipt
            when new.family_hash is not old.family_hash begin
            insert into moved select build, new.family from compared where build = new.build
            on conflict do nothing; end;
        create trigger receipt_gone after delete on receipt begin
            insert into moved select build, old.family from compared where build = old.build
            on conflict do nothing; end;
        create trigger intent_added after insert on intent begin
            insert into moved select build, new.family from compared where build = new.build
            on conflict do nothing; end;
        """
    )


@migrations()
def create_tenants_of_tombstones(db: Database) -> None:
    db.execute("alter table tombstone add column tenant_id text")
    # What they say of tenants was not read: it is now.
    db.execute("update partition set signature = null, manifest = null where key in (select partition from tombstone)")


@migrations()
def create_stamps(db: Database) -> None:
    # What the build's marker may say; of a build that never was stamped, nothing stands here.
    db.execute("create table stamp (build text, stamp text, primary key (build, stamp)) without rowid")


@migrations()
def create_contents(db: Database) -> None:
    # `line`: a hash of the chunk's line. `content`: one hash for those of a family; where it is the same,
    # so is what is projected of them, whatever else its partition says now. Null in what was read before; all that is
    # there is read again.
    for table, column in (("chunk", "line"), ("standing", "content"), ("current", "content")):
        db.execute(f"alter table {table} add column {column} blob")
    db.execute("update partition set signature = null, manifest = null")


@migrations()
def create_model_files(db: Database) -> None:
    # What the files of a model come to, by what the file system says of them: reading them takes a moment.
    db.execute("create table model_files (signature text primary key, digest text) without rowid")


@migrations()
def create_former(db: Database) -> None:
    # What families were in former readings: see `rebuild/catalog_rows.py`. A partition that is cut anew leaves many
    # texts behind, so a row is small.
    db.executescript(
        """
        create table former_text (family text, text_hash text, primary key (family, text_hash)) without rowid;
        create table former_document (
            family text, document_id text, parent_id text, primary key (family, document_id)) without rowid;
        create index former_document_id on former_document (document_id);
        create index former_parent on former_document (parent_id);
        """
    )


@migrations()
def create_numbers_of_chunks(db: Database) -> None:
    # Chunks are numbered, so that one that moves within its file moves in no index but that of places. Lines that still
    # stand keep their row, but where a partition's `manifest` is null.
    columns = (
        "partition, offset, length, family, parent_id, document_id, chunk_id, text_hash, source_checksum, version, "
        "created_at, line"
    )
    for statement in (
        "drop view current_chunk",
        "drop view family_chunk",
        "alter table chunk rename to placed",
        """
        create table chunk (
            id integer primary key, partition text, offset integer, length integer, family text, parent_id text,
            document_id text, chunk_id text, text_hash text, source_checksum text, version text, created_at text,
            line blob)
        """,
        f"insert into chunk ({columns}) select {columns} from placed order by partition, offset",
        "drop table placed",
        "create index chunk_place on chunk (partition, offset)",
        "create index chunk_family on chunk (family, partition)",
        "create index chunk_id on chunk (chunk_id)",
        "create index chunk_document on chunk (document_id)",
        "create index chunk_parent on chunk (parent_id)",
        """
        create view current_chunk as
            select c.*, u.first_offset, u.taken from current u
            join chunk c on c.family = u.family and +c.partition = u.partition
            where c.source_checksum is u.source_checksum
        """,
        """
        create view family_chunk as
            select c.*, u.first_offset, u.taken from current u
            cross join chunk c indexed by chunk_family on c.family = u.family and c.partition = u.partition
            where c.source_checksum is u.source_checksum
        """,
    ):
        db.execute(statement)


@migrations()
def drop_pace_of_vectors(db: Database) -> None:
    # That of the encoder was for a vector, whatever the length of its text.
    db.execute("delete from pace where what = 'encoder'")


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
