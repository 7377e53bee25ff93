"""What is written to the records of a home is written in the writer's lock: who has it hinders nobody who has not."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import pytest
from sqlite_utils import Database

import chunksink
from chunkbus import store
from rebuild import catalog, forget, intake, plan, receipts, scan, stamps, state
from rebuild.state import State
from tests.chunksink.shell import Shell
from tests.rebuild.support import source

pytestmark = pytest.mark.promise(9)

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")
NOTES = {"note_projected", "note_model"}
"""What anybody may note who has read it: short, and the same whoever does."""


@pytest.fixture
def outside(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The functions that wrote to `state.db` while the writer's lock was free."""
    found: set[str] = set()
    real = store.write_transaction

    @contextmanager
    def watched(db: Database) -> Iterator[None]:
        if Path(str(db.conn.execute("pragma database_list").fetchone()[2])).name == "state.db" and _is_free():
            found.add(traceback.extract_stack(limit=3)[0].name)
        with real(db):
            yield

    for module in (catalog, forget, intake, plan, receipts, scan, stamps, state):
        monkeypatch.setattr(module, "write_transaction", watched)
    yield found


def _is_free() -> bool:
    try:
        with filelock.FileLock(".chunksink/writer.lock", timeout=0):
            return True
    except filelock.Timeout:
        return False


def test_in_every_run(quick_shell: Shell, outside: set[str]) -> None:
    quick_shell.commit("p1", A)
    quick_shell.commit("p2", B)
    with chunksink.open() as index:
        index.sync()
        quick_shell.commit("p1", source("a.md", "a cat", "a hat", version="2"))
        index.plan()
        index.verify()
        index.sync()
        index.rebuild()
        index.rollback()
        index.repair(deep=True)
        index.forget("b.md")
        for file in quick_shell.root.path.glob("*/p2.*"):
            file.unlink()
        index.retire_partition("p2")
    assert outside <= NOTES


def test_in_a_sync_without_records(quick_shell: Shell, outside: set[str]) -> None:
    quick_shell.commit("p1", A)
    with chunksink.open() as index:
        index.sync()
        for file in quick_shell.home.glob("state.db*"):
            file.unlink()
        index.sync()
    assert outside <= NOTES


def test_this_would_tell(quick_shell: Shell, outside: set[str]) -> None:
    with State(Path(".chunksink")) as opened:
        opened.give_up_flip()
    assert outside == {"give_up_flip"}
