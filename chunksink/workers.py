"""Processes that share the work on large inputs; none for small ones, where starting them costs more."""

import gc
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from threading import Thread
from threading import enumerate as threads
from time import sleep
from warnings import filterwarnings

WORTH_BYTES = 64 * 2**20
MOST = 8


@contextmanager
def worker_processes(total_bytes: int, jobs: int | None) -> Iterator[Executor | None]:
    """`jobs` processes, or as many as the machine and the input deserve; None where one process is enough."""
    wanted = jobs or (min(os.cpu_count() or 1, MOST) if total_bytes >= WORTH_BYTES else 1)
    if wanted <= 1:
        yield None
        return
    # Not multiprocessing's own: its processes run the caller's script once more, unless that guards itself.
    from loky import ProcessPoolExecutor

    # It restarts a worker that uses much memory, as parsers do, and warns on standard error.
    filterwarnings("ignore", message="A worker stopped while some jobs were given", category=UserWarning)
    others = set(threads())
    pool = ProcessPoolExecutor(wanted, initializer=_begin, initargs=(os.getpid(),))
    try:
        with _interrupts_held():
            pool.submit(int)  # which starts the processes
        yield pool
    except BaseException:
        pool.shutdown(kill_workers=True)
        raise
    else:
        pool.shutdown()
    finally:
        _join_feeders(others)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C comes to us when this ends, and to processes started meanwhile never: one that is still importing when it
    comes would end with a traceback."""
    resource_tracker.ensure_running()  # it would let them in again when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _join_feeders(others: set[Thread]) -> None:
    """A pool's shutdown does not wait for the thread that fed its queue. That may hold the last semaphore: if we end
    while it gives that up, loky warns of it on our standard error."""
    for thread in set(threads()) - others:
        if thread.name == "QueueFeederThread":
            thread.join(timeout=5)


def _begin(parent: int) -> None:
    gc.disable()  # looking for cycles costs a tenth of the time; work that makes any collects them itself
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """Who was killed ends nobody: its workers would wait for it for ever."""
    while os.getppid() == parent:
        sleep(1)
    os._exit(1)
