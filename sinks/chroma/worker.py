"""An embedded build that a process of its own fills, so that reading, embedding and other sinks go on beside it.

Chroma holds Python's lock for as long as it writes or reads: in this process everything else would stand still.

The process is asked one call at a time. It ends when the process that started it does: that closes the pipe. No call
begins after that, since each asks within its turn whether the pipe is open; so the next writer, who takes a turn to
open the build, meets nobody who still writes.
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
from chunksink.sinks.contract import Marker, RefusedDocument, Stored
from chunksink.sinks.document import Family
from chunksink.sinks.errors import BuildBroken
from chunksink.sinks.payload import portions

ANSWER_SECONDS = 300.0
"""Much more than any call takes."""
_WRITTEN_AT_ONCE = 5000
"""Documents; as many as Chroma takes in one call."""
_READ_AT_ONCE = 1000
"""Documents in one answer."""


class Worker:
    """A process that fills one build below `root`; it ends with this one, however that ends."""

    def __init__(self, root: Path, *, store_text: bool) -> None:
        self._root = root
        self._connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                module_command("chunksink.sinks.chroma.worker_process", str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=module_environment(),
            )
        self._connection.send((str(root), store_text))

    def call(self, name: str, *arguments: Any) -> Any:
        """What the build in there returns, or the error that it raises. A process that does not answer, for example
        because it was stopped, is killed."""
        hangs = Timer(ANSWER_SECONDS, self._process.kill)
        hangs.daemon = True
        try:
            hangs.start()  # a Ctrl-C in here would leave a thread that keeps this process for as long
            self._connection.send((name, arguments))
            done, value = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._lost() from error
        except BaseException:
            self._connection.close()  # half of it may have been sent or read
            raise
        finally:
            hangs.cancel()
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
        """End one that has been given nothing to do."""
        self._process.kill()
        self.end()

    def _lost(self) -> BuildBroken:
        self.end()
        code = self._process.returncode
        how = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
        return BuildBroken(
            f"the process that fills the Chroma build below {self._root} {how}: run it again; what was confirmed is "
            "kept where it can be read, and nothing is lost"
        )


class WorkerBuild:
    """A build of the embedded sink, open for writing in a worker."""

    def __init__(self, worker: Worker, marker: Marker) -> None:
        self._worker = worker
        self._page = partial(worker.call, "page")
        self._open = True
        try:
            worker.call("create", marker)
        except BaseException:
            worker.end()
            raise

    def marker(self) -> Marker | None:
        marker: Marker | None = self._worker.call("marker")
        return marker

    def sign(self, marker: Marker) -> None:
        self._worker.call("sign", marker)

    def count(self) -> int:
        return int(self._worker.call("count"))

    def search_settings_due(self) -> list[str]:
        due: list[str] = self._worker.call("search_settings_due")
        return due

    def update_search_settings(self) -> list[str]:
        changed: list[str] = self._worker.call("update_search_settings")
        return changed

    def replace(self, families: Sequence[Family]) -> int:
        sizes = [len(family.documents) for family in families]
        parts = portions(sizes, len(sizes), _WRITTEN_AT_ONCE)  # as one message it would be held in memory twice
        return sum(self._worker.call("replace", families[part]) for part in parts)

    def delete(self, parent_ids: Sequence[str]) -> None:
        self._worker.call("delete", parent_ids)

    def flush(self) -> list[RefusedDocument]:
        refused: list[RefusedDocument] = self._worker.call("flush")
        return refused

    def held(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        return rows.read(self._page, _READ_AT_ONCE, content=content, parent_ids=parent_ids)

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        return rows.read(self._page, _READ_AT_ONCE, content=content, vectors=vectors)

    def close(self) -> None:
        if self._open:
            self._open = False
            try:
                with suppress(BuildBroken):  # it is gone already
                    self._worker.call("close")
            finally:
                self._worker.end()
