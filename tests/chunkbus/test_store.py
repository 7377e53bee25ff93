"""A store on a full disk: every error names the file and the remedy."""

import errno
import gc
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from sqlite_utils import Database, Migrations

from chunksink.chunkbus import store
from chunksink.chunkbus.errors import StoreUnreadable
from chunksink.chunkbus.store import explained, open_store, write_transaction
from chunksink.rebuild.state import State

_steps = Migrations("tests.store")
_BIG = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select i, hex(i) || :pad as pad"
_PAD = {"pad": "x" * 200}


@_steps()
def create(db: Database) -> None:
    db.execute("create table row (i integer, pad text)")


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """Simulates a full disk: files cannot grow beyond this size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_opened_store_leaves_no_other_connection_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[sqlite3.Connection] = []
    closed: list[sqlite3.Connection] = []

    class Recorded(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            opened.append(self)

        def close(self) -> None:
            super().close()
            closed.append(self)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Recorded))
    db = open_store(tmp_path / "rows.db", _steps)
    assert [one for one in opened if one not in closed] == [db.conn]
    db.close()


WORK: dict[str, Callable[[Database], object]] = {
    "vacuum": lambda db: db.execute("vacuum"),
    "a table beside it": lambda db: db.execute(f"create temp table other as {_BIG} from n", _PAD),
    "a read that spills": lambda db: db.execute(f"{_BIG} from n order by pad desc", _PAD).fetchall(),
    "a pragma": lambda db: db.execute("pragma user_version = 7"),
}


@pytest.mark.parametrize("what", WORK)
def test_open_store_when_work_fails_raises_an_error_with_the_path(what: str, tmp_path: Path) -> None:
    with State(tmp_path) as state, write_transaction(state.db):
        state.db.execute("create table pads as " + f"{_BIG} from n", _PAD)
    with pytest.raises(OSError, match="make room on that disk") as caught, State(tmp_path) as state:
        state.db.execute("pragma temp_store = file")
        state.db.execute("pragma cache_size = 10")
        with files_limited_to(4096):
            WORK[what](state.db)
    assert caught.value.filename == str(tmp_path / "state.db")
    assert isinstance(caught.value.__cause__, sqlite3.Error)
    with State(tmp_path) as state:
        assert state.db.execute("pragma integrity_check").fetchall() == [("ok",)]


def test_open_store_when_the_disk_is_full_raises_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="make room on that disk") as caught, files_limited_to(512):
        open_store(tmp_path / "some.db", _steps)
    assert caught.value.filename == str(tmp_path / "some.db")
    assert open_store(tmp_path / "some.db", _steps).execute("select count(*) from row").fetchone() == (0,)


def test_open_store_when_it_fails_closes_the_connection(tmp_path: Path) -> None:
    """Does not wait for garbage collection: until then a deleted file would occupy space on a full disk."""
    path = tmp_path / "foreign.db"
    path.write_bytes(b"no database" * 1000)
    gc.disable()
    try:
        with suppress(StoreUnreadable):
            open_store(path, _steps)
        assert path not in [entry.resolve() for entry in Path("/proc/self/fd").iterdir()]
    finally:
        gc.enable()


def test_open_store_when_another_process_uses_it_raises_busy(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    with open_store(path, _steps).conn as holder, sqlite3.connect(path, timeout=0) as other:
        holder.execute("begin immediate")
        with pytest.raises(sqlite3.OperationalError) as raw:
            other.execute("begin immediate")
    meant = explained(raw.value, path)
    assert isinstance(meant, OSError)
    assert (meant.errno, meant.filename) == (errno.EBUSY, str(path))


@pytest.mark.promise(9)
def test_open_store_when_another_process_opens_it_raises_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example a run that was suspended at this moment: others do not wait forever."""
    open_store(tmp_path / "x.db", _steps).close()
    monkeypatch.setattr(store, "_OPENING_SECONDS", 0.2)
    with FileLock(tmp_path / "x.db.lock"), pytest.raises(OSError) as found:
        open_store(tmp_path / "x.db", _steps)
    assert (found.value.errno, found.value.filename) == (errno.EBUSY, str(tmp_path / "x.db"))


def test_store_when_the_error_is_a_bug_raises_it_unchanged(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"), State(tmp_path) as state:
        state.db.execute("select * from nowhere")
    with pytest.raises(StoreUnreadable):
        (tmp_path / "text.db").write_text("no database " * 1000)
        open_store(tmp_path / "text.db", _steps)
    assert explained(None, tmp_path) is None
    assert explained(OSError(errno.ENOSPC, "full"), tmp_path) is None
