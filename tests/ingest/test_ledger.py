"""The ledger forgets nothing, and the database it is in is refused where it is not ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chunksink.errors import NewerStore, StoreUnreadable
from chunksink.ingest.codes import CHUNKING_FAILED
from chunksink.ingest.store import FILE_NAME, IngestStore
from tests.chunkbus.samples import NOON
from tests.ingest.bench import Bench

CHECKSUM = "a" * 64


def attempt(
    uri: str = "docs/a.md",
    status: str = "processed",
    run_id: str = "run-1",
    error: str | None = None,
    partition: str = "documents",
) -> dict[str, Any]:
    about = {"source_uri": uri, "source_checksum": CHECKSUM, "processed_at": NOON, "run_id": run_id}
    return {**about, "status": status, "error_type": error, "partition_key": partition}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IngestStore]:
    with IngestStore(tmp_path) as opened:
        yield opened


def test_a_success_does_not_erase_the_failure_before_it(bench: Bench) -> None:
    bench.write("a.md", b"\x80")
    bench.ingest()
    bench.write("a.md", "# A\n")
    bench.ingest()
    failed, succeeded = bench.ledger()
    assert (failed["status"], failed["error_type"], failed["left_out"]) == (
        "failed",
        CHUNKING_FAILED,
        f'{{"{CHUNKING_FAILED}":1}}',
    )
    assert (succeeded["status"], succeeded["error_type"], succeeded["left_out"]) == ("processed", None, None)
    assert failed["run_id"] != succeeded["run_id"] and failed["source_checksum"] != succeeded["source_checksum"]
    (record,) = bench.records()
    parser, canonicalizer = record["provenance"]["parser"], record["provenance"]["canonicalizer"]
    assert parser == {name: succeeded[name] for name in ("parser_name", "parser_version")}
    assert canonicalizer == {name: succeeded[name] for name in ("canonicalizer_name", "canonicalizer_version")}
    assert f"sha256:{succeeded['source_checksum']}" == record["provenance"]["source_checksum"]
    assert (succeeded["processed_at"], succeeded["partition_key"]) == (record["created_at"], "documents")


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, [6, 5, 4, 3, 2, 1]),
        ({"limit": 2}, [6, 5]),
        ({"status": "failed"}, [6, 4, 2]),
        ({"run_id": "run-0"}, [3, 2, 1]),
        ({"partition": "p4"}, [5]),
        ({"source": "5.md"}, [6]),
        ({"source": "%"}, [4]),  # a letter like others, no wildcard
        ({"status": "failed", "run_id": "run-1", "source": "docs"}, [6, 4]),
        ({"run_id": "' or 1=1 --"}, []),
    ],
)
def test_attempts_can_be_filtered(store: IngestStore, filters: dict[str, Any], ids: list[int]) -> None:
    for number in range(6):
        source = f"docs/{'%_' if number == 3 else number}.md"
        status = "failed" if number % 2 else "processed"
        store.db.table("attempts").insert(attempt(source, status, f"run-{number // 3}", partition=f"p{number}"))
    assert [row["id"] for row in store.attempts(**filters)] == ids


def test_a_newer_database_is_refused_and_kept(tmp_path: Path) -> None:
    with IngestStore(tmp_path):
        pass
    path = tmp_path / FILE_NAME
    with sqlite3.connect(path) as db:
        db.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at)"
            " values ('chunksink.ingest.store', 'later', 'x')"
        )
    db.close()
    before = path.read_bytes()
    with pytest.raises(NewerStore, match="later"):
        IngestStore(tmp_path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database, but long enough to be looked at " * 20, b"SQLite format 3\0x"])
def test_what_is_no_database_is_refused_and_kept(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    path.write_bytes(content)
    with pytest.raises(StoreUnreadable):
        IngestStore(tmp_path)
    assert path.read_bytes() == content


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(StoreUnreadable):
        IngestStore(tmp_path)
