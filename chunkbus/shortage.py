"""Recognises errors caused by a full disk, too little memory, too many open files or a file size limit. No data is
damaged, and a call works again once there is enough."""

import errno
import os

_ROOM = "make room on that disk"
_SIZE = "raise the file size limit (`ulimit -f`), or use a file system that allows larger files"
_FILES = "raise the open file limit (`ulimit -n`), or close programs that have many files open"
_MEMORY = "close other programs, or raise the memory or process limit"
_REMEDIES = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _SIZE,
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: _MEMORY,
}
# Libraries pass on the system's message, not its number.
_WORDS = {
    **{os.strerror(number).lower(): remedy for number, remedy in _REMEDIES.items()},
    "can't start new thread": _MEMORY,
    "can't allocate": _MEMORY,  # Python's message if it cannot create a lock
}
_AMBIGUOUS = ("unable to open database file", "error purging logs")
"""Messages of SQLite and Chroma that can have many causes."""
_NEEDED = 64
"""About as many files as an engine opens at once."""


def shortage(error: BaseException) -> str | None:
    """The remedy if the machine lacks something; None if the error has another cause."""
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, OSError) and error.errno in _REMEDIES:
        return _REMEDIES[error.errno]
    message = str(error).lower()
    if any(words in message for words in _AMBIGUOUS) and not _can_open(_NEEDED):
        return _FILES
    return next((remedy for words, remedy in _WORDS.items() if words in message), None)


def _can_open(number: int) -> bool:
    """Whether this many more files can be opened now."""
    opened: list[int] = []
    try:
        while len(opened) < number:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    finally:
        for each in opened:
            os.close(each)
    return True
