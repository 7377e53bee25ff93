"""The worker process that fills a new embedded build: concurrency, signals, and the death of either process."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from chunksink.sinks.chroma import ChromaBuild, EmbeddedChromaSink, worker
from chunksink.sinks.chroma.worker import WorkerBuild
from chunksink.sinks.conformance.samples import DIMENSIONS, family, hashes_in, hashes_of, marker
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Family
from chunksink.sinks.errors import BuildBroken
from tests.conftest import HEAVY, ROOT
from tests.support.chroma import FEW
from tests.support.waiting import eventually


@cache
def many() -> list[Family]:
    return [family(f"f{number}", [f"{number} {place}" for place in range(100)]) for number in range(30)]


@pytest.fixture
def distant(sink: EmbeddedChromaSink, signed: Marker) -> Iterator[WorkerBuild]:
    sink.prepare()
    build = sink.create(signed, DIMENSIONS)
    assert isinstance(build, WorkerBuild)
    yield build
    build.close()


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="there is one processor"
)
def test_threads_that_wait_for_one_another_share_a_processor(distant: WorkerBuild) -> None:
    """The threads of SQLite and the threads that wait for them share one. Threads that insert vectors run in parallel
    and keep all processors."""
    for some in (FEW, many()[:20]):
        distant.replace(some)
    process = distant._worker._process.pid
    allowed = {task: os.sched_getaffinity(int(task.name)) for task in Path(f"/proc/{process}/task").iterdir()}
    statements = {frozenset(where) for task, where in allowed.items() if (task / "comm").read_text().startswith("sqlx")}
    free = [task.name for task, where in allowed.items() if where == os.sched_getaffinity(0)]
    assert len(statements) == 1 and len(next(iter(statements))) == 1
    assert str(process) in free and len(free) > len(os.sched_getaffinity(0))


@pytest.mark.skipif(not HEAVY, reason="1,000 documents are written; CHUNKSINK_SOAK_HEAVY")
def test_other_threads_run_while_the_worker_writes(distant: WorkerBuild) -> None:
    """Chroma blocks all other threads of its own process meanwhile."""
    distant.count()
    ticks, done = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.005):
            ticks += 1

    ticking = threading.Thread(target=tick)
    ticking.start()
    started = time.monotonic()
    distant.replace(many()[:10])
    distant.flush()
    took = time.monotonic() - started
    done.set()
    ticking.join()
    assert ticks > took / 0.005 / 10


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_death_of_the_worker_is_reported_and_confirmed_documents_stay(
    sink: EmbeddedChromaSink, distant: WorkerBuild, signed: Marker, how: signal.Signals
) -> None:
    distant.replace(FEW)
    distant.flush()
    os.kill(distant._worker._process.pid, how)
    for call in (lambda: distant.replace(FEW), distant.flush, distant.count, lambda: hashes_in(distant)):
        with pytest.raises(BuildBroken, match=f"was killed by signal {how.value}"):
            call()
    distant.close()
    again = sink.open(signed.build_id)
    assert hashes_in(again) == hashes_of(FEW)
    again.close()


@pytest.mark.skipif(not HEAVY, reason="3,000 documents are written; CHUNKSINK_SOAK_HEAVY")
def test_death_during_a_call_is_reported(distant: WorkerBuild) -> None:
    dying = threading.Timer(0.2, distant._worker._process.kill)
    dying.start()
    with pytest.raises(BuildBroken, match="signal 9"):
        distant.replace(many())
    dying.join()


@pytest.mark.promise(9)
@pytest.mark.parametrize("call", ["replace", *(["close", "count", "delete", "flush", "scan", "sign"] if HEAVY else [])])
def test_stopped_worker_is_not_waited_for_forever(
    call: str, distant: WorkerBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a paused container or a suspended laptop."""
    monkeypatch.setattr(worker, "ANSWER_SECONDS", 1.0)
    os.kill(distant._worker._process.pid, signal.SIGSTOP)
    if call == "close":
        distant.close()
        assert distant._worker._process.returncode == -signal.SIGKILL
        return
    calls = {
        "count": distant.count,
        "replace": lambda: distant.replace(many()),
        "delete": lambda: distant.delete([FEW[0].parent_id]),
        "flush": distant.flush,
        "scan": lambda: list(distant.scan()),
        "sign": lambda: distant.sign(marker()),
    }
    with pytest.raises(BuildBroken, match="signal 9"):
        calls[call]()


def test_interrupt_at_any_moment_of_a_call_leaves_no_thread(
    distant: WorkerBuild, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process could not end before that thread."""

    class Interrupted(threading.Timer):
        def start(self) -> None:
            super().start()
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(worker, "Timer", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            distant.count()
    left = [thread for thread in threading.enumerate() if isinstance(thread, Interrupted)]
    assert [thread for thread in left if not thread.finished.is_set()] == []


def test_signal_to_the_whole_group_interrupts_no_call(distant: WorkerBuild) -> None:
    distant.count()
    interrupting = [
        threading.Timer(seconds, os.kill, [distant._worker._process.pid, how])
        for seconds, how in ((0.1, signal.SIGHUP), (0.2, signal.SIGTERM), (0.3, signal.SIGINT))
    ]
    for timer in interrupting:
        timer.start()
    distant.replace(many()[:10])
    for timer in interrupting:
        timer.join()
    distant.flush()
    assert distant.count() == 1000


def test_unexpected_error_keeps_its_traceback(distant: WorkerBuild) -> None:
    with pytest.raises(AttributeError) as raised:
        distant._worker.call("no such call")
    assert "worker_process.py" in "".join(raised.value.__notes__)
    assert distant.count() == 0


def test_no_process_is_started_without_preparation(sink: EmbeddedChromaSink, signed: Marker) -> None:
    build = sink.create(signed, DIMENSIONS)
    assert isinstance(build, ChromaBuild)
    build.close()


def test_prepared_worker_is_used_or_ended(sink: EmbeddedChromaSink, signed: Marker) -> None:
    sink.prepare()
    assert sink._spare is not None
    process = sink._spare._process
    build = sink.create(signed, DIMENSIONS)
    assert isinstance(build, WorkerBuild)
    assert build._worker._process is process
    build.close()
    assert process.returncode == 0
    sink.prepare()
    assert sink._spare is not None
    process = sink._spare._process
    sink.close()
    assert process.returncode == -signal.SIGKILL


FILL = """
import sys
from pathlib import Path
from chunksink.sinks.chroma import ChromaSink, EmbeddedChromaSink
from chunksink.sinks.conformance.samples import DIMENSIONS
from chunksink.sinks.contract import Marker
from tests.support.chroma import FEW, long

sink = EmbeddedChromaSink(Path(sys.argv[1]))
sink.prepare()
build = sink.create(Marker("home", sys.argv[2], 1), DIMENSIONS)
try:
    build.replace(FEW)
    build.flush()
    print(build._worker._process.pid, flush=True)
    build.replace(long())
finally:
    build.close()
"""


@contextmanager
def filling(root: Path, build_id: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A process in its own group during a long replacement, and the process id of its worker."""
    command = [sys.executable, "-c", FILL, str(root), build_id]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout
            worker = int(process.stdout.readline())
            time.sleep(1)
            yield process, worker
        finally:
            process.kill()


@pytest.mark.promise(2)
def test_killed_parent_leaves_no_writing_worker(sink: EmbeddedChromaSink, tmp_path: Path) -> None:
    """A process that opens the build immediately afterwards meets at most the end of one call."""
    signed = marker()
    with filling(tmp_path / "chroma", signed.build_id) as (process, worker):
        process.kill()
        process.wait()
        build = sink.open(signed.build_id)
        found = build.count()
        eventually(lambda: not is_running(worker))
        assert build.count() == found
    assert 2 <= found < 6002, "or it would prove nothing"
    again = [family("long", ["0", "1"])]
    build.replace(again)
    build.flush()
    assert hashes_in(build) == hashes_of([*FEW, *again])
    build.close()


def test_interrupt_ends_both_processes_in_order(sink: EmbeddedChromaSink, tmp_path: Path) -> None:
    signed = marker()
    with filling(tmp_path / "chroma", signed.build_id) as (process, worker):
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr
        assert "KeyboardInterrupt" in process.stderr.read()
        assert process.wait(30) == -signal.SIGINT
        assert not is_running(worker)
    build = sink.open(signed.build_id)
    assert set(hashes_of(FEW)) <= set(hashes_in(build))
    build.close()


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
