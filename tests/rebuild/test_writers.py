"""Many runs on one home at once: each waits or leaves as documented, and what comes out is right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chunkbus.layout import BusRoot
from rebuild.lock import WriterLock, rebuilding
from tests.conftest import HEAVY, ROOT
from tests.rebuild.engines import chroma, fts
from tests.rebuild.support import FEBRUARY, Home, commit, projected, source
from tests.rebuild.wrapping import Moment, watching

pytestmark = pytest.mark.promise(9)

ROUNDS = int(os.environ.get("CHUNKSINK_SOAK_ROUNDS", "1"))
RUN = """
import sys
from pathlib import Path
from chunkbus.layout import BusRoot
from rebuild import lock
from rebuild.errors import HomeLocked
from tests.rebuild.engines import chroma, fts
from tests.rebuild.support import Home

home = Home(Path(sys.argv[1]), BusRoot(Path(sys.argv[2])), fts, chroma)
try:
    home.rebuild() if sys.argv[3] == "rebuild" else home.sync()
except HomeLocked as error:
    sys.exit(f"locked: {error}")
"""


def start(home: Home, command: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", RUN, str(home.folder), str(home.root.path), command]
    return subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("processes", [2, *([8] if HEAVY else [])])
def test_all_at_once(processes: int, tmp_path: Path) -> None:
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts, chroma)
    commit(home.root, "p1", source("docs/a.md", "before"))
    home.rebuild()
    for number in range(ROUNDS):
        edited = [
            source(f"docs/{name}.md", f"round {number} {name}", version=str(number), at=FEBRUARY) for name in "abc"
        ]
        commit(home.root, "p1", [record for records in edited for record in records], at=FEBRUARY)
        commands = ["rebuild" if place == 1 else "sync" for place in range(processes)]
        running = [start(home, command) for command in commands]
        for process in running:
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0 or errors.startswith("locked: another"), errors
        home.sync()
        wanted = projected(*edited)
        assert home.contents() == {"fts": wanted, "chroma": wanted}
        assert home.verify(deep=True).ok


def test_a_sync_goes_on_beside_a_rebuild(tmp_path: Path) -> None:
    """The rebuild has given the home back between two batches; the sync writes into the live build meanwhile."""
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts)
    commit(home.root, "p1", source("docs/a.md", "before"))
    home.rebuild()
    edited = source("docs/a.md", "after", version="2", at=FEBRUARY)
    with rebuilding(home.folder):
        commit(home.root, "p1", edited, at=FEBRUARY)
        home.sync()
    assert home.contents() == {"fts": projected(edited)}


@pytest.mark.parametrize("run", ["sync", "verify"])
@pytest.mark.parametrize("change", ["edited", "withdrawn", "added"])
def test_what_another_run_takes_in_beside_a_rebuild_costs_it_a_round(run: str, change: str, tmp_path: Path) -> None:
    """While the new build is read back: it is not wrong then, but behind."""
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts)
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


def test_a_run_takes_its_own_lock_again_for_nothing(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path)
    with lock(0), lock(0):
        pass
    with WriterLock(tmp_path)(0):
        pass
