"""Concurrent runs on one home: each waits or exits as documented, and the result is correct."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild.errors import HomeLocked
from chunksink.rebuild.locks import WriterLock, held_locks
from chunksink.rebuild.report import RunOutcome
from chunksink.sinks.contract import Sink
from tests.conftest import HEAVY, ROOT, sampled
from tests.support.bus import FEBRUARY, commit, projected, source
from tests.support.home import Home
from tests.support.local_engines import chroma, fts
from tests.support.tampering import altered, put
from tests.support.watched_sinks import Moment, watching

pytestmark = pytest.mark.promise(9)

ROUNDS, PROCESSES = (50, [2, 8]) if HEAVY else (1, [2])
RUN = """
import sys
from pathlib import Path
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild import locks
from chunksink.rebuild.errors import HomeLocked
from tests.support.local_engines import chroma, fts
from tests.support.home import Home

home = Home(Path(sys.argv[1]), FolderRoot(Path(sys.argv[2])), fts, chroma)
try:
    home.rebuild() if sys.argv[3] == "rebuild" else home.sync()
except HomeLocked as error:
    sys.exit(f"locked: {error}")
"""
HELD_UP = """
import sys
from pathlib import Path
from chunksink.chunkbus.folder_partitions import FolderRoot
from tests.support.local_engines import fts
from tests.support.home import Home
from tests.support.watched_sinks import Moment, watching

def pause():
    print("writing", flush=True)
    sys.stdin.readline()

Home(Path(sys.argv[1]), FolderRoot(Path(sys.argv[2])), fts).sync(wrap=watching("fts", Moment("replace", 1, pause)))
"""


@pytest.fixture
def home(tmp_path: Path, root: FolderRoot) -> Home:
    return Home(tmp_path / "home", root, fts)


def start(home: Home, command: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", RUN, str(home.folder), str(home.root.path), command]
    return subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("processes", PROCESSES)
def test_many_concurrent_runs_end_as_documented(
    processes: int, embedded_home: Home, record_property: Callable[[str, object], None]
) -> None:
    record_property("rounds", ROUNDS)
    commit(embedded_home.root, "p1", source("docs/a.md", "before"))
    embedded_home.rebuild()
    for number in range(ROUNDS):
        edited = [
            source(f"docs/{name}.md", f"round {number} {name}", version=str(number), at=FEBRUARY) for name in "abc"
        ]
        commit(embedded_home.root, "p1", [record for records in edited for record in records], at=FEBRUARY)
        commands = ["rebuild" if place == 1 else "sync" for place in range(processes)]
        running = [start(embedded_home, command) for command in commands]
        for process in running:
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0 or errors.startswith("locked: another"), errors
        embedded_home.sync()
        wanted = projected(*edited)
        assert embedded_home.contents() == {"fts": wanted, "chroma": wanted}
        assert embedded_home.verify(deep=True).ok


def test_stopped_run_keeps_its_lock_and_continues(home: Home) -> None:
    """No other run takes over the lock, so it writes nothing outdated."""
    before, edited = source("docs/a.md", "before"), source("docs/a.md", "after", version="2", at=FEBRUARY)
    commit(home.root, "p1", before)
    home.rebuild()
    commit(home.root, "p1", edited, at=FEBRUARY)
    command = [sys.executable, "-c", HELD_UP, str(home.folder), str(home.root.path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(HomeLocked), WriterLock(home.folder)(0.5):
                pass
            assert home.contents() == {"fts": projected(before)}
        finally:
            process.send_signal(signal.SIGCONT)
        process.communicate("go on\n", timeout=60)
    assert process.returncode == 0
    assert home.contents() == {"fts": projected(edited)}
    assert home.verify().ok


@pytest.mark.parametrize("run", ["sync", "verify"])
@pytest.mark.parametrize("change", ["edited", "withdrawn", "added"])
def test_concurrent_sync_costs_a_rebuild_one_more_round(run: str, change: str, home: Home) -> None:
    """While the new build is verified: it is then outdated, not wrong."""
    stays = source("docs/b.md", "stays")
    commit(home.root, "p1", [*source("docs/a.md", "before"), *stays])
    home.rebuild()
    now = {
        "edited": [source("docs/a.md", "after", version="2", at=FEBRUARY), stays],
        "withdrawn": [stays],
        "added": [source("docs/a.md", "before"), stays, source("docs/c.md", "new", at=FEBRUARY)],
    }[change]

    def beside() -> None:
        commit(home.root, "p1", [record for records in now for record in records], at=FEBRUARY)
        other = Home(home.folder, home.root, fts)
        other.sync(allow_deletions=1) if run == "sync" else other.verify()

    home.rebuild(wrap=watching("fts", Moment("scan", 1, beside)))
    assert home.contents() == {"fts": projected(*now)}
    assert home.verify().ok


@pytest.mark.parametrize(("run", "before"), sampled(product(["sync", "rebuild", "two rebuilds"], [True, False])))
def test_verify_blocks_no_other_run(run: str, before: bool, embedded_home: Home) -> None:
    """Another run writes before or after the build is read. The apparent drift is not reported."""
    lost, stays = source("docs/a.md", "lost"), source("docs/b.md", "stays")
    commit(embedded_home.root, "p1", [*lost, *stays])
    embedded_home.rebuild()
    edited = source("docs/b.md", "edited", version="2", at=FEBRUARY)

    def beside() -> None:
        commit(embedded_home.root, "p1", [*lost, *edited], at=FEBRUARY)
        other = Home(embedded_home.folder, embedded_home.root, fts, chroma)
        if run == "sync":
            other.sync()
        else:
            for _ in range(2 if run == "two rebuilds" else 1):
                other.rebuild()

    found = embedded_home.verify(deep=True, wrap=watching("fts", Moment("scan", 1, beside, after=not before)))
    assert found.ok
    assert found == embedded_home.verify(deep=True), "the result is for the live builds"
    assert embedded_home.contents() == {"fts": projected(lost, edited), "chroma": projected(lost, edited)}


def test_verify_reports_damage_despite_concurrent_runs(embedded_home: Home) -> None:
    spoilt, stays = source("docs/a.md", "spoilt"), source("docs/b.md", "stays")
    commit(embedded_home.root, "p1", [*spoilt, *stays])
    embedded_home.rebuild()
    (wrong,) = projected(spoilt)
    put(embedded_home, "chroma", [altered(wrong, title="Another title")])

    def beside() -> None:
        commit(embedded_home.root, "p1", [*spoilt, *stays, *source("docs/c.md", "new")], at=FEBRUARY)
        Home(embedded_home.folder, embedded_home.root, fts, chroma).sync()

    found = embedded_home.verify(wrap=watching("fts", Moment("scan", 1, beside)))
    assert {name: (sink.changed, sink.missing) for name, sink in found.sinks.items()} == {
        "fts": ((), ()),
        "chroma": ((wrong.id,), ()),
    }


def test_chunks_rewritten_repeatedly_do_not_end_the_run(home: Home) -> None:
    spoilt = source("docs/a.md", "spoilt")
    commit(home.root, "p1", spoilt)
    home.rebuild()
    (wrong,) = projected(spoilt)
    put(home, "fts", [altered(wrong, title="Another title")])
    versions = iter("234")

    def rewrite() -> None:
        version = next(versions)
        more = source("docs/0.md", *("more" for _ in range(int(version))), version=version, at=FEBRUARY)
        commit(home.root, "p1", [*more, *spoilt], at=FEBRUARY)

    once, again = (watching("fts", Moment("open", number, rewrite)) for number in (1, 2))
    assert home.verify(wrap=lambda sink: again(once(sink))).sinks["fts"].changed == (wrong.id,)
    assert next(versions) == "4"


def test_half_written_chunks_are_read_when_complete(home: Home) -> None:
    commit(home.root, "p1", [*source("docs/a.md", "before"), *source("docs/b.md", "before")])
    home.rebuild()
    commit(home.root, "p1", source("docs/a.md", "after", version="2", at=FEBRUARY), at=FEBRUARY)
    written, goes_on = threading.Event(), threading.Event()

    def wait() -> None:
        written.set()
        assert goes_on.wait(60)

    with ThreadPoolExecutor(1) as threads:
        syncs: list[Future[RunOutcome]] = []

        def begin() -> None:
            other = Home(home.folder, home.root, fts)
            halfway = watching("fts", Moment("replace", 1, wait, after=True))
            syncs.append(threads.submit(other.sync, wrap=halfway, allow_deletions=1))
            assert written.wait(60)
            threading.Timer(0.5, goes_on.set).start()

        found = home.verify(wrap=watching("fts", Moment("scan", 1, begin)))
        syncs[0].result()
    assert found.ok
    assert found.sinks["fts"].families == 1


def test_rebuild_locks_the_home_while_it_writes(home: Home) -> None:
    """For each batch, and for removals: a concurrent sync writes its own receipts."""
    commit(home.root, "p1", [*source("docs/a.md", "a"), *source("docs/b.md", "b")])
    seen = []

    def look() -> None:
        seen.append(held_locks(home.folder))

    def lose_one() -> None:
        commit(home.root, "p1", source("docs/a.md", "a"))

    moments = [
        Moment("replace", 1, look),
        Moment("scan", 1, lambda: (lose_one(), look()), after=True),
        Moment("delete", 1, look),
    ]

    def watched(sink: Sink) -> Sink:
        for moment in moments:
            sink = watching("fts", moment)(sink)
        return sink

    home.rebuild(wrap=watched)
    assert seen == [("writer", "rebuild"), ("rebuild",), ("writer", "rebuild")]
