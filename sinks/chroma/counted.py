"""How many documents an embedded build holds, known from one process to the next.

Chroma takes most of a second to count 100,000. SQLite counts the changes of a database in the first bytes of its file:
while that number and the file's time are the same, so is the count. Chroma itself makes one change when it opens a
database, and adds no document by that.
"""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

_HEAD = 100  # bytes
_MODE = slice(18, 20)
_NO_LOG = b"\x01\x01"  # of a database whose changes are made in place
_CHANGES = slice(24, 28)
_VALID_FOR = slice(92, 96)  # the same number again


@dataclass(frozen=True)
class Changes:
    """How often a database was changed, and what else its first bytes say."""

    number: int
    others: str
    size: int
    written_ns: int
    """By the file system: whoever writes past SQLite counts no change."""

    def leads_to(self, now: "Changes") -> bool:
        """Whether nobody has written since, but Chroma as it opened the database."""
        return now in (self, replace(self, number=self.number + 1, written_ns=now.written_ns))


@dataclass(frozen=True)
class Counted:
    """What Chroma has counted, and when."""

    documents: int
    at: Changes


class Counting:
    """Counts the documents of an open build, where that is not known yet. To be used in a turn."""

    def __init__(self, database: Path | None = None, known: Counted | None = None) -> None:
        """`known` is what was counted before Chroma opened it; without a database (a server has it) nothing is."""
        self._database = database
        self._known: Counted | None = None
        if database is not None and known is not None:
            now = changes_of(database)
            if now is not None and known.at.leads_to(now):
                self._known = Counted(known.documents, now)

    def count(self, ask: Callable[[], int]) -> int:
        if (known := self.still()) is not None:
            return known.documents
        before = None if self._database is None else changes_of(self._database)
        found = ask()
        self._known = None if before is None else Counted(found, before)
        return found

    def still(self) -> Counted | None:
        """What is known, if nobody has written since."""
        if self._database is None or self._known is None or changes_of(self._database) != self._known.at:
            return None
        return self._known


def changes_of(database: Path) -> Changes | None:
    """None where they are not known: there is a log, which the file says nothing of, or a change was broken off.

    Another process reads it: whoever closes a file takes away the locks that other users in its process have on it.
    """
    if is_in_doubt(database):
        return None
    try:
        command = ["head", "-c", str(_HEAD), str(database)]
        head = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).stdout
        status = database.stat()
    except OSError:
        return None
    if len(head) != _HEAD or head[_MODE] != _NO_LOG or head[_CHANGES] != head[_VALID_FOR]:
        return None
    others = head[: _CHANGES.start] + head[_CHANGES.stop : _VALID_FOR.start] + head[_VALID_FOR.stop :]
    return Changes(int.from_bytes(head[_CHANGES]), others.hex(), status.st_size, status.st_mtime_ns)


def is_in_doubt(database: Path) -> bool:
    """Whether a log or a journal lies beside it: then its file alone says little."""
    return any(Path(f"{database}-{left}").exists() for left in ("wal", "journal"))
