"""Waiting between tries: exponential, with jitter, never past the deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable


class Backoff:
    """The patience of one call. The clock decides only how long we wait, never what is true."""

    def __init__(
        self,
        seconds: float,
        *,
        first: float = 0.25,
        longest: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._deadline = clock() + seconds
        self._next = first
        self._longest = longest
        self.tries = 1

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self._deadline - self._clock())

    def pause(self, asked: float | None = None) -> bool:
        """Waits before the next try, at least as long as the other side asked; False if no time is left for it."""
        wait = max(asked or 0.0, self._next * random.uniform(0.5, 1.0))
        self._next = min(self._next * 2, self._longest)
        if wait >= self.remaining:
            return False
        self._sleep(wait)
        self.tries += 1
        return True
