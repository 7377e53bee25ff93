"""Fills one embedded build in a process of its own. `distant` starts it, and asks it one call at a time.

It ends when whoever started it does: that closes the pipe. No call begins after that, since each asks within its turn
whether it is still wanted; so the next writer, who takes a turn to open the build, meets nobody who still writes.
"""

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
from chunksink.sinks.chroma import told

_FOR_OTHERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # to all of a group; a call is not broken off by them


def main(handle: int) -> None:
    for number in _FOR_OTHERS:
        signal.signal(number, signal.SIG_IGN)
    connection: Connection[Any, Any] = Connection(handle)
    with suppress(ConfigError):  # whoever asks is told
        told.package()  # takes most of a second, in which the other side reads chunks
    with suppress(EOFError, ConnectionError):
        serve(connection)
    sys.stderr.flush()
    os._exit(0)  # what is open was closed if that was asked for; else it stays as a kill would leave it


def serve(connection: "Connection[Any, Any]") -> None:
    from chunksink.sinks.chroma.folder import Folder
    from chunksink.sinks.chroma.sink import ChromaSink
    from chunksink.sinks.chroma.threads import Threads

    root, store_text = connection.recv()
    sink = ChromaSink(Folder(Path(root), partial(_require_asker, connection)), store_text=store_text)
    build: Any = None
    while True:
        call, arguments = connection.recv()
        answer: tuple[bool, Any] = True, None
        try:
            if call == "create":
                build, threads = sink.create(*arguments), Threads()
            elif call != "wait":
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


if __name__ == "__main__":
    main(int(sys.argv[1]))
