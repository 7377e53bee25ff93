"""A file of ours that was damaged is no mistake in the command: the exit code says so, and the message what to do."""

from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Shell, write
from tests.conftest import sampled
from tests.support.damaged_files import foreign, half, newer

COMMANDS = {
    "ingest.db": ["ingest notes", "ledger"],
    "state.db": ["sync", "rebuild", "plan", "verify", "status", "search note"],
}
PAIRS = sampled([(file, command) for file, commands in COMMANDS.items() for command in commands])


@pytest.fixture
def ingested(quick_shell: Shell) -> Shell:
    for number in range(60):
        write(quick_shell, f"notes/{number}.md", f"# A note\n\nabout {number}\n")
    return quick_shell.begin("ingested", "ingest notes --sync")


@pytest.mark.parametrize(("file", "command"), PAIRS)
@pytest.mark.parametrize(("harm", "told"), [(half, "is damaged"), (foreign, "is not a database of chunksink")])
def test_it_is_damaged(file: str, command: str, harm: Callable[[Path], None], told: str, ingested: Shell) -> None:
    harm(ingested.home / file)
    ended = ingested(*command.split())
    assert (ended.code, ended.out) == (Exit.DRIFT, "")
    assert f"{file} {told}" in ended.err
    assert "move it away" in ended.err


@pytest.mark.parametrize(("file", "command"), PAIRS)
def test_one_of_a_newer_chunksink_needs_that(file: str, command: str, ingested: Shell) -> None:
    newer(ingested.home / file)
    ended = ingested(*command.split())
    assert (ended.code, "upgrade" in ended.err) == (Exit.USAGE, True)


def test_another_file_in_the_place_of_the_cache_is_damage(ingested: Shell) -> None:
    (ingested.home / "vectors.db").write_bytes(b"gggg" * 100)
    for command in (["rebuild"], ["verify", "--deep"], ["cache", "stats"]):
        ended = ingested(*command)
        assert (ended.code, "is not a chunksink cache; move the file away" in ended.err) == (Exit.DRIFT, True)
