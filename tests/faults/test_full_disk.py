"""A full disk: the error names it, no final name has partial content, and the next run succeeds.

The full disk is simulated by a limit on file sizes, and by a small tmpfs if one may be mounted.
"""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chunksink.command_line.exits import Exit
from tests.conftest import HEAVY, ROOT, sampled
from tests.faults.limited import end, home_in
from tests.journey.support import environment
from tests.support.bus import FEBRUARY, commit, source
from tests.support.home import Home, digests, each

pytestmark = pytest.mark.promise(2)

OLD = [source(f"docs/{number}.md", f"okapi {number}", f"lemur {number} " * 40) for number in range(30)]
NEW = [
    *(source(f"docs/{number}.md", f"tapir {number} " * 300, version="2", at=FEBRUARY) for number in range(20)),
    *OLD[20:],
    *(source(f"docs/more{number}.md", f"zebra {number} " * 300, at=FEBRUARY) for number in range(20)),
]
ENOUGH = 10_000_000
DENSE = [0, 1, 512, *range(4096, 700_000, 4096), ENOUGH] if HEAVY else []
LIMITS = DENSE or [0, 50_000, 350_000, ENOUGH]
FEW = [*DENSE[::8], ENOUGH] if HEAVY else [200_000, ENOUGH]


def prepare(folder: Path, sinks: str) -> Home:
    """A live generation, and a bus that has changed since."""
    home = home_in(folder, sinks)
    commit(home.root, "p1", [record for records in OLD for record in records])
    home.rebuild()
    commit(home.root, "p1", [record for records in NEW for record in records], at=FEBRUARY)
    return home


def oracle(folder: Path, sinks: str) -> dict[str, str]:
    fresh = home_in(folder, sinks)
    commit(fresh.root, "p1", [record for records in NEW for record in records], at=FEBRUARY)
    fresh.rebuild()
    return digests(fresh)


def run_limited(homes: Path, sinks: str, run: str, limits: list[int]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.faults.limited", str(homes), sinks, run, *map(str, limits)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_whole(folder: Path) -> None:
    """Every database of the home is sound, and nothing incomplete has a final name."""
    for file in [*folder.rglob("*.db"), *folder.rglob("*.sqlite3")]:
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("pragma integrity_check").fetchall() == [("ok",)], file
    assert (folder / "home.id").read_text(encoding="ascii").isalnum()
    for record in (folder / "runs").glob("*.jsonl"):
        for line in record.read_bytes().splitlines(keepends=True):
            assert not line.endswith(b"\n") or json.loads(line)


@pytest.mark.parametrize(
    ("sinks", "run", "limits"),
    [("fts", "sync", LIMITS), ("fts", "rebuild", DENSE or [1, 120_000, ENOUGH]), ("fts,chroma", "sync", FEW)],
    ids=["sync", "rebuild", "sync with chroma"],
)
def test_file_size_limit_leaves_nothing_half_written(sinks: str, run: str, limits: list[int], tmp_path: Path) -> None:
    prepared = prepare(tmp_path / "prepared", sinks)
    wanted = oracle(tmp_path / "oracle", sinks)
    for limit in limits:
        shutil.copytree(prepared.folder.parent, tmp_path / "homes" / str(limit))
    ended = run_limited(tmp_path / "homes", sinks, run, limits)
    assert [one["limit"] for one in ended] == limits
    assert ended[0]["ended"] != "ok"
    assert ended[-1]["ended"] == "ok", ended[-1]
    for one in ended:
        assert one["known"], one.get("trace")
        after(tmp_path / "homes" / str(one["limit"]), sinks, wanted)


def after(folder: Path, sinks: str, wanted: dict[str, str]) -> None:
    """Run after space was freed."""
    home = home_in(folder, sinks)
    assert_whole(home.folder)
    home.sync()
    assert digests(home) == wanted
    assert sum(each(home.sync(), "written").values()) == 0


COMMAND = "import resource, sys; from chunksink.command_line.cli import run; n = int(sys.argv[1]); " + (
    "sys.dont_write_bytecode = True; "  # Python would cut the files off, and read them next time
    "resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)); sys.exit(run(sys.argv[2:]))"
)


@pytest.mark.parametrize("limit", [20_000, *([0, 120_000] if HEAVY else [])])
def test_full_disk_is_reported_without_a_traceback(limit: int, tmp_path: Path) -> None:
    home = prepare(tmp_path, "fts")
    named = ["--home", str(home.folder), "--chunks", str(home.root.path)]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, str(limit), "sync", *named],
        cwd=tmp_path,
        env=environment(CHUNKSINK_SINKS="fts"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == Exit.ENGINE, done.stderr
    assert str(tmp_path) in done.stderr
    assert_whole(home.folder)
    home.sync()
    assert digests(home) == oracle(tmp_path / "oracle", "fts")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A separate file system with little space."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a tmpfs cannot be mounted here: that takes root, and a system that allows it")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_small_disk_leaves_nothing_half_written(small_disk: Path, tmp_path: Path) -> None:
    """Only this many bytes are free."""
    prepared = prepare(tmp_path / "prepared", "fts")
    wanted = oracle(tmp_path / "oracle", "fts")
    ended = []
    for room in sampled((0, 4096, 16_384, 65_536, 131_072, 262_144, 524_288)):
        folder = small_disk / "home"
        shutil.copytree(prepared.folder.parent, folder)
        fill = small_disk / "fill"
        with fill.open("wb") as file:
            free = shutil.disk_usage(small_disk).free
            file.write(bytes(max(0, free - room)))
        one = end(folder, "fts", "sync")
        assert one["known"], one.get("trace")
        ended.append(one["ended"])
        fill.unlink()
        after(folder, "fts", wanted)
        shutil.rmtree(folder)
    assert ended[0] != "ok"


WRITE = """
import resource, sys
from pathlib import Path
from chunksink.sinks.conformance.samples import DIMENSIONS, family, marker
from chunksink.sinks.errors import OutOfResources
from chunksink.sinks.retry import RetryPolicy, with_retries
from tests.support.local_engines import chroma

sink = with_retries(chroma(Path(sys.argv[1])), RetryPolicy(deadline_seconds=30))
build = sink.create(marker(), DIMENSIONS)
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    for number in range(100):
        build.replace([family(f"{number}", ["word " * 2000])])
        build.flush()
except OutOfResources:
    print("refused")
"""


@pytest.mark.parametrize("limit", [500_000, 600_000])  # with two different messages of Chroma
def test_write_to_embedded_chroma_on_a_full_disk_is_not_repeated(limit: int, tmp_path: Path) -> None:
    """Chroma's failed call keeps its lock, so a second one would wait forever."""
    command = [sys.executable, "-c", WRITE, str(tmp_path), str(limit)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "refused\n", done.stderr
