"""Threads that the event loop waits for: a bounded pool that queries the engines, and one for a call that may hang."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from chunksink.chunkbus.threads import in_daemon_thread

Result = TypeVar("Result")

THREADS = min(8, (os.cpu_count() or 1) + 1)
"""More threads would only compete for processors and for Python's global lock. At 50 searches a second on two
processors, answers are many times slower with eight threads than with this number."""
MAX_WAITING = 200
SECONDS = 30.0


class Overloaded(Exception):
    """Too many requests are waiting, or a request took too long."""


class Workers:
    """Runs calls in a bounded pool of threads."""

    def __init__(self, threads: int = THREADS, max_waiting: int = MAX_WAITING, seconds: float = SECONDS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="answers")
        self._max_busy = threads + max_waiting
        self._seconds = seconds
        self._busy = 0

    async def do(self, work: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Run `work` in a thread, and wait for the result. Called on the event loop.

        After a timeout the thread still finishes its work.
        """
        if self._busy >= self._max_busy:
            raise Overloaded("Too many searches are waiting. Please try again in a moment.")
        self._busy += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *arguments, **named))
        future.add_done_callback(self._ended)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self._seconds)
        except TimeoutError:
            raise Overloaded(f"No answer within {self._seconds:.0f} s. Please try again in a moment.") from None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ended(self, future: "asyncio.Future[Any]") -> None:
        self._busy -= 1
        if not future.cancelled():
            future.exception()  # otherwise asyncio logs that nobody retrieved it


class SideWorker:
    """Runs one call at a time in a thread of its own. A call that hangs, such as one that lists a bucket, delays
    neither searches nor the end of the process."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._turn = asyncio.Lock()

    async def do(self, work: Callable[[], Result]) -> Result:
        """Run `work` after the calls before it, and wait for the result. Called on the event loop.

        After a timeout the thread still finishes its work, before the next call begins.
        """
        try:
            async with asyncio.timeout(self._seconds):
                await self._turn.acquire()
                future = asyncio.wrap_future(in_daemon_thread(work))
                future.add_done_callback(self._ended)
                return await asyncio.shield(future)
        except TimeoutError:
            raise Overloaded(
                f"No answer within {self._seconds:.0f} s: the storage of the chunks or of the index may be slow."
            ) from None

    def _ended(self, future: "asyncio.Future[Any]") -> None:
        self._turn.release()
        future.exception()  # otherwise asyncio logs that nobody retrieved it
