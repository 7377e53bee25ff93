"""Those threads of Chroma that hand each statement to one another, kept on one processor.

One asks and another runs it in SQLite, some eight times for a document. On two processors each of these turns wakes one
of them from its sleep, which takes as long as many a statement does, above all on virtual machines. The threads that
insert vectors work side by side and are left free: they begin with the first vectors.

For a process that does nothing but fill a build. Where the system has no such calls, or one processor, nothing happens.
"""

import os
from contextlib import suppress
from pathlib import Path

_TASKS = Path("/proc/self/task")
_SQLITE = "sqlx"  # so the names of those that run statements begin; some come when they are first needed
_PROCESSOR = 36  # of the fields behind the name


class Threads:
    """Of this process, noted before any vectors are written."""

    def __init__(self) -> None:
        self._is_possible = hasattr(os, "sched_setaffinity") and _TASKS.is_dir()
        self._asking = self._all() - {os.getpid()}

    def gather(self) -> None:
        """On the processor that this thread has now: the system lets it run where there is room."""
        if not self._is_possible:
            return
        processor = int((_TASKS / str(os.getpid()) / "stat").read_text().rpartition(")")[2].split()[_PROCESSOR])
        for thread in self._asking | {thread for thread in self._all() if _name(thread).startswith(_SQLITE)}:
            with suppress(OSError):  # it has ended, or is not ours to move
                os.sched_setaffinity(thread, {processor})

    def _all(self) -> set[int]:
        return {int(task.name) for task in _TASKS.iterdir()} if self._is_possible else set()


def _name(thread: int) -> str:
    try:
        return (_TASKS / str(thread) / "comm").read_text()
    except OSError:
        return ""  # it has ended
