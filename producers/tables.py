"""What a run notes of each file and each family: rows on disk, so that its memory does not grow with their number.

SQLite keeps what does not fit its cache in a file without a name, which goes with the process, however that ends.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from sqlite3 import Connection

from chunksink.chunkbus.store import explained

_SETTINGS = "pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -8192"

_FAMILY = (
    "family text not null, name text not null, document text not null, tenant text, origin text, newest text,"
    " version text not null, chunks integer not null, stretches text not null"
)
"""As `families.Row` has it."""

_TABLES = f"""
-- Where files lie, and what they are called; names that files would also have by a later path.
create table reached (real blob primary key, uri blob not null) without rowid;
create table found (uri text primary key, location blob not null) without rowid;
create table again (uri blob primary key) without rowid;

-- What the JSON files of each folder are; then each source, with its kind or with the reason why it is none.
create table shown (
  folder text, place blob, kind integer, is_record integer, is_value integer,
  primary key (folder, place, kind, is_record, is_value)
) without rowid;
create table seen (
  uri text primary key, location blob not null, kind integer, is_json integer not null,
  code text, reason text, is_failure integer
) without rowid;

-- Families of the partitions that are looked at, and those of the version that is being written.
create table standing (
  partition text not null, {_FAMILY}, is_surplus integer not null default 0, primary key (family, partition)
) without rowid;
create table twice (family text primary key) without rowid;
create table drafted (last_line integer primary key, {_FAMILY});

-- How it went with each source, by its number in the run; what stands for the checksums of those that were read.
create table done (
  number integer primary key, uri text not null, outcome text not null, versions text not null, checksum text,
  codes text, failures integer not null, is_in_ledger integer not null, is_document integer not null,
  is_read integer not null, is_whole integer not null, moment_ns text, source_type text not null
);
create table signatures (location blob not null, signature text not null, checksum text not null);

-- Families that each source gives, and their order; the source that counts for each; what it read, where that is new;
-- families of which a source says that they go, or nothing.
create table given (
  source integer not null, family text not null, place integer not null, primary key (source, family)
) without rowid;
create table claims (
  family text primary key, source integer not null, source_type text, moment_ns text, is_read integer not null
) without rowid;
create table readings (
  family text primary key, name text not null, document text not null, tenant text, version text not null, newest text,
  chunks integer not null, file blob not null, start integer not null, end integer not null
) without rowid;
create table silent (family text primary key, goes integer not null) without rowid;

-- What changes in the partitions.
create table arrivals (
  partition text not null, {_FAMILY}, file blob, start integer, end integer, moved_from text,
  primary key (partition, family)
) without rowid;
create table departures (
  partition text not null, family text not null, target text, primary key (partition, family)
) without rowid;
create table withdrawn (family text primary key) without rowid;

-- Sources of partitions that the run leaves alone; all sources by what they are called besides, without
-- the whole name where several are called so; names of sources that come, change or go. An empty tenant is none.
create table elsewhere (
  name text not null, tenant text, document text not null, newest text, partition text not null
);
create table called (tenant text not null, name text not null, uri text, primary key (tenant, name)) without rowid;
create table changed (
  tenant text not null, name text not null, is_called integer not null, primary key (name, is_called, tenant)
) without rowid;
"""


def open_tables() -> Connection:
    """All of them, empty. Nothing is ever committed: nobody else sees them."""
    tables = sqlite3.connect("", isolation_level=None)
    tables.executescript(_SETTINGS)
    tables.executescript(_TABLES)
    tables.execute("begin")
    return tables


@contextmanager
def tables_of_a_run() -> Iterator[Connection]:
    with closing(open_tables()) as tables:
        try:
            yield tables
        except sqlite3.OperationalError as error:
            # Nothing else that a run uses can say so by itself: a `Store` explains what it cannot write.
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise explained(error, "the folder for temporary files") or error from error
            raise


def below(prefix: str) -> tuple[str, str | bytes]:
    """The first name in a folder that so begins, and what comes after the last; all bytes come after all text."""
    return prefix, prefix[:-1] + "0" if prefix else b""  # "0" is next to "/"
