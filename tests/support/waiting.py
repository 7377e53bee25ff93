"""Waits for what another process or thread does."""

import time
from collections.abc import Callable


def eventually(holds: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.02)
