"""Worker processes for large inputs. Small inputs get none, since starting processes costs more."""

import gc
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from multiprocessing import current_process, resource_tracker
from threading import Thread
from threading import enumerate as threads
from time import sleep
from warnings import filterwarnings

MIN_BYTES = 64 * 2**20
MAX_PROCESSES = 8


@contextmanager
def worker_processes(total_bytes: int, jobs: int | None = None) -> Iterator[Executor | None]:
    """`jobs` processes, or a number that fits machine and input; None if one process is enough, or if this is a worker
    of multiprocessing's pool, which may not start processes."""
    processes = jobs or (min(os.cpu_count() or 1, MAX_PROCESSES) if total_bytes >= MIN_BYTES else 1)
    if processes <= 1 or current_process().daemon:
        yield None
        return
    # multiprocessing's pool would run the caller's script again if that has no `__main__` guard.
    from loky import ProcessPoolExecutor

    # loky restarts workers that use much memory, as parsers do, and warns on standard error.
    filterwarnings("ignore", message="A worker stopped while some jobs were given", category=UserWarning)
    others = set(threads())
    pool = ProcessPoolExecutor(processes, initializer=_start_worker, initargs=(os.getpid(),))
    try:
        with _interrupts_delayed():
            pool.submit(int)  # starts the processes
        yield pool
    except BaseException:
        pool.shutdown(kill_workers=True)
        raise
    else:
        pool.shutdown()
    finally:
        _join_feeders(others)


@contextmanager
def _interrupts_delayed() -> Iterator[None]:
    """Delay Ctrl-C until the block ends. Processes started in the block never receive it: a process that is still
    importing would print a traceback."""
    resource_tracker.ensure_running()  # its start would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _join_feeders(others: set[Thread]) -> None:
    """Wait for the threads that feed the pool's queues, because its shutdown does not wait for them. A thread
    that releases a semaphore at exit makes loky print a warning."""
    for thread in set(threads()) - others:
        if thread.name == "QueueFeederThread":
            thread.join(timeout=5)


def _start_worker(parent: int) -> None:
    gc.disable()  # saves a tenth of the time; code that creates cycles collects them itself
    Thread(target=_exit_with, args=(parent,), daemon=True).start()


def _exit_with(parent: int) -> None:
    """End with the parent: a killed parent cannot end its workers."""
    while os.getppid() == parent:
        sleep(1)
    os._exit(1)
