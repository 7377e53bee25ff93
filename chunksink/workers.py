"""Worker processes for large inputs. Small inputs get none, since starting processes costs more."""

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
    """`jobs` processes, or a number that fits machine and input; None if one process is enough."""
    wanted = jobs or (min(os.cpu_count() or 1, MOST) if total_bytes >= WORTH_BYTES else 1)
    if wanted <= 1:
        yield None
        return
    # Not multiprocessing's pool: its processes run an unguarded script of the caller again.
    from loky import ProcessPoolExecutor

    # loky restarts workers that use much memory, as parsers do, and warns on standard error.
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
    """Delay Ctrl-C until the block ends. Processes started in it never get it: one that is still importing would print
    a traceback."""
    resource_tracker.ensure_running()  # its start would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _join_feeders(others: set[Thread]) -> None:
    """Wait for the threads that feed the pool's queues, as its shutdown does not. One that still releases a semaphore
    at exit would make loky print a warning."""
    for thread in set(threads()) - others:
        if thread.name == "QueueFeederThread":
            thread.join(timeout=5)


def _begin(parent: int) -> None:
    gc.disable()  # saves a tenth of the time; work that makes cycles collects them itself
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End with the parent: a killed parent cannot end its workers."""
    while os.getppid() == parent:
        sleep(1)
    os._exit(1)
