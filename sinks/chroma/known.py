"""What is known of an open build, for as long as nobody writes to it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chunkbus.watched import Watched


class Known:
    """Each answer, with the version of the database that it was true of. To be used in a turn only: where SQLite is
    in a process twice, the one takes the locks of the other away.

    Without a database (a server has it) nothing is ever known.
    """

    def __init__(self, database: Path | None = None) -> None:
        self._watched = None if database is None else Watched(database)
        self._answers: dict[str, tuple[int, Any]] = {}
        self._opened_at = self._version()

    def may_have_moved(self) -> bool:
        """Whether anybody may have written since this was opened."""
        version = self._version()
        return version is None or version != self._opened_at

    def answer(self, name: str, ask: Callable[[], Any]) -> Any:
        """As it was answered before, where that still holds."""
        if (known := self.still(name)) is None:
            self.note(name, known := ask())
        return known

    def still(self, name: str) -> Any:
        version, answer = self._answers.get(name, (None, None))
        return None if version is None or version != self._version() else answer

    def note(self, name: str, answer: Any) -> None:
        if answer is not None and (version := self._version()) is not None:
            self._answers[name] = (version, answer)

    def close(self) -> None:
        if self._watched is not None:
            self._watched.close()

    def _version(self) -> int | None:
        try:
            return None if self._watched is None else self._watched.version()
        except sqlite3.Error:  # held by a program that knows of no turns
            return None
