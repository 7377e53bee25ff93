"""Worker processes need no guard in the calling script, and none outlives it."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from chunksink.workers import worker_processes
from tests.support.waiting import eventually

SCRIPT = """
import os
from time import sleep
from chunksink.workers import worker_processes

print("begun", flush=True)
with worker_processes(0, 2) as workers:
    print(*{workers.submit(os.getpid).result() for _ in range(20)}, flush=True)
    if wait:
        workers.submit(sleep, 60).result()
"""


def started(folder: Path, *, wait: bool) -> subprocess.Popen[str]:
    """A script without a `__main__` guard."""
    script = folder / "script.py"
    script.write_text(f"wait = {wait}\n{SCRIPT}")
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def _has_workers(jobs: int) -> bool:
    with worker_processes(0, jobs) as workers:
        return workers is not None


def test_worker_of_a_pool_starts_no_processes() -> None:
    with get_context("spawn").Pool(1) as pool:
        assert pool.apply(_has_workers, (2,)) is False


def test_a_script_is_run_once(tmp_path: Path) -> None:
    process = started(tmp_path, wait=False)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    begun, workers = out.splitlines()
    assert begun == "begun"
    assert str(process.pid) not in workers.split()


def test_a_killed_process_leaves_no_worker(tmp_path: Path) -> None:
    process = started(tmp_path, wait=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    workers = [int(number) for number in process.stdout.readline().split()]
    assert all(map(is_running, workers))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    eventually(lambda: not any(map(is_running, workers)))


def test_failure_ends_the_workers() -> None:
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError), worker_processes(0, 2) as workers:
        assert workers is not None
        number = workers.submit(os.getpid).result()
        workers.submit(time.sleep, 60)
        raise ZeroDivisionError
    assert time.monotonic() - began < 30
    assert not is_running(number)


@pytest.mark.parametrize("fails", [False, True])
def test_no_thread_outlives_the_pool(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that releases a semaphore while the process ends makes loky print a warning."""
    others, close = set(threading.enumerate()), Connection.close

    def close_slowly(connection: Connection) -> None:
        if threading.current_thread().name == "QueueFeederThread":
            time.sleep(0.2)
        close(connection)

    monkeypatch.setattr(Connection, "close", close_slowly)
    with suppress(ZeroDivisionError), worker_processes(0, 2) as workers:
        assert workers is not None
        workers.submit(os.getpid).result()
        if fails:
            raise ZeroDivisionError
    assert set(threading.enumerate()) <= others


@pytest.mark.parametrize(("size", "jobs"), [(0, None), (2**40, 1)])
def test_small_input_starts_no_worker(size: int, jobs: int | None) -> None:
    with worker_processes(size, jobs) as workers:
        assert workers is None


def test_workers_never_receive_ctrl_c(tmp_path: Path) -> None:
    """A terminal sends Ctrl-C to all processes. A worker that is still importing would end with a traceback."""
    script = tmp_path / "script.py"
    script.write_text("""
import os
import signal
from pathlib import Path
from chunksink.workers import worker_processes

with worker_processes(0, 2) as workers:
    started = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    for process in map(int, started):
        os.kill(process, signal.SIGINT)
    print(workers.submit(int, "7").result(), len(started), *signal.pthread_sigmask(signal.SIG_BLOCK, []))
""")
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr) == ("7 4\n", "")  # two workers and two resource trackers
