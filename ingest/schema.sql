-- ingest.db: one database per home. Only `attempts` cannot be restored. If the other tables are lost, the next ingest
-- fills them from the sources and the bus: it reads every file again, and changes nothing in the bus.

-- The processed-file ledger. Rows are only appended. `left_out` counts by code, as JSON. `store.add_tenant` adds the
-- column `tenant`, which is null for none.
create table attempts (
  id integer primary key,
  source_uri text not null,
  source_checksum text,
  parser_name text,
  parser_version text,
  canonicalizer_name text,
  canonicalizer_version text,
  processed_at text not null,
  run_id text not null,
  status text not null,
  error_type text,
  partition_key text,
  left_out text
);
create index attempts_source on attempts (source_uri);

-- The bus that the tables below describe.
create table bus (path blob not null);

-- The last reading of each source: its signature (null if an equal one would not prove that the file is unchanged), the
-- format and its versions, the placement of its families, and its notices with the partition whose manifest has them.
-- `tenant` is empty for none, `format` for everything that no format reads, such as a skipped folder.
create table source (
  uri text not null,
  tenant text not null,
  format text not null,
  versions text not null,
  placement text not null,
  checksum text,
  size integer,
  mtime_ns integer,
  ctime_ns integer,
  inode integer,
  partition text not null,
  families integer not null,
  codes text not null,
  failures integer not null,
  primary key (uri, tenant)
) without rowid;

-- The families of each source. `is_current`: its last reading found the family. Otherwise an earlier reading did, and
-- the family is still in a partition.
create table source_family (
  family text not null,
  uri text not null,
  tenant text not null,
  is_current integer not null default 1,
  primary key (family, uri, tenant)
) without rowid;
create index source_family_uri on source_family (uri, tenant);

-- The partitions that an ingest wrote, as they were when `family` was filled.
create table partition (
  key text primary key,
  manifest text not null,
  size integer not null,
  mtime_ns integer not null,
  ctime_ns integer not null,
  inode integer not null
) without rowid;

-- Every family of these partitions: its identity, the file it came from, the place of its lines, and a digest of its
-- chunks without times and run ids. `newest` is the newest `created_at` of its chunks, `made_by` their canonicalizer.
create table family (
  partition text not null,
  family text not null,
  name text not null,
  tenant text not null,
  document text not null,
  version text,
  newest text,
  chunks integer not null,
  digest text not null,
  made_by text not null,
  origin text not null,
  start integer not null,
  end integer not null,
  primary key (partition, family)
) without rowid;
create index family_key on family (family);
create index family_origin on family (origin);
create index family_name on family (name);

-- The tables of one run, emptied when it starts.

-- The files that were found. `outcome` is a value of `report.Outcome`; null: still to read. Until a file is read,
-- `checksum` is that of its last reading: a file that still has it is unchanged. `store.add_is_included` adds the column
-- `is_included`: whether `--include` matched it.
create table found (
  uri text primary key,
  path blob not null,
  format text not null default '',
  versions text,
  outcome text,
  checksum text,
  size integer,
  mtime_ns integer,
  ctime_ns integer,
  inode integer,
  is_whole integer not null default 0,
  codes text not null default '{}',
  failures integer not null default 0,
  error text,
  partition text
) without rowid;

-- The families in the files that this run has read, and where their lines are spooled.
create table draft (
  family text not null,
  uri text not null,
  place integer not null,
  partition text not null,
  name text not null,
  tenant text not null,
  document text not null,
  version text,
  newest text,
  chunks integer not null,
  digest text not null,
  made_by text not null,
  is_partial integer not null,
  spool blob not null,
  start integer not null,
  end integer not null,
  primary key (family, uri)
) without rowid;
create index draft_source on draft (uri);

-- The families without text to index, and the file in which they have none.
create table empty (family text not null, uri text not null, primary key (family, uri)) without rowid;

-- The families of the partitions that this run may write, each in the partition that has its newest copy.
create table stored (
  family text primary key,
  partition text not null,
  name text not null,
  origin text not null,
  version text,
  chunks integer not null,
  digest text not null
) without rowid;

-- What changes: a family arrives in a partition (from a draft, or from another partition), or leaves one. `target` is
-- where it moves to: it leaves only after it has arrived there. `reason` becomes that of a tombstone. A departure
-- with neither removes an older copy of a family whose newest copy is in another partition.
create table arrival (
  partition text not null,
  family text not null,
  uri text,
  from_partition text,
  primary key (partition, family)
) without rowid;
create index arrival_family on arrival (family);
create table departure (
  partition text not null,
  family text not null,
  target text,
  reason text,
  primary key (partition, family)
) without rowid;
create index departure_family on departure (family);

-- Further names of sources; the name is null if several sources have the alias.
create table alias (
  tenant text not null,
  alias text not null,
  name text,
  primary key (tenant, alias)
) without rowid;
