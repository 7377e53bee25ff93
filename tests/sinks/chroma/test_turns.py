"""Waiting for a process that was stopped (not killed) is limited."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chunksink.search.query import search
from chunksink.search.question import Question
from chunksink.sinks.chroma import ChromaSink, turns
from chunksink.sinks.conformance.samples import DIMENSIONS, family, hashes_in, hashes_of, vector
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import NotConfirmed
from tests.conftest import ROOT
from tests.search.support import family as worded
from tests.search.support import legs_over

pytestmark = pytest.mark.promise(9)

AT_ONCE = turns.READER_SECONDS / 2
"""Seconds: less than readers wait for a working process, and much more than they need on a busy machine."""

HOLD = """
import os, signal, sys, time
from pathlib import Path
from chunksink.sinks.chroma import seal, turns
with getattr(turns if sys.argv[2] == "turn" else seal, sys.argv[2])(Path(sys.argv[1])):
    print("held", flush=True)
    if sys.argv[3] == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        time.sleep(float(sys.argv[3]))
"""


@contextmanager
def other_process(path: Path, how: str, lock: str = "turn") -> Iterator[subprocess.Popen[str]]:
    """A process that has the turn, and is `stopped` during it or busy for some seconds."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), lock, how],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


@pytest.fixture
def build(sink: ChromaSink, signed: Marker, tmp_path: Path) -> Path:
    """One family in a build that no process has open."""
    with closing(sink.create(signed, DIMENSIONS)) as build:
        build.replace([family("a", ["alpha one", "alpha two"])])
        build.flush()
    return tmp_path / "chroma" / signed.build_id


@pytest.mark.parametrize(
    ("is_open", "lock"), [(False, "turn"), (False, "_check_lock"), (True, "turn"), (True, "_check_lock")]
)
def test_reader_does_not_wait_for_a_stopped_process(
    is_open: bool, lock: str, build: Path, sink: ChromaSink, signed: Marker
) -> None:
    """Whether or not the reader has already opened the build. When the process runs again, the reader works again."""
    reader = sink.reader(signed.build_id) if is_open else None
    query = vector("alpha one")
    with other_process(build, "stopped", lock) as process:
        began = time.monotonic()
        if is_open and lock == "_check_lock":
            assert reader is not None
            assert len(reader.query(query)) == 2, "only who opens a build looks at it alone"
        else:
            with pytest.raises(NotConfirmed, match=r"process \d+ is suspended"):
                (reader or sink.reader(signed.build_id)).query(query)
        assert time.monotonic() - began < AT_ONCE
        process.send_signal(signal.SIGCONT)
        process.wait()
        reader = reader or sink.reader(signed.build_id)
        assert len(reader.query(query)) == 2
    reader.close()


def test_reader_waits_for_a_working_process(build: Path, sink: ChromaSink, signed: Marker) -> None:
    with closing(sink.reader(signed.build_id)) as reader, other_process(build, "2.5"):
        assert len(reader.query(vector("alpha one"))) == 2


def test_reader_reports_a_long_working_process(
    build: Path, sink: ChromaSink, signed: Marker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "READER_SECONDS", 0.5)
    with (
        closing(sink.reader(signed.build_id)) as reader,
        other_process(build, "60"),
        pytest.raises(NotConfirmed, match="another process"),
    ):
        reader.query(vector("alpha one"))


def test_reader_gets_the_turn_of_a_process_that_ends_while_it_is_examined(
    build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with other_process(build, "60") as process:
        read = Path.read_text

        def end_before(path: Path) -> str:
            if path == Path(f"/proc/{process.pid}/stat"):
                process.kill()
                process.wait()
            return read(path)

        monkeypatch.setattr(Path, "read_text", end_before)
        with turns.turn(build, is_reader=True):
            assert process.returncode == -signal.SIGKILL


def test_abandoned_wait_does_not_take_the_turn_later(build: Path) -> None:
    with other_process(build, "stopped") as process:
        for _ in range(3):
            with pytest.raises(NotConfirmed), turns.turn(build, is_reader=True):
                pass
        assert [thread.name for thread in threading.enumerate()].count("turn") == 1, "each try leaves one"
        process.send_signal(signal.SIGCONT)
        process.wait()
        time.sleep(0.1)
        with turns.turn(build, is_reader=True):
            pass


def test_lock_that_changes_hands_has_a_holder(build: Path) -> None:
    """For a moment nobody has it. A reader that saw this once would give up, as beside a stopped process."""
    with (build / turns.FILE).open("wb") as waiting, (build / turns.FILE).open("wb") as next_holder:
        taken = threading.Timer(0.03, fcntl.flock, (next_holder, fcntl.LOCK_EX))
        taken.start()
        assert list(turns._holders(waiting.fileno())) == [str(os.getpid())]
        taken.join()


def test_threads_of_a_reader_share_a_turn(build: Path) -> None:
    share = turns.SharedTurn(partial(turns.turn, build, is_reader=True))
    both = threading.Barrier(2, timeout=5)

    def join(_number: int) -> None:
        with share():
            both.wait()  # never passed if they took turns

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(join, range(2)))
    with turns.turn(build):  # the last one has ended it
        pass


def test_call_that_loads_vectors_has_its_turn_alone(
    build: Path, sink: ChromaSink, signed: Marker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later calls share a turn. Two calls that load vectors at once crash the process."""
    active: list[int] = []
    together: list[int] = []

    def watched(**arguments: Any) -> Any:
        active.append(1)
        together.append(len(active))
        time.sleep(0.1)
        active.pop()
        return query(**arguments)

    with closing(sink.reader(signed.build_id)) as reader, ThreadPoolExecutor(4) as threads:
        with reader._in_use() as handle:
            collection = handle.opened().collection
        query = collection.query
        monkeypatch.setattr(collection, "query", watched)
        for _ in range(2):
            list(threads.map(lambda _: reader.query(vector("alpha one")), range(4)))
    assert together[0] == 1
    assert max(together[:2]) == 1, "the second one waited for the first"
    assert max(together[4:]) > 1


def test_writer_gets_its_turn_beside_threads_that_never_pause(build: Path) -> None:
    share = turns.SharedTurn(partial(turns.turn, build, is_reader=True))
    written = threading.Event()

    def read(_number: int) -> None:
        while not written.is_set():
            with share():
                time.sleep(0.005)

    with ThreadPoolExecutor(4) as threads:
        reading = threads.map(read, range(4))
        for _ in range(5):
            began = time.monotonic()
            with turns.turn(build):
                assert time.monotonic() - began < AT_ONCE
        written.set()
        list(reading)


def test_all_waiting_threads_learn_that_a_process_is_stopped(build: Path) -> None:
    share = turns.SharedTurn(partial(turns.turn, build, is_reader=True))

    def attempt(_number: int) -> float:
        began = time.monotonic()
        with pytest.raises(NotConfirmed, match="suspended"), share():
            pass
        return time.monotonic() - began

    with other_process(build, "stopped") as process, ThreadPoolExecutor(8) as threads:
        assert max(threads.map(attempt, range(8))) < AT_ONCE
        process.send_signal(signal.SIGCONT)
        process.wait()
        with share():
            pass


def test_writer_does_not_wait_forever_for_a_stopped_reader(
    build: Path, sink: ChromaSink, signed: Marker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "WRITER_SECONDS", 0.5)
    changed = family("a", ["alpha three"], version="2")
    with closing(sink.open(signed.build_id)) as writer:
        writer.count()
        with other_process(build, "stopped"), pytest.raises(NotConfirmed):
            writer.replace([changed])
        writer.replace([changed])
        writer.flush()
        assert hashes_in(writer) == hashes_of([changed])


def test_search_falls_back_to_keywords_when_chroma_is_blocked(tmp_path: Path) -> None:
    with legs_over(tmp_path, [worded("a", "a cat", "two cats")]) as legs:
        with other_process(tmp_path / "chroma" / "vectors", "stopped"):
            began = time.monotonic()
            answer = search(legs, Question("cat"))
            assert time.monotonic() - began < AT_ONCE
        assert answer.hits
        assert list(answer.unavailable) == ["semantic"]
        assert not search(legs, Question("cat")).unavailable
