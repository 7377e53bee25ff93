"""The processed-file ledger: which sources were read, by what, and how it ended. Attempts are only ever appended."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlite_utils import Database, Migrations

from chunksink.chunkbus.store import Store, write_transaction

_migrations = Migrations("chunksink.ledger")


@_migrations()
def create_attempts(db: Database) -> None:
    db.table("attempts").create(
        {
            "id": int,
            "source_uri": str,
            "source_checksum": str,
            "parser_name": str,
            "parser_version": str,
            "canonicalizer_name": str,
            "canonicalizer_version": str,
            "processed_at": str,
            "run_id": str,
            "status": str,
            "error_type": str,
            "partition_key": str,
        },
        pk="id",
        not_null={"source_uri", "processed_at", "run_id", "status"},
    )
    db.table("attempts").create_index(["source_uri"])


@_migrations()
def add_left_out(db: Database) -> None:
    db.table("attempts").add_column("left_out", str)


class Status(StrEnum):
    PROCESSED = "processed"
    FAILED = "failed"


@dataclass(frozen=True)
class Attempt:
    """One try at one source. `error_type` is a code of the error taxonomy where it failed.

    `left_out` is a JSON object: how many of its records did not become chunks, by code, and what is odd of it.
    """

    source_uri: str
    source_checksum: str | None
    parser_name: str
    parser_version: str
    canonicalizer_name: str
    canonicalizer_version: str
    processed_at: str
    run_id: str
    status: Status
    error_type: str | None = None
    partition_key: str | None = None
    left_out: str | None = None


class Ledger(Store):
    """The ledger in one SQLite file. Several processes may use it at once."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _migrations)

    def last_attempt(self, source_uri: str, partition: str | None = None) -> dict[str, Any] | None:
        """The newest row of a source; with `partition` the newest that went there."""
        cursor = self.db.execute(
            "select * from attempts where source_uri = :source and (:partition is null or partition_key = :partition) "
            "order by id desc limit 1",
            {"source": source_uri, "partition": partition},
        )
        row = cursor.fetchone()
        return None if row is None else dict(zip((column for column, *_ in cursor.description), row, strict=True))

    def last_success(self, source_uri: str, partition: str | None = None) -> dict[str, Any] | None:
        """The same, where that one succeeded."""
        attempt = self.last_attempt(source_uri, partition)
        return attempt if attempt is not None and attempt["status"] == Status.PROCESSED else None

    def append(self, *attempts: Attempt) -> None:
        """Records attempts beside the earlier ones, durably and in one transaction."""
        self.append_all(attempts)

    def append_all(self, attempts: Iterable[Attempt]) -> None:
        """The same for any number, of which only a few are held in memory at a time."""
        with write_transaction(self.db):
            self.db.table("attempts").insert_all(map(asdict, attempts))

    def attempts(
        self,
        *,
        source: str | None = None,
        status: Status | None = None,
        run_id: str | None = None,
        partition: str | None = None,
        limit: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Attempts, newest first; `source` is part of a source's name."""
        wanted = {"status": status, "run_id": run_id, "partition_key": partition}
        given = {column: value for column, value in wanted.items() if value is not None}
        clauses = [f"{column} = :{column}" for column in given]
        if source is not None:
            clauses.append("instr(source_uri, :source) > 0")
            given["source"] = source
        yield from self.db.table("attempts").rows_where(
            " and ".join(clauses) or None, given, order_by="id desc", limit=limit
        )
