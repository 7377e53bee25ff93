"""Patience with one request: what may pass is tried again, with growing, random waits, never past the deadline.

Only how long we wait depends on the clock, never what is true.
"""

from __future__ import annotations

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_before_delay, wait_random_exponential

_GROWING = wait_random_exponential(multiplier=0.25, max=15.0)
_ODD_ANSWERS = 2


class MayPass(Exception):
    """The other side cannot do it now; it may have said in how many seconds to ask again."""

    def __init__(self, what: str, asked: float | None = None) -> None:
        super().__init__(what)
        self.asked = asked


class Odd(MayPass):
    """It answered, and took its pay, but not with what was asked for: tried once more and no oftener."""


def patience(seconds: float) -> AsyncRetrying:
    """Calls a coroutine function until it raises no `MayPass`; the last one comes through. For one request."""
    odd = 0

    def is_worth_it(error: BaseException) -> bool:
        nonlocal odd
        odd += isinstance(error, Odd)
        return isinstance(error, MayPass) and odd < _ODD_ANSWERS

    return AsyncRetrying(
        retry=retry_if_exception(is_worth_it), wait=_wait, stop=stop_before_delay(seconds), reraise=True
    )


def _wait(state: RetryCallState) -> float:
    failure = state.outcome.exception() if state.outcome else None
    asked = failure.asked if isinstance(failure, MayPass) else None
    return max(asked or 0.0, _GROWING(state))
