"""What is known of an embedded build for as long as nobody writes to its database.

Chroma takes most of a second to count 100,000 documents. The identity, size and times of the database's file are looked
at from outside: to open the file beside Chroma's own SQLite, and to close it again, would take that one's locks away.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from chunksink.chunkbus.signature import Signature, wait_a_tick

T = TypeVar("T")


def signature_of(database: Path | None) -> Signature | None:
    """None where the file says little: there is none, or a log or a journal is beside it."""
    if database is None or any(Path(f"{database}-{left}").exists() for left in ("wal", "journal")):
        return None
    try:
        return Signature.of(database.stat())
    except OSError:
        return None


def _settled(database: Path | None) -> Signature | None:
    """As it is now, if every later change is sure to look otherwise; waits for that where it was written just now."""
    for attempt in range(2):
        found = signature_of(database)
        if found is None or found.is_settled(time.time_ns()):
            return found
        if not attempt:
            wait_a_tick()
    return None


class Cached(Generic[T]):
    """An answer of Chroma, asked again only after the database has changed. Without one (a server) always."""

    def __init__(self, database: Path | None = None, known: tuple[Signature, T] | None = None) -> None:
        self._database = database
        self._known = known

    def get(self, ask: Callable[[], T]) -> T:
        known = self.known()
        if known is not None:
            return known[1]
        at = _settled(self._database)  # before it is asked: what is written meanwhile looks otherwise
        answer = ask()
        self._known = None if at is None else (at, answer)
        return answer

    def known(self) -> tuple[Signature, T] | None:
        """The answer, and the signature that it holds for, if nobody has written since."""
        return self._known if self._known is not None and self._known[0] == signature_of(self._database) else None


class LoadedVectors:
    """Since when the vectors of an open build are loaded: what is written later, they do not show."""

    def __init__(self, database: Path | None = None, *, is_loaded: bool = False) -> None:
        """`is_loaded`: they are loaded already, and nobody knows since when."""
        self._database = database
        self._is_loaded = is_loaded or database is None
        self._loaded_at: Signature | None = None

    def load(self) -> None:
        """The next question loads them, unless they are loaded."""
        if not self._is_loaded:
            self._is_loaded = True
            self._loaded_at = _settled(self._database)

    def may_have_moved(self) -> bool:
        """Whether anybody may have written since they were loaded."""
        return self._loaded_at is None or self._loaded_at != signature_of(self._database)
