"""The database of an ingest, `ingest.db` in the home: the ledger, and a cache of the content of sources and partitions.

The ledger records which sources were read, by which versions, and with which result. It only grows.
"""

import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import filelock
from sqlite_utils import Database, Migrations

from chunksink.chunkbus.errors import InvalidManifest, StorageError
from chunksink.chunkbus.identity import family_key, resolve_parent_id
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import read_manifest
from chunksink.chunkbus.runlog import read_run
from chunksink.chunkbus.signature import Signature
from chunksink.chunkbus.store import Store, write_transaction
from chunksink.chunkbus.wording import counted
from chunksink.ingest.codes import MEANINGS
from chunksink.ingest.errors import IngestBusy

FILE_NAME = "ingest.db"
_LOCK_SECONDS = 10.0
_CACHE_TABLES = ("bus", "source", "source_family", "partition", "family")
_RUN_TABLES = ("found", "draft", "empty", "stored", "arrival", "departure", "alias")
_SPOOL = "ingest-spool"
_migrations = Migrations("chunksink.ingest.store")


@_migrations()
def create(db: Database) -> None:
    schema = files("chunksink.ingest").joinpath("schema.sql").read_text(encoding="utf-8")
    for statement in schema.split(";\n"):
        db.execute(statement)


@_migrations()
def add_tenant(db: Database) -> None:
    db.execute("alter table attempts add column tenant text")


@_migrations()
def add_is_included(db: Database) -> None:
    db.execute("alter table found add column is_included integer not null default 0")


@contextmanager
def ingest_lock(home: Path) -> Iterator[None]:
    """Keeps other ingests out of this home. Raises IngestBusy if one is still running after ten seconds."""
    lock = filelock.FileLock(f"{home / FILE_NAME}.run.lock", timeout=_LOCK_SECONDS)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        raise IngestBusy(f"another ingest is using {home}; try again later") from error
    try:
        yield
    finally:
        lock.release()


class IngestStore(Store):
    """One SQLite file. One run writes it at a time; others may read it meanwhile."""

    def __init__(self, home: Path) -> None:
        super().__init__(home / FILE_NAME, _migrations)

    @contextmanager
    def run(self, bus: BusRoot) -> Iterator[sqlite3.Connection]:
        """The connection for one run, with empty run tables. If the cache is of another bus, it is emptied, too.

        Raises IngestBusy if another run uses it.
        """
        db = self.db.conn
        with ingest_lock(self.path.parent):
            try:
                with write_transaction(self.db):
                    is_known_bus = db.execute("select path from bus").fetchone() == (bus.identity,)
                    for table in _RUN_TABLES if is_known_bus else (*_RUN_TABLES, *_CACHE_TABLES):
                        db.execute(f"delete from {table}")
                    if not is_known_bus:
                        db.execute("insert into bus values (?)", (bus.identity,))
                yield db
            finally:
                if db.in_transaction:
                    db.rollback()

    def attempts(
        self,
        *,
        source: str | None = None,
        status: str | None = None,
        run_id: str | None = None,
        partition: str | None = None,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The matching attempts in the ledger, newest first; `source` is a part of a source's name.

        `status` is `processed` or `failed`.
        """
        equal = {"status": status, "run_id": run_id, "partition_key": partition}
        values = {column: value for column, value in equal.items() if value is not None}
        clauses = [f"{column} = :{column}" for column in values]
        if source is not None:
            clauses.append("instr(source_uri, :source) > 0")
            values["source"] = source
        where = " and ".join(clauses) or None
        yield from self.db.table("attempts").rows_where(where, values, order_by="id desc", limit=limit)

    def last_attempt(self, source: str) -> dict[str, Any] | None:
        """The newest attempt of a source; `source` is its name, or the last parts of its path."""
        where = "source_uri = :name or substr(source_uri, -length(:ending)) = :ending"
        values = {"name": source, "ending": f"/{source}"}
        order = "source_uri <> :name, id desc"
        return next(self.db.table("attempts").rows_where(where, values, order_by=order, limit=1), None)

    def spool(self) -> TemporaryDirectory[str]:
        """A folder for the chunks of this run. Folders of killed runs are removed."""
        for folder in self.path.parent.glob(f"{_SPOOL}*"):
            shutil.rmtree(folder, ignore_errors=True)
        return TemporaryDirectory(prefix=_SPOOL, dir=self.path.parent, ignore_cleanup_errors=True)


def signature_columns(signature: Signature | None) -> dict[str, int | None]:
    """The columns of a signature in `found` and `source`; null for None."""
    numbers = signature.numbers() if signature else (None,) * 4
    return dict(zip(("size", "mtime_ns", "ctime_ns", "inode"), numbers, strict=True))


def set_found(db: sqlite3.Connection, uri: str, **values: Any) -> None:
    """Sets these columns of a file in `found`."""
    db.execute(_update_statement(tuple(values)), (*values.values(), uri))


@cache
def _update_statement(columns: tuple[str, ...]) -> str:
    return f"update found set {' = ?, '.join(columns)} = ? where uri = ?"


def pages(db: sqlite3.Connection, query: str, values: Mapping[str, Any]) -> Iterator[list[tuple[Any, ...]]]:
    """Repeats a query that selects one page of rows, and yields the pages.

    The query must select rows whose first column is greater than `:after`, ordered by it. The caller may update these
    rows in the table.
    """
    after = ""
    while page := db.execute(query, {**values, "after": after}).fetchall():
        yield page
        after = page[-1][0]


def why_no_chunks(
    home: Path,
    bus: BusRoot,
    source: str,
    why_skipped: Callable[[BusRoot, str], str | None] = lambda _bus, _source: None,
) -> str | None:
    """Explains why there are no chunks under this file's name; None if there are some, or if the reason is unknown.

    Possible reasons: the file was never read (`why_skipped` explains it), its sources have other names, its chunks were
    removed, or its last reading made none (the ledger has the code).
    """
    if not (home / FILE_NAME).exists():
        return None
    with IngestStore(home) as store:
        attempt = store.last_attempt(source)
        if attempt is None:
            return why_skipped(bus, source)
        name, code = attempt["source_uri"], attempt["error_type"]
        sources = store.db.execute(_SOURCES_OF_FILE, [name]).fetchall()
    if sources:
        return None if sources[0][0] == name else _other_names(name, sources)
    if code is None:
        return _removal(bus, attempt)
    meaning, remedy = MEANINGS.get(code, ("it was not read", "correct the source"))
    reason, run = _recorded_message(home, attempt) or meaning, attempt["run_id"]
    return f"{name} has no chunks: {code}, {reason}. What to do: {remedy}. `chunksink runs {run}` shows that ingest"


_NAMED_SOURCES = 3
_SOURCES_OF_FILE = f"""
select name, count(*) over () from (
  select distinct name from source_family join family using (family) where uri = ? and is_current
) order by length(name), name limit {_NAMED_SOURCES}
"""


def _other_names(file: str, sources: list[tuple[str, int]]) -> str:
    names, total = [name for name, _ in sources], sources[0][1]
    more = f" and {total - len(names):,} more" if total > len(names) else ""
    number = counted(total, "source")
    remedy = f"Ask for one: `chunksink why {shlex.quote(names[0])}`"
    return f"{file} was read as {number}: {', '.join(names)}{more}. {remedy}"


def _recorded_message(home: Path, attempt: Mapping[str, Any]) -> str | None:
    """The message of a failure in the record of its run; None if that was deleted."""
    with suppress(OSError, ValueError):
        for event in read_run(home / "runs" / f"{attempt['run_id']}.jsonl"):
            if (event.get("source_uri"), event.get("code")) == (attempt["source_uri"], attempt["error_type"]):
                line = "" if event["line"] is None else f"line {event['line']:,}: "
                return f"{line}{event['reason']}".removesuffix(".")
    return None


def _removal(bus: BusRoot, attempt: Mapping[str, Any]) -> str:
    """Says that the chunks of a file were removed; also when and why, if its partition has the tombstone."""
    name = attempt["source_uri"]
    family, removed = family_key(resolve_parent_id(None, name, ""), None), ""
    with suppress(OSError, InvalidManifest, StorageError):
        for tombstone in read_manifest(bus, attempt["partition_key"]).tombstones:
            if tombstone.parent_id == family:
                removed = f" and removed at {tombstone.at}: {tombstone.reason}"
    return f"{name} has no chunks any more. It was last read at {attempt['processed_at']}{removed}"
