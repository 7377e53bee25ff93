"""An embedded build that a separate process fills, so that reading, embedding and other sinks run in parallel.

Within one process they would have to wait: Chroma holds Python's global lock while it writes or reads.

The worker process handles one call at a time. When our process ends, the pipe between them closes. The worker process
checks the pipe at the start of each turn (see `turns`), and ends if it is closed. So an abandoned worker process may
finish its turn, but never writes after a new writer has had one.
"""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from threading import Timer
from typing import Any

from chunksink.sinks.chroma import rows
from chunksink.sinks.chroma.client import module_command, module_environment
from chunksink.sinks.contract import Marker, Stored
from chunksink.sinks.document import Family
from chunksink.sinks.errors import BuildBroken, on_failure
from chunksink.sinks.payload import slices_by_size

ANSWER_SECONDS = 300.0
"""Much longer than any call takes."""
_WRITTEN_AT_ONCE = 5000
"""Documents per message; as many as Chroma takes in one call."""
_READ_AT_ONCE = 1000
"""Documents per answer."""
_FORWARDED = frozenset(("marker", "sign", "count", "delete", "flush", "search_settings_due", "update_search_settings"))
"""The methods of a build that the process answers with one message."""


class Worker:
    """A process that fills one build below `root`. If its parent ends, it ends, too, before its next turn."""

    def __init__(self, root: Path, *, store_text: bool) -> None:
        self._root = root
        self._connection, remote = Pipe()
        with remote:
            self._process = subprocess.Popen(
                module_command("chunksink.sinks.chroma.worker_process", str(remote.fileno())),
                pass_fds=[remote.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=module_environment(),
            )
        self._connection.send((str(root), store_text))

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the build in the process, and return its result or raise its error. A process that does not
        answer, perhaps because it is suspended, is killed."""
        timer = Timer(ANSWER_SECONDS, self._process.kill)
        timer.daemon = True
        try:
            timer.start()  # within `try`, so that a Ctrl-C does not leave it running
            self._connection.send((name, arguments))
            done, value = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._lost() from error
        except BaseException:
            self._connection.close()  # a message may be half sent or half read
            raise
        finally:
            timer.cancel()
        if done:
            return value
        raise value

    def end(self) -> None:
        self._connection.close()
        try:
            self._process.wait(ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def discard(self) -> None:
        """End a process that has not been used."""
        self._process.kill()
        self.end()

    def _lost(self) -> BuildBroken:
        self.end()
        code = self._process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return BuildBroken(
            f"the process that fills the Chroma build below {self._root} {how}",
            "run the command again, nothing is lost",
        )


class WorkerBuild:
    """A build of the embedded sink, open for writing in a worker. Has the methods that a writer needs."""

    def __init__(self, worker: Worker, marker: Marker) -> None:
        self._worker = worker
        self._page = partial(worker.call, "page")
        self._open = True
        with on_failure(worker.end):
            worker.call("create", marker)

    def __getattr__(self, name: str) -> Any:
        if name not in _FORWARDED:
            raise AttributeError(name)
        return partial(self._worker.call, name)

    def replace(self, families: Sequence[Family]) -> int:
        sizes = [len(family.documents) for family in families]
        parts = slices_by_size(sizes, len(sizes), _WRITTEN_AT_ONCE)  # one message with all would double their memory
        return sum(self._worker.call("replace", families[part]) for part in parts)

    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        return rows.read(self._page, _READ_AT_ONCE, content=content, parent_ids=parent_ids)

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        return rows.read(self._page, _READ_AT_ONCE, content=content, vectors=vectors)

    def close(self) -> None:
        if self._open:
            self._open = False
            try:
                with suppress(BuildBroken):  # the process has ended already
                    self._worker.call("close")
            finally:
                self._worker.end()
