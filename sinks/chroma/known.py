"""What is known of an open build, for as long as nobody writes to it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_STEP = 25_000_000
"""Nanoseconds in which the system may give two changes one time."""

State = tuple[int, ...]


class Known:
    """Answers, each with the state of the database's file that it was true of. What can be told from outside is enough:
    to open the file beside Chroma's SQLite, and close it again, would take the locks of the latter away.

    Without a database (a server has it) nothing is ever known.
    """

    def __init__(self, database: Path | None = None) -> None:
        self._database = database
        self._answers: dict[str, tuple[State, Any]] = {}
        self._is_loaded = False
        self._loaded_at: State | None = None

    def load(self, *, now: bool = True) -> None:
        """The vectors are loaded with the next question, unless they were before; not `now` where nobody knows when."""
        if self._is_loaded:
            return
        self._is_loaded = True
        if now and self._database is not None:
            self._loaded_at = self._settled()
            if self._loaded_at is None:  # somebody wrote just now
                time.sleep(_STEP / 1_000_000_000)
                self._loaded_at = self._settled()

    def may_have_moved(self) -> bool:
        """Whether anybody may have written since the vectors were loaded."""
        return self._loaded_at is None or self._loaded_at != self._state()

    def answer(self, name: str, ask: Callable[[], Any]) -> Any:
        """As it was answered before, where that still holds."""
        known = self._answers.get(name)
        if known is not None and known[0] == self._state():
            return known[1]
        state = self._settled()  # before it is asked: what is written meanwhile makes another one
        found = ask()
        if state is not None:
            self._answers[name] = (state, found)
        return found

    def _settled(self) -> State | None:
        """The state now, where it is so old that every later change is sure to make another one."""
        state = self._state()
        if state is None:
            return None
        newest = max(state[-2:])
        step = _STEP if newest % 1_000_000_000 else 2_000_000_000  # some file systems keep whole, or even, seconds
        return state if time.time_ns() - newest > step else None

    def _state(self) -> State | None:
        if self._database is None or any(Path(f"{self._database}-{left}").exists() for left in ("wal", "journal")):
            return None
        try:
            status = self._database.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
