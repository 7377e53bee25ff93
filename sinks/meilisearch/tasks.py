"""Waiting for Meilisearch's tasks: an accepted request is a promise, a task that succeeded is a fact."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from sinks.errors import NotConfirmed
from sinks.meilisearch.connection import Connection
from sinks.meilisearch.errors import of_task, translated

Task = dict[str, Any]

LOST = "lost"
"""In place of a status: cancelled, or purged from the server's list before it was seen to end."""

_PAGE = 400  # numbers in one address
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5


def wait(connection: Connection, numbers: Iterable[int], patience: float) -> dict[int, Task]:
    """All these tasks, ended: `succeeded`, `failed` or LOST. NotConfirmed when none ends for `patience` seconds."""
    waiting, ended = set(numbers), dict[int, Task]()
    pause, deadline = _FIRST_PAUSE, time.monotonic() + patience
    while waiting:
        now = {number: task for number, task in _ask(connection, sorted(waiting)) if _has_ended(task)}
        if now:
            deadline = time.monotonic() + patience
        elif time.monotonic() > deadline:
            raise NotConfirmed(
                f"Meilisearch at {connection.where} has not finished task {min(waiting)} and {len(waiting) - 1} more "
                f"for {patience:.0f} s; look at its /tasks"
            )
        ended |= now
        waiting -= now.keys()
        if waiting:
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
    return ended


def wait_for(connection: Connection, number: int, patience: float) -> None:
    """One task that must succeed."""
    task = wait(connection, [number], patience)[number]
    if task["status"] == LOST:
        raise NotConfirmed(f"task {number} of Meilisearch at {connection.where} was cancelled or purged")
    if task["status"] != "succeeded":
        raise of_task(task.get("error"), connection.where)


class Accepted(Protocol):
    """What Meilisearch's client returns for an accepted request."""

    task_uid: int


class Orders:
    """Requests that end in one task which must succeed.

    One whose end was not seen, for the connection broke, is asked after when it is ordered again, and not sent twice.
    """

    def __init__(self, connection: Connection, patience: float) -> None:
        self._connection = connection
        self._patience = patience
        self._unseen: dict[str, int] = {}

    def carry_out(self, order: str, send: Callable[[], Accepted]) -> None:
        """`order` says in words what `send` asks for: the same words are the same order."""
        if order not in self._unseen:
            with translated(self._connection.where):
                self._unseen[order] = send().task_uid
        number = self._unseen[order]
        task = wait(self._connection, [number], self._patience)[number]
        del self._unseen[order]
        if task["status"] == LOST:
            raise NotConfirmed(f"Meilisearch at {self._connection.where} lost task {number} (cancelled or purged)")
        if task["status"] != "succeeded":
            raise of_task(task.get("error"), self._connection.where)


def unfinished(connection: Connection, indexes: Iterable[str]) -> list[int]:
    """Tasks that a run before may have left in the queue: on these indexes, and swaps, which name none."""
    ours, found = set(indexes), list[int]()
    asked: dict[str, Any] = {"statuses": "enqueued,processing", "limit": 1000}
    while True:
        page = connection.get("/tasks", **asked)
        found += [task["uid"] for task in page["results"] if task["indexUid"] in ours or task["type"] == "indexSwap"]
        if page.get("next") is None:
            return found
        asked["from"] = page["next"]


def _ask(connection: Connection, numbers: list[int]) -> Iterator[tuple[int, Task]]:
    for start in range(0, len(numbers), _PAGE):
        some = numbers[start : start + _PAGE]
        answer = connection.get("/tasks", uids=",".join(map(str, some)), limit=len(some))
        known = {task["uid"]: task for task in answer["results"]}
        for number in some:
            task = known.get(number)
            lost = task is None or task["status"] == "canceled"
            yield number, {"status": LOST} if lost or task is None else task


def _has_ended(task: Task) -> bool:
    return task["status"] in ("succeeded", "failed", LOST)
