"""The processed-file ledger: which sources were read, by what, and how it ended. Attempts are only ever appended."""

import sqlite3
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from chunksink.ingest.store import IngestStore


class Status(StrEnum):
    PROCESSED = "processed"
    FAILED = "failed"


_RECORD = """
insert into attempts (source_uri, source_checksum, parser_name, parser_version, canonicalizer_name,
  canonicalizer_version, processed_at, run_id, status, error_type, partition_key, left_out)
select uri, checksum, json_extract(versions, '$[0]'), json_extract(versions, '$[1]'), json_extract(versions, '$[2]'),
  json_extract(versions, '$[3]'), :processed_at, :run_id,
  iif(failures > 0, 'failed', 'processed'), error, partition, nullif(codes, '{}')
from found
where outcome in ('processed', 'empty', 'failed') or failures > 0 or (outcome = 'left_out' and not exists (
  select 1 from source where source.uri = found.uri and source.tenant = :tenant and source.codes = found.codes
))
order by uri
"""


def record_attempts(db: sqlite3.Connection, *, processed_at: str, run_id: str, tenant: str) -> None:
    """Appends what a run tried: every source that it read, and what it left out for the first time."""
    db.execute(_RECORD, {"processed_at": processed_at, "run_id": run_id, "tenant": tenant})


def attempts(
    store: IngestStore,
    *,
    source: str | None = None,
    status: Status | None = None,
    run_id: str | None = None,
    partition: str | None = None,
    limit: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Attempts that match, newest first; `source` is a part of a source's name."""
    asked = {"status": status, "run_id": run_id, "partition_key": partition}
    values = {column: value for column, value in asked.items() if value is not None}
    clauses = [f"{column} = :{column}" for column in values]
    if source is not None:
        clauses.append("instr(source_uri, :source) > 0")
        values["source"] = source
    where = " and ".join(clauses) or None
    yield from store.db.table("attempts").rows_where(where, values, order_by="id desc", limit=limit)
