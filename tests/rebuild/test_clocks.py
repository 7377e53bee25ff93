"""No clock decides anything: chunks are ranked only by their own times."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
import time_machine

from chunksink.chunkbus.canonical import text_hash
from chunksink.chunkbus.folder_partitions import FolderRoot
from tests.chunkbus.samples import chunk, lines_of, put
from tests.support.bus import FEBRUARY, commit, source
from tests.support.home import CatalogProbe, Home
from tests.support.tampering import require_sound
from tests.support.watched_sinks import Moment, watching

pytestmark = pytest.mark.promise(10)

TWO_SECONDS = 2_000_000_000
YEARS = 10 * 365 * 24 * 3600
CLOCKS = {"ahead": YEARS, "behind": -YEARS}


@pytest.fixture
def edited(home: Home) -> Home:
    """A home whose index was made before an edit."""
    families = [source(f"docs/{number}.md", *(f"text {number} {part}" for part in range(3))) for number in range(4)]
    commit(home.root, "p1", [record for records in families for record in records])
    home.rebuild()
    commit(home.root, "p2", source("docs/0.md", "edited", version="2", at=FEBRUARY), at=FEBRUARY)
    return home


@pytest.mark.parametrize("off", CLOCKS.values(), ids=CLOCKS)
def test_wrong_clock_changes_nothing(off: int, edited: Home, tmp_path: Path) -> None:
    """Also when it jumps between two runs."""
    with time_machine.travel(time.time() + off) as clock:
        outcome = edited.sync()
        assert (outcome.families.changed, outcome.families.removed) == (1, 0)
        clock.shift(-2 * off)
        edited.rebuild()
        require_sound(edited, tmp_path / "meanwhile")
    require_sound(edited, tmp_path / "afterwards")


@pytest.mark.parametrize("off", CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize("how", ["sync", "rebuild"])
def test_clock_that_jumps_during_a_run_changes_nothing(how: str, off: int, edited: Home, tmp_path: Path) -> None:
    jumps: list[int] = []
    with time_machine.travel(time.time()) as clock:

        def jump() -> None:
            jumps.append(off)
            clock.shift(off)

        wrap = watching("fts", Moment("flush", 1, jump))
        edited.sync(wrap=wrap) if how == "sync" else edited.rebuild(wrap=wrap)
        assert jumps
        edited.sync()
        require_sound(edited, tmp_path)


def test_file_system_with_two_second_times_is_read_correctly(
    root: FolderRoot, probe: CatalogProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.stat

    def coarse(path: Path, **options: Any) -> os.stat_result:
        status = real(path, **options)
        times = {"st_mtime_ns": status.st_mtime_ns, "st_ctime_ns": status.st_ctime_ns}
        return os.stat_result(status[:10], {name: stamp // TWO_SECONDS * TWO_SECONDS for name, stamp in times.items()})

    monkeypatch.setattr(Path, "stat", coarse)
    for text in ("one", "two"):
        put(root, "p", lines_of([chunk(0, text=text)]))  # in place: size and inode stay as they are
        probe.refresh()
        assert probe.state.db.execute("select text_hash from chunk").fetchall() == [(text_hash(text),)]


def test_files_stamped_by_another_clock_are_read_each_time(
    root: FolderRoot, probe: CatalogProbe, opened_files: list[str]
) -> None:
    """For example by a server whose clock is ahead: the resolution of its times is unknown."""
    put(root, "p", lines_of([chunk(0)]))
    with time_machine.travel(time.time() - 3600):
        probe.refresh()
        opened_files.clear()
        probe.refresh()
    assert "p" in opened_files
