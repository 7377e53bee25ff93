"""A fork takes along what a process has in memory, but none of its threads: a model or Chroma would wait for them.

So who was forked from a process that had searched by meaning is told, and does not hang.
"""

import os

_searched_in: int | None = None
"""The process whose threads are meant by whatever is in memory."""


def note_search() -> None:
    global _searched_in
    _searched_in = os.getpid()


def require_own_process() -> None:
    if _searched_in not in (None, os.getpid()):
        raise RuntimeError(
            "this process was forked from one that had searched already, and a model and Chroma do not survive that: "
            "start it by multiprocessing's spawn, or let only its children search"
        )
