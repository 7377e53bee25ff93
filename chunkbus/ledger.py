"""The processed-file ledger: which sources were read, by what, and how it ended. Attempts are only ever appended."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlite_utils import Database, Migrations

from chunkbus.store import open_store, write_transaction

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


class Status(StrEnum):
    PROCESSED = "processed"
    FAILED = "failed"


@dataclass(frozen=True)
class Reading:
    """A source's bytes and what reads them: while all of it is the same, there is nothing to do again."""

    source_uri: str
    source_checksum: str
    parser_name: str
    parser_version: str
    canonicalizer_name: str
    canonicalizer_version: str


@dataclass(frozen=True)
class Attempt:
    """One try at one source. `error_type` is a code of the error taxonomy where it failed."""

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


class Ledger:
    """The ledger in one SQLite file. Several processes may use it at once."""

    def __init__(self, path: Path) -> None:
        self._db = open_store(path, _migrations)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    def is_processed(self, reading: Reading, partition: str | None = None) -> bool:
        """True where the source's last attempt succeeded with the same bytes, parser and canonicaliser.

        With `partition` only attempts that went there count: one name can stand for two sources in two partitions.
        """
        there = {"source": reading.source_uri, "partition": partition}
        newest_first = self._db.table("attempts").rows_where(
            "source_uri = :source and (:partition is null or partition_key = :partition)",
            there,
            order_by="id desc",
            limit=1,
        )
        for attempt in newest_first:
            return attempt["status"] == Status.PROCESSED and asdict(reading).items() <= attempt.items()
        return False

    def append(self, *attempts: Attempt) -> None:
        """Records attempts beside the earlier ones, durably and in one transaction."""
        with write_transaction(self._db):
            self._db.table("attempts").insert_all(map(asdict, attempts))

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
        yield from self._db.table("attempts").rows_where(
            " and ".join(clauses) or None, given, order_by="id desc", limit=limit
        )
