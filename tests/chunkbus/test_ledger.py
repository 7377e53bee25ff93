"""The ledger forgets nothing, tells the newest attempt, and serves several processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from chunksink.chunkbus.errors import ChunkBusError, NewerStore
from chunksink.chunkbus.ledger import Attempt, Ledger, Status
from tests.chunkbus.samples import NOON
from tests.conftest import ROOT

SOURCE, CHECKSUM = "docs/a.md", "sha256:" + "a" * 64


def attempt(
    uri: str = SOURCE, checksum: str = CHECKSUM, status: Status = Status.PROCESSED, run_id: str = "run-1", **more: str
) -> Attempt:
    return Attempt(uri, checksum, "markdown", "1", "plain", "1", NOON, run_id, status, **more)


FAILED = attempt(status=Status.FAILED, error_type="SCHEMA_INVALID:encoding")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "home" / "ledger.db") as opened:
        yield opened


def last(ledger: Ledger, partition: str | None = None) -> tuple[str, str] | None:
    found = ledger.last_attempt(SOURCE, partition)
    return None if found is None else (found["status"], found["source_checksum"])


DONE = ("processed", CHECKSUM)


def test_an_unknown_source_has_no_attempt(ledger: Ledger) -> None:
    assert last(ledger) is None
    ledger.append(attempt("docs/b.md"))
    assert last(ledger) is None


def test_the_last_attempt_is_the_newest(ledger: Ledger) -> None:
    ledger.append(attempt())
    ledger.append(FAILED)
    assert last(ledger) == ("failed", FAILED.source_checksum)
    ledger.append(attempt())
    assert last(ledger) == DONE
    edited = "sha256:" + "b" * 64
    ledger.append(attempt(checksum=edited))
    assert last(ledger) == ("processed", edited)


def test_a_success_does_not_erase_the_failure_before_it(ledger: Ledger) -> None:
    ledger.append(FAILED)
    ledger.append(attempt(run_id="run-2"))
    kept = list(ledger.attempts())
    assert [(row["status"], row["error_type"], row["run_id"]) for row in kept] == [
        ("processed", None, "run-2"),
        ("failed", "SCHEMA_INVALID:encoding", "run-1"),
    ]
    assert kept[1] == {"id": 1, **asdict(FAILED)}


def test_attempts_can_be_filtered(ledger: Ledger) -> None:
    for number in range(6):
        source = f"docs/{'%_' if number == 3 else number}.md"
        ledger.append(
            attempt(
                source,
                status=Status.FAILED if number % 2 else Status.PROCESSED,
                run_id=f"run-{number // 3}",
                partition_key=f"p{number}",
            )
        )

    def found(**filters: object) -> list[int]:
        return [row["id"] for row in ledger.attempts(**filters)]  # type: ignore[arg-type]

    assert found() == [6, 5, 4, 3, 2, 1]
    assert found(limit=2) == [6, 5]
    assert found(status=Status.FAILED) == [6, 4, 2]
    assert found(run_id="run-0") == [3, 2, 1]
    assert found(partition="p4") == [5]
    assert found(source="5.md") == [6]
    assert found(source="%") == [4]  # a letter like others, no wildcard
    assert found(status=Status.FAILED, run_id="run-1", source="docs") == [6, 4]
    assert found(run_id="' or 1=1 --") == []


def test_what_was_written_is_there_for_the_next_process(tmp_path: Path) -> None:
    for number in range(3):
        with Ledger(tmp_path / "ledger.db") as ledger:
            assert len(list(ledger.attempts())) == number
            ledger.append(attempt())


def test_attempts_that_are_appended_together_are_all_there_or_none(ledger: Ledger) -> None:
    ledger.append(attempt(run_id="1"), attempt(run_id="2"))
    with pytest.raises(sqlite3.IntegrityError):
        ledger.append(attempt(run_id="3"), replace(attempt(), processed_at=None))  # type: ignore[arg-type]
    ledger.append(attempt(run_id="4"))
    assert [row["run_id"] for row in ledger.attempts()] == ["4", "2", "1"]


def test_one_name_in_two_partitions_is_two_sources(ledger: Ledger) -> None:
    ledger.append(attempt(partition_key="a"))
    assert last(ledger) == last(ledger, "a") == DONE
    assert last(ledger, "b") is None
    ledger.append(replace(FAILED, partition_key="b"))
    assert last(ledger, "a") == DONE
    assert last(ledger) == last(ledger, "b") == ("failed", FAILED.source_checksum)


def test_a_newer_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.append(attempt())
    with sqlite3.connect(path) as db:
        db.execute(
            "insert into _sqlite_migrations (migration_set, name, applied_at) values ('chunksink.ledger', 'later', 'x')"
        )
    db.close()
    before = path.read_bytes()
    with pytest.raises(NewerStore, match="later"):
        Ledger(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be looked at as one " * 20, b"SQLite format 3\0x"]
)
def test_what_is_no_database_is_refused_and_kept(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(ChunkBusError, match=r"ledger\.db"):
        Ledger(path)
    assert path.read_bytes() == content


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").mkdir()
    with pytest.raises(ChunkBusError):
        Ledger(tmp_path / "ledger.db")


APPEND = """
import sys
from pathlib import Path
from chunksink.chunkbus.ledger import Ledger
from tests.chunkbus.test_ledger import attempt
with Ledger(Path(sys.argv[1])) as ledger:
    for number in range(40):
        ledger.append(attempt(run_id=f"{sys.argv[2]}-{number}"))
"""


def test_two_processes_may_start_it_and_write_it_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    processes = [subprocess.Popen([sys.executable, "-c", APPEND, str(path), name], cwd=ROOT) for name in ("a", "b")]
    assert [process.wait() for process in processes] == [0, 0]
    with Ledger(path) as ledger:
        runs = [row["run_id"] for row in ledger.attempts()]
    for name in ("a", "b"):
        assert [run for run in reversed(runs) if run.startswith(name)] == [f"{name}-{number}" for number in range(40)]
    assert len(runs) == 80
