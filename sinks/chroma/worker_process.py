"""The process that fills one embedded build. `worker` starts it and sends it one call at a time."""

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

from chunksink.settings.errors import ConfigError
from chunksink.sinks.chroma.client import import_chromadb
from chunksink.sinks.chroma.folder import Folder
from chunksink.sinks.chroma.sink import ChromaSink

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # sent to the whole process group; they must not stop a call
_TASKS = Path("/proc/self/task")
_SQLITE = "sqlx"  # prefix of the names of threads that run SQL; some start later
_PROCESSOR = 36  # index of the field in /proc/PID/stat, counted after the name


def main(handle: int) -> None:
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    connection: Connection[Any, Any] = Connection(handle)
    with suppress(ConfigError):  # raised again by the first call
        import_chromadb()  # takes most of a second, while the other side reads chunks
    with suppress(EOFError, ConnectionError):
        serve(connection)
    sys.stderr.flush()
    os._exit(0)  # without closing: a build that was not closed must count as killed


def serve(connection: "Connection[Any, Any]") -> None:
    root, store_text = connection.recv()
    sink = ChromaSink(Folder(Path(root), partial(_exit_if_disconnected, connection)), store_text=store_text)
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
                    threads.pin()
        except BaseException as error:  # also panics of the engine
            answer = False, _picklable(error)
        del arguments  # frees a large batch before the next one
        connection.send(answer)


def _exit_if_disconnected(connection: "Connection[Any, Any]") -> None:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLHUP)
    if poll.poll(0):
        os._exit(0)


def _picklable(error: BaseException) -> BaseException:
    trace = traceback.format_exc()
    error.add_note(f"In the process that fills the build:\n{trace}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"in the process that fills the build:\n{trace}")
    return error


class Threads:
    """Moves the threads of Chroma that send and run SQL to one processor (ADR 0017).

    One thread sends a statement and another runs it, about eight times per document. On two processors each exchange
    wakes an idle processor, which takes as long as a short statement. The threads that insert vectors start later, with
    the first vectors, and are not moved.
    """

    def __init__(self) -> None:
        self._is_possible = hasattr(os, "sched_setaffinity") and _TASKS.is_dir()
        self._senders = self._all() - {os.getpid()}

    def pin(self) -> None:
        """Move these threads to the processor of the main thread. The system chose that processor by load."""
        if not self._is_possible:
            return
        processor = int((_TASKS / str(os.getpid()) / "stat").read_text().rpartition(")")[2].split()[_PROCESSOR])
        for thread in self._senders | {thread for thread in self._all() if _name(thread).startswith(_SQLITE)}:
            with suppress(OSError):  # it has ended, or may not be moved
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
