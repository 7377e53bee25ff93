"""Processes that share the work on large inputs; none for small ones, where starting them costs more."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

WORTH_BYTES = 64 * 2**20
MOST = 8


@contextmanager
def worker_processes(total_bytes: int, jobs: int | None) -> Iterator[ProcessPoolExecutor | None]:
    """`jobs` processes, or as many as the machine and the input deserve; None where one process is enough."""
    wanted = jobs if jobs is not None else min(len(os.sched_getaffinity(0)), MOST) if total_bytes >= WORTH_BYTES else 1
    if wanted <= 1:
        yield None
        return
    # Spawned, not forked: a fork copies whatever threads and engines the caller has open.
    pool = ProcessPoolExecutor(wanted, mp_context=get_context("spawn"), initializer=_leave_interrupts_to_parent)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
