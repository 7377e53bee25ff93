"""What this machine can be short of. Being short of something is not being broken: the same call works later."""

import errno
import os

_ROOM = "make room on that disk"
_FILES = "raise the limit of open files (`ulimit -n`), or end programs that hold many"
_MEMORY = "end other programs, or raise the limit of memory or of processes"
_REMEDIES = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: _MEMORY,
}
# Libraries hand on the words of the system, not its number.
_WORDS = {
    **{os.strerror(number).lower(): remedy for number, remedy in _REMEDIES.items()},
    "can't start new thread": _MEMORY,
    "can't allocate": _MEMORY,  # as Python reports a lock that it cannot make
}
_UNSAID = ("unable to open database file", "error purging logs")
"""SQLite's and Chroma's words for many reasons."""
_NEEDED = 64
"""Files that an engine opens at once, or so."""


def shortage(error: BaseException) -> str | None:
    """What to do where the machine is short of something; None where the error has another reason."""
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, OSError) and error.errno in _REMEDIES:
        return _REMEDIES[error.errno]
    said = str(error).lower()
    if any(words in said for words in _UNSAID) and not _can_open(_NEEDED):
        return _FILES
    return next((remedy for words, remedy in _WORDS.items() if words in said), None)


def _can_open(number: int) -> bool:
    """Whether so many more files can be open now."""
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
