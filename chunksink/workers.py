"""Processes that share the work on large inputs; none for small ones, where starting them costs more."""

import gc
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
    wanted = jobs or (min(os.cpu_count() or 1, MOST) if total_bytes >= WORTH_BYTES else 1)
    if wanted <= 1:
        yield None
        return
    # Spawned, not forked: a fork copies whatever threads and engines the caller has open.
    pool = ProcessPoolExecutor(wanted, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    gc.disable()  # looking for cycles costs a tenth of the time; work that makes any collects them itself
