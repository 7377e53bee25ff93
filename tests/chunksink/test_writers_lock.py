"""All writes to `state.db` need the writer's lock, except values that are the same in every process."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import filelock
import pytest
from sqlite_utils import Database

import chunksink
from chunksink.chunkbus import store
from chunksink.rebuild import catalog, forget, intake, plan, receipts, scan, state
from chunksink.rebuild.errors import NotVerified
from chunksink.rebuild.rebuild import Rebuild
from chunksink.rebuild.state import State
from chunksink.rebuild.targets import Target
from chunksink.sinks.registry import open_sink
from tests.chunksink.shell import Shell
from tests.support.bus import parent_of, source

pytestmark = pytest.mark.promise(9)

A, B = source("a.md", "a cat", "a mat"), source("b.md", "a boat")


@pytest.fixture
def outside(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The functions that wrote to `state.db` without the writer's lock."""
    found: set[str] = set()
    real = store.write_transaction

    @contextmanager
    def watched(db: Database) -> Iterator[None]:
        if Path(str(db.conn.execute("pragma database_list").fetchone()[2])).name == "state.db" and _is_free():
            found.add(traceback.extract_stack(limit=3)[0].name)
        with real(db):
            yield

    for module in (catalog, forget, intake, plan, receipts, scan, state):
        monkeypatch.setattr(module, "write_transaction", watched)
    yield found


def _is_free() -> bool:
    try:
        with filelock.FileLock(".chunksink/writer.lock", timeout=0):
            return True
    except filelock.Timeout:
        return False


def test_every_run_writes_in_the_lock(quick_shell: Shell, outside: set[str]) -> None:
    quick_shell.commit("p1", A)
    quick_shell.commit("p2", B)
    with chunksink.open() as index:
        index.sync()
        quick_shell.commit("p1", source("a.md", "a cat", "a hat", version="2"))
        index.plan()
        index.sync()
        index.rebuild()
        index.rollback()
        index.repair(deep=True)
        index.forget("b.md")
        for file in quick_shell.root.path.glob("*/p2.*"):
            file.unlink()
        index.retire_partition("p2")
    assert outside == set()
    with State(quick_shell.home) as opened:
        opened.cancel_flip()
    assert "cancel_flip" in outside, "such a write is noticed"


def test_sync_without_records_writes_in_the_lock(quick_shell: Shell, outside: set[str]) -> None:
    quick_shell.commit("p1", A)
    with chunksink.open() as index:
        index.sync()
        for file in quick_shell.home.glob("state.db*"):
            file.unlink()
        index.sync()
    assert outside == set()


def test_continued_rebuild_writes_in_the_lock(
    quick_shell: Shell, outside: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if an engine loses a document before the rebuild continues and before its verification."""
    quick_shell.commit("p1", A, B)
    look = Rebuild._verify

    def lose(rebuilding: Rebuild, targets: Sequence[Target]) -> None:
        for target in targets:
            target.build.delete([parent_of("a.md")])
            target.build.flush()
        look(rebuilding, targets)

    with chunksink.open() as index:
        with monkeypatch.context() as patched:
            patched.setattr(Rebuild, "_verify", lose)
            with pytest.raises(NotVerified):
                index.rebuild()
        with State(index.config.home_path) as opened:
            (build,) = opened.unfinished().builds.values()  # type: ignore[union-attr]
        with closing(open_sink("fts", index.config.home_path, {})) as sink, closing(sink.open(build)) as found:
            found.delete([parent_of("b.md")])
            found.flush()
        assert index.rebuild().written == 3
    assert outside <= {"note_hashes"}, "a scan stores the hashes that it computes"
