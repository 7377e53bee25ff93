"""`chunksink validate` as a real process: signals, pipes, terminals, full disks."""

import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.runlog import read_run
from chunksink.exits import Exit
from tests.chunkbus.samples import chunk, lines_of, listing, put, put_chunks
from tests.conftest import ROOT

Popen = subprocess.Popen[str]


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> BusRoot:
    """A bus that keeps validation busy for many seconds: each of its lines is a finding."""
    root = BusRoot(tmp_path_factory.mktemp("bus"))
    put_chunks(root, "k", (b"x" * 99 + b"\n") * 400_000)
    return root


def start(root: BusRoot, home: Path, *arguments: str, **options: Any) -> Popen:
    command = [
        sys.executable,
        "-m",
        "chunksink",
        "validate",
        "--chunks",
        str(root.path),
        "--home",
        str(home),
        *arguments,
    ]
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT} | options
    # A session of its own, so that a signal to the group is what Ctrl-C on a terminal is; background jobs, as whoever
    # runs these tests may be, ignore that signal and hand this down.
    return subprocess.Popen(
        command,
        start_new_session=True,
        preexec_fn=heed_interrupts,
        env=os.environ | {"PYTHONUNBUFFERED": ""},
        **options,
    )


def heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def record(home: Path) -> list[dict[str, Any]]:
    (path,) = (home / "runs").iterdir()
    return list(read_run(path))


def wait_for_findings(process: Popen, home: Path, size: int = 5_000) -> None:
    """Until the run record has so many bytes."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "it ended before anything could be done to it"
        if any(path.stat().st_size >= size for path in (home / "runs").glob("*.jsonl")):
            return
        time.sleep(0.02)
    pytest.fail("too few findings came")


@pytest.fixture
def ended() -> Iterator[list[Popen]]:
    """Whatever a test starts is gone when it ends."""
    processes: list[Popen] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_it_with_its_own_code_and_a_finished_record(
    jobs: str, long_run: BusRoot, tmp_path: Path, ended: list[Popen]
) -> None:
    before = listing(long_run.path)
    process = start(long_run, tmp_path, "--jobs", jobs)
    ended.append(process)
    wait_for_findings(process, tmp_path, size=6_000_000 if jobs == "2" else 5_000)  # by then some workers are idle
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED == 130
    assert err.strip().splitlines()[-1] == "Interrupted. Nothing is half done; run the command again to go on."
    events = record(tmp_path)
    assert (events[-1]["event"], events[-1]["status"]) == ("finished", "interrupted")
    assert listing(long_run.path) == before


def test_a_reader_that_leaves_is_no_error_of_ours(long_run: BusRoot, tmp_path: Path, ended: list[Popen]) -> None:
    process = start(long_run, tmp_path, stdout=subprocess.PIPE)
    ended.append(process)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("MISSING_OUTPUT:manifest k ")
    process.stdout.close()
    process.wait(timeout=60)
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.returncode == Exit.OUTPUT_CLOSED == 141
    events = record(tmp_path)
    assert (events[-1]["event"], events[-1]["status"]) == ("finished", "interrupted")
    assert "MISSING_OUTPUT:unreadable" not in {event.get("code") for event in events}


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_a_full_disk_behind_the_output_is_told_in_one_line(form: list[str], tmp_path: Path) -> None:
    root = put(BusRoot(tmp_path / "bus"), "k", b"{\n")
    with Path("/dev/full").open("w") as full:
        process = start(root, tmp_path / "home", *form, stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == Exit.ENGINE
    assert err.startswith("Error: No space left on device")
    assert len(err.splitlines()) == 1


def on_a_terminal(root: BusRoot, home: Path) -> tuple[str, str]:
    """What it prints on standard output, a pipe, and on standard error, a terminal."""
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 80))
    process = start(root, home, stdout=subprocess.PIPE, stderr=follower)
    os.close(follower)
    shown = b""
    while True:
        try:
            data = os.read(leader, 4096)
        except OSError:  # so Linux says that the other end is closed
            break
        if not data:
            break
        shown += data
    out, _ = process.communicate(timeout=60)
    os.close(leader)
    assert process.returncode == 0
    return out, shown.decode()


def test_a_bar_on_a_terminal_and_none_in_a_pipe(tmp_path: Path) -> None:
    root = put(BusRoot(tmp_path / "bus"), "k", lines_of([chunk(index, text="x" * 900) for index in range(5_000)]))
    out, shown = on_a_terminal(root, tmp_path / "one")
    assert "validate:" in shown
    assert "%|" in shown
    assert out.startswith("clean: 1 partition, 5,000 chunks in ")
    process = start(root, tmp_path / "two", stdout=subprocess.PIPE)
    assert process.communicate(timeout=60) == (out, "")
