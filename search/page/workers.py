"""Threads that ask the engines: few, always the same, and nobody waits in an endless line for one."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

Result = TypeVar("Result")

THREADS = 8
MOST_WAITING = 200
SECONDS = 30.0


class Overloaded(Exception):
    """More is asked than can be answered now; ask again in a moment."""


class Workers:
    """A few threads answer, and the same ones all the time: more of them would only share the processors."""

    def __init__(self, threads: int = THREADS, most_waiting: int = MOST_WAITING, seconds: float = SECONDS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="answers")
        self._most = threads + most_waiting
        self._seconds = seconds
        self._busy = 0

    async def do(self, work: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Called on the event loop. A thread whose answer nobody waits for any more still has to end it."""
        if self._busy >= self._most:
            raise Overloaded("more is asked than can be answered: ask again in a moment")
        self._busy += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, partial(work, *arguments, **named))
        future.add_done_callback(self._ended)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self._seconds)
        except TimeoutError:
            raise Overloaded(f"no answer within {self._seconds:.0f} s: ask again in a moment") from None

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _ended(self, future: "asyncio.Future[Any]") -> None:
        self._busy -= 1
        if not future.cancelled():
            future.exception()  # fetched, or asyncio would complain where nobody waited for it
