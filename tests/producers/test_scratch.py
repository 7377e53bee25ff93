"""What waits lies in a folder that goes with its run, or with a later one where its process was killed."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from chunksink.producers.scratch import PREFIX, scratch
from tests.conftest import ROOT
from tests.producers.bench import Bench

HOLD = """
import time
from chunksink.producers.scratch import scratch
with scratch() as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_it_goes_when_its_run_ends(temporary: Path) -> None:
    with pytest.raises(KeyboardInterrupt), scratch() as folder:
        (folder / "0").write_text("waits")
        assert (folder.parent, folder.name.startswith(PREFIX), folder.stat().st_mode & 0o77) == (temporary, True, 0)
        raise KeyboardInterrupt
    assert list(temporary.iterdir()) == []


def test_two_at_once_leave_each_other_alone(temporary: Path) -> None:
    with scratch() as one:
        (one / "0").write_text("waits")
        with scratch() as two:
            assert one != two
        assert (one / "0").read_text() == "waits"


def test_what_a_killed_process_left_goes_with_the_next_run(temporary: Path, bench: Bench) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", HOLD]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        (left / "0").write_text("waits")
        bench.write("a.md", "# A")
        bench.ingest()
        assert list(temporary.iterdir()) == [left], "its process is alive"
        process.send_signal(signal.SIGKILL)
    bench.ingest()
    assert list(temporary.iterdir()) == []


def test_what_is_not_of_ours_stays(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (temporary / f"{PREFIX}link").symlink_to(tmp_path / "theirs")
    (temporary / f"{PREFIX}file").write_text("theirs")
    (temporary / "other").mkdir()
    with scratch():
        pass
    assert sorted(path.name for path in temporary.iterdir()) == [f"{PREFIX}file", f"{PREFIX}link", "other"]
    assert (tmp_path / "theirs").is_dir()


def test_runs_that_begin_at_the_same_time_take_nothing_from_each_other(temporary: Path) -> None:
    """The instant between making the folder and holding it is where a cleaner could come by."""
    work = (
        "from chunksink.producers.scratch import scratch\n"
        "for _ in range(300):\n"
        "    with scratch() as folder:\n"
        "        (folder / '0').write_text('waits')\n"
        "        assert (folder / '0').read_text() == 'waits'\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    processes = [subprocess.Popen([sys.executable, "-c", work], env=environment) for _ in range(3)]
    deadline = time.monotonic() + 60
    codes = [process.wait(deadline - time.monotonic()) for process in processes]
    assert (codes, list(temporary.iterdir())) == ([0, 0, 0], [])
