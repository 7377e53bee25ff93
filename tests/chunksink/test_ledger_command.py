"""`chunksink ledger` lists attempts, and creates no ledger."""

import json

import pytest

from chunksink.command_line.exits import Exit
from chunksink.ingest.store import IngestStore
from tests.chunksink.shell import Shell, write


@pytest.fixture
def filled(shell: Shell) -> Shell:
    with IngestStore(shell.home) as store:
        for number in range(60):
            failed = number % 3 == 0
            attempt = {
                "source_uri": f"docs/{number}.md",
                "source_checksum": "a" * 64,
                "parser_name": "markdown",
                "parser_version": "1.2",
                "processed_at": f"2026-01-31T12:00:{number:02}Z",
                "run_id": f"run-{number // 30}",
                "status": "failed" if failed else "processed",
                "error_type": "SCHEMA_INVALID:encoding" if failed else None,
                "partition_key": f"p{number % 2}",
            }
            store.db.table("attempts").insert(attempt)
    return shell


def test_ledger_lists_the_newest_fifty_first(filled: Shell) -> None:
    ended = filled("ledger")
    lines = ended.out.splitlines()
    assert (ended.code, len(lines), "50 of 60" in ended.err) == (Exit.OK, 50, True)
    assert lines[0].split() == ["2026-01-31T12:00:59Z", "processed", "docs/59.md", "(markdown", "1.2)"]
    assert lines[2].split()[1] == "SCHEMA_INVALID:encoding"


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ("--status processed --run run-1", 20),
        ("--partition p1 --limit 7", 7),
        ("--source docs/1", 11),
        ("--source nowhere", 0),
    ],
)
def test_ledger_with_filters_lists_matching_attempts(filters: str, count: int, filled: Shell) -> None:
    assert len(filled("ledger", "--json", *filters.split()).json) == count


def test_ledger_names_the_tenant_of_each_reading(quick_shell: Shell) -> None:
    write(quick_shell, "docs/a.md", "# A\n\nA text.\n")
    for tenant in ([], ["--tenant", "acme"], ["--tenant", "globex"]):
        assert quick_shell("ingest", "docs", *tenant).code == Exit.OK
    assert [row["tenant"] for row in quick_shell("ledger", "--json").json] == ["globex", "acme", None]
    lines = quick_shell("ledger").out.splitlines()
    assert [line.partition("; ")[2] for line in lines] == ["tenant globex)", "tenant acme)", ""]


def test_ledger_when_missing_is_empty_and_not_created(shell: Shell) -> None:
    assert json.loads(shell("ledger", "--json").out) == []
    assert not shell.home.exists()
