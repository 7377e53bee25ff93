"""Pending writes and Meilisearch's tasks. A write is done when its task has succeeded, not when it was accepted."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chunksink.sinks.document import Document
from chunksink.sinks.errors import NotConfirmed, SinkError
from chunksink.sinks.meilisearch.connection import Connection
from chunksink.sinks.meilisearch.errors import task_error
from chunksink.sinks.payload import Replacements, batches

if TYPE_CHECKING:
    from meilisearch.models.task import TaskInfo

Task = dict[str, Any]

LOST = "lost"
"""Our status of a task that was cancelled, or purged from the server's list before we saw its end."""

_PAGE = 400  # task numbers per URL
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5

Row = tuple[Document, bytes]
"""A document and its line of NDJSON."""


@dataclass(eq=False)
class Payload:
    """Documents of one request. `task` is None while they must be sent, or sent again."""

    rows: list[Row]
    task: int | None = None


@dataclass
class PendingWork:
    """The writes since the last flush. Each is added before it is sent."""

    replacements: Replacements
    payloads: list[Payload] = field(default_factory=list)
    """In order. All stay until all are confirmed: if one is lost, its documents are sent again, except those that a
    later payload has."""
    refused_count: int = 0
    """How many documents the server refused."""
    any_accepted: bool = False
    """Whether the server accepted a payload."""

    def size(self) -> int:
        return sum(len(line) for payload in self.payloads for _, line in payload.rows)

    def outstanding(self, some: Sequence[Payload]) -> list[list[Row]]:
        """For each of these payloads: the rows that no later call has replaced or removed."""
        if not some:
            return []
        keeps = self.replacements.keeps
        last = {row[0].id: payload for payload in self.payloads for row in payload.rows if keeps(row[0])}
        return [[row for row in one.rows if keeps(row[0]) and last[row[0].id] is one] for one in some]


def wait(connection: Connection, numbers: Iterable[int], patience: float) -> dict[int, Task]:
    """Wait until all tasks have the status `succeeded`, `failed` or LOST. Raises `NotConfirmed` if none ends for
    `patience` seconds."""
    waiting, ended = set(numbers), dict[int, Task]()
    pause, deadline = _FIRST_PAUSE, time.monotonic() + patience
    while waiting:
        now = {number: task for number, task in _ask(connection, sorted(waiting)) if _has_ended(task)}
        if now:
            deadline = time.monotonic() + patience
        elif time.monotonic() > deadline:
            raise NotConfirmed(
                f"Meilisearch at {connection.where} finished none of chunksink's tasks in {patience:.0f} s "
                f"({len(waiting)} waiting, first: task {min(waiting)}). See {connection.where}/tasks"
            )
        ended |= now
        waiting -= now.keys()
        if waiting:
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
    return ended


def failures(connection: Connection, numbers: list[int], patience: float) -> dict[int, SinkError]:
    """Wait for all tasks. Returns the errors of those that did not succeed."""
    found: dict[int, SinkError] = {}
    for number, task in sorted(wait(connection, numbers, patience).items()):
        if task["status"] == LOST:
            found[number] = NotConfirmed(
                f"Meilisearch at {connection.where} lost task {number} (cancelled or purged): run the command again"
            )
        elif task["status"] != "succeeded":
            found[number] = task_error(task.get("error"), connection.where)
    return found


def require_success(connection: Connection, numbers: list[int], patience: float) -> None:
    """Wait for all tasks; raise the first error."""
    for error in failures(connection, numbers, patience).values():
        raise error


class SingleTasks:
    """Requests that create one task each, which must succeed.

    If the connection breaks before the end of a task, a repeated request waits for that task instead of a new one.
    """

    def __init__(self, connection: Connection, patience: float) -> None:
        self._connection = connection
        self._patience = patience
        self._unconfirmed: dict[str, int] = {}

    def run(self, description: str, send: Callable[[], "TaskInfo"]) -> None:
        """`description` describes the request of `send` and identifies it."""
        if description not in self._unconfirmed:
            with self._connection.translate_errors():
                self._unconfirmed[description] = send().task_uid
        failed = failures(self._connection, [self._unconfirmed[description]], self._patience)
        del self._unconfirmed[description]
        for error in failed.values():
            raise error


def unfinished(connection: Connection, indexes: Iterable[str]) -> list[int]:
    """Tasks of earlier runs in the queue: those of these indexes, and all swaps, which name no index."""
    ours, numbers = set(indexes), list[int]()
    query: dict[str, Any] = {"statuses": "enqueued,processing", "limit": 1000}
    while True:
        page = connection.get("/tasks", **query)
        numbers += [task["uid"] for task in page["results"] if task["indexUid"] in ours or task["type"] == "indexSwap"]
        if page.get("next") is None:
            return numbers
        query["from"] = page["next"]


def _ask(connection: Connection, numbers: list[int]) -> Iterator[tuple[int, Task]]:
    for some in batches(numbers, _PAGE):
        answer = connection.get("/tasks", uids=",".join(map(str, some)), limit=len(some))
        known = {task["uid"]: task for task in answer["results"]}
        for number in some:
            task = known.get(number)
            yield number, {"status": LOST} if task is None or task["status"] == "canceled" else task


def _has_ended(task: Task) -> bool:
    return task["status"] in ("succeeded", "failed", LOST)
