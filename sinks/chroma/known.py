"""What is known of an open build, for as long as nobody writes to it."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chunksink.chunkbus.signature import Signature, wait_a_tick
from chunksink.sinks.chroma.counted import is_in_doubt

Metadata = Mapping[str, Any]


class Known:
    """Its metadata, and since when its vectors are loaded, with how the database's file looked then. From outside: to
    open the file beside Chroma's SQLite, and close it again, would take the locks of the latter away.

    Without a database (a server has it) nothing is ever known.
    """

    def __init__(self, database: Path | None = None, *, is_loaded: bool = False) -> None:
        """`is_loaded`: the vectors are there already, and nobody knows since when."""
        self._database = database
        self._is_loaded = is_loaded or database is None
        self._loaded_at: Signature | None = None
        self._metadata: tuple[Signature, Metadata] | None = None

    def load(self) -> None:
        """The vectors are loaded with the next question, unless they were before."""
        if self._is_loaded:
            return
        self._is_loaded = True
        self._loaded_at = self._settled()
        if self._loaded_at is None:  # somebody wrote just now
            wait_a_tick()
            self._loaded_at = self._settled()

    def may_have_moved(self) -> bool:
        """Whether anybody may have written since the vectors were loaded."""
        return self._loaded_at is None or self._loaded_at != self._looks()

    def metadata(self, ask: Callable[[], Metadata]) -> Metadata:
        if self._metadata is not None and self._metadata[0] == self._looks():
            return self._metadata[1]
        looks = self._settled()  # before it is asked: what is written meanwhile looks otherwise
        found = ask()
        self._metadata = None if looks is None else (looks, found)
        return found

    def _settled(self) -> Signature | None:
        """How it looks now, where every later change is sure to look otherwise."""
        looks = self._looks()
        return looks if looks is not None and looks.is_settled(time.time_ns()) else None

    def _looks(self) -> Signature | None:
        if self._database is None or is_in_doubt(self._database):
            return None
        try:
            return Signature.of(self._database.stat())
        except OSError:
            return None
