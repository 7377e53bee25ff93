"""What was asked of Meilisearch, and its tasks: an accepted request is a promise, a task that succeeded is a fact."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chunksink.sinks.document import Document
from chunksink.sinks.errors import NotConfirmed, SinkError
from chunksink.sinks.meilisearch.connection import Connection
from chunksink.sinks.meilisearch.errors import of_task
from chunksink.sinks.payload import Replacements, batches

if TYPE_CHECKING:
    from meilisearch.models.task import TaskInfo

Task = dict[str, Any]

LOST = "lost"
"""In place of a status: cancelled, or purged from the server's list before it was seen to end."""

_PAGE = 400  # numbers in one address
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5


Row = tuple[Document, bytes]
"""A document, and the line that it is sent as."""


@dataclass(eq=False)
class Payload:
    """Documents in one request; `task` is None until the server has taken it, and again when its task was lost."""

    rows: list[Row]
    task: int | None = None


@dataclass
class PendingWork:
    """What was asked for since the last flush. A call puts it here before it sends anything."""

    replacements: Replacements
    payloads: list[Payload] = field(default_factory=list)
    """In order. Confirmed ones stay until all are: one that was lost goes again without what later ones overwrote."""
    blamed: int = 0
    """Documents that the server refused."""
    any_taken: bool = False
    """Whether it took any."""

    def size(self) -> int:
        """Bytes of all payloads."""
        return sum(len(line) for payload in self.payloads for _, line in payload.rows)

    def outstanding(self, some: Sequence[Payload]) -> list[list[Row]]:
        """What of each may be written again: of families that nothing was asked of since, ids that none took since."""
        if not some:
            return []
        keeps = self.replacements.keeps
        last = {row[0].id: payload for payload in self.payloads for row in payload.rows if keeps(row[0])}
        return [[row for row in one.rows if keeps(row[0]) and last[row[0].id] is one] for one in some]


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


def failures(connection: Connection, numbers: list[int], patience: float) -> dict[int, SinkError]:
    """Those of these tasks that did not succeed, and why, when all have ended."""
    found: dict[int, SinkError] = {}
    for number, task in sorted(wait(connection, numbers, patience).items()):
        if task["status"] == LOST:
            found[number] = NotConfirmed(
                f"Meilisearch at {connection.where} lost task {number} (cancelled or purged): write again"
            )
        elif task["status"] != "succeeded":
            found[number] = of_task(task.get("error"), connection.where)
    return found


def wait_for(connection: Connection, number: int, patience: float) -> None:
    """One task that must succeed."""
    for error in failures(connection, [number], patience).values():
        raise error


class SingleTasks:
    """Requests that end in one task which must succeed.

    One whose end was not seen, for the connection broke, is asked after when it is ordered again, and not sent twice.
    """

    def __init__(self, connection: Connection, patience: float) -> None:
        self._connection = connection
        self._patience = patience
        self._unseen: dict[str, int] = {}

    def carry_out(self, order: str, send: Callable[[], "TaskInfo"]) -> None:
        """`order` says in words what `send` asks for: the same words are the same order."""
        if order not in self._unseen:
            with self._connection.translated():
                self._unseen[order] = send().task_uid
        number = self._unseen[order]
        failed = failures(self._connection, [number], self._patience)
        del self._unseen[order]
        if failed:
            raise failed[number]


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
    for some in batches(numbers, _PAGE):
        answer = connection.get("/tasks", uids=",".join(map(str, some)), limit=len(some))
        known = {task["uid"]: task for task in answer["results"]}
        for number in some:
            task = known.get(number)
            lost = task is None or task["status"] == "canceled"
            yield number, {"status": LOST} if lost or task is None else task


def _has_ended(task: Task) -> bool:
    return task["status"] in ("succeeded", "failed", LOST)
