"""The process that fills one embedded build; `worker` starts it and asks it one call at a time."""

import os
import pickle
import select
import signal
import sys
import traceback
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from chunksink.settings.config import ConfigError
from chunksink.sinks.chroma.client import package
from chunksink.sinks.chroma.folder import Folder
from chunksink.sinks.chroma.sink import ChromaSink

_FOR_OTHERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # to all of a group; a call is not broken off by them
_TASKS = Path("/proc/self/task")
_SQLITE = "sqlx"  # so the names of those that run statements begin; some come when they are first needed
_PROCESSOR = 36  # of the fields behind the name


def main(handle: int) -> None:
    for number in _FOR_OTHERS:
        signal.signal(number, signal.SIG_IGN)
    connection: Connection[Any, Any] = Connection(handle)
    with suppress(ConfigError):  # the first call meets it again
        package()  # takes most of a second, in which the other side reads chunks
    with suppress(EOFError, ConnectionError):
        serve(connection)
    sys.stderr.flush()
    os._exit(0)  # what is open was closed if that was asked for; else it stays as a kill would leave it


def serve(connection: "Connection[Any, Any]") -> None:
    root, store_text = connection.recv()
    sink = ChromaSink(Folder(Path(root), partial(_require_asker, connection)), store_text=store_text)
    build: Any = None
    while True:
        call, arguments = connection.recv()
        answer: tuple[bool, Any] = True, None
        try:
            if call == "create":
                build, threads = sink.create(*arguments), Threads()
            else:
                answer = True, getattr(build, call)(*arguments)
                if call == "replace":
                    threads.gather()
        except BaseException as error:  # the engine's own panics too
            answer = False, _portable(error)
        del arguments  # a batch is large, and the next one is coming
        connection.send(answer)


def _require_asker(connection: "Connection[Any, Any]") -> None:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLHUP)
    if poll.poll(0):
        os._exit(0)


def _portable(error: BaseException) -> BaseException:
    trace = traceback.format_exc()
    error.add_note(f"In the process that fills the build:\n{trace}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"in the process that fills the build:\n{trace}")
    return error


class Threads:
    """Chroma's threads that hand each statement to one another, kept on one processor (ADR 0017).

    One asks and another runs it in SQLite, some eight times for a document. On two processors each of these turns
    wakes one of them from its sleep, which takes as long as many a statement does. The threads that insert vectors work
    side by side and are left free: they begin with the first vectors, after this is made.
    """

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


if __name__ == "__main__":
    main(int(sys.argv[1]))
