"""A file of ours that was damaged is no mistake in the command: the exit code says so, and the message what to do."""

from __future__ import annotations

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Shell
from tests.chunksink.test_doctor_ingested import foreign, half, ingested, newer

__all__ = ["ingested"]

COMMANDS = {
    "ingest.db": ["ingest notes", "ledger"],
    "state.db": ["sync", "rebuild", "plan", "verify", "status", "search note"],
}
PAIRS = [(file, command) for file, commands in COMMANDS.items() for command in commands]


@pytest.mark.parametrize(("file", "command"), PAIRS)
@pytest.mark.parametrize(("harm", "told"), [(half, "is damaged"), (foreign, "is not a database of chunksink")])
def test_it_is_damaged(file: str, command: str, harm: object, told: str, ingested: Shell) -> None:
    assert ingested("sync").code == Exit.OK
    assert callable(harm)
    harm(ingested.home / file)
    ended = ingested(*command.split())
    assert (ended.code, ended.out) == (Exit.DRIFT, "")
    assert f"{file} {told}" in ended.err
    assert "move it away" in ended.err


@pytest.mark.parametrize(("file", "command"), PAIRS)
def test_one_of_a_newer_chunksink_needs_that(file: str, command: str, ingested: Shell) -> None:
    assert ingested("sync").code == Exit.OK
    newer(ingested.home / file)
    ended = ingested(*command.split())
    assert (ended.code, "upgrade" in ended.err) == (Exit.USAGE, True)


def test_another_file_in_the_place_of_the_cache_is_damage(ingested: Shell) -> None:
    assert ingested("sync").code == Exit.OK
    (ingested.home / "vectors.db").write_bytes(b"gggg" * 100)
    for command in (["rebuild"], ["verify", "--deep"], ["cache", "stats"]):
        ended = ingested(*command)
        assert (ended.code, "is not a chunksink cache; move the file away" in ended.err) == (Exit.DRIFT, True)
