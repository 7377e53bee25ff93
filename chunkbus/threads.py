"""A thread for a call that may hang, such as a request to a bucket."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

Result = TypeVar("Result")


def in_daemon_thread(work: Callable[[], Result]) -> Future[Result]:
    """Starts `work` in a thread that the end of the process does not wait for.

    The future has every error, also if the thread cannot be started."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # raised where the result is awaited
            future.set_exception(error)

    try:
        Thread(target=run, daemon=True).start()
    except RuntimeError as error:  # too many threads
        future.set_exception(error)
    return future
