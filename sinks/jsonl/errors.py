"""The system's errors as ours, once."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chunksink.sinks.errors import BuildBroken, Refused, Transient

_REMEDIES = {
    (Transient, "make room on that disk and run again"): ("ENOSPC", "EDQUOT", "EFBIG"),
    (Transient, "look after that disk and run again"): ("EIO", "EAGAIN", "EBUSY", "EMFILE", "ENFILE", "ENOMEM"),
    (Refused, "correct its permissions"): ("EACCES", "EPERM", "EROFS"),
    (Refused, "move away what is there"): ("ENOTDIR", "EISDIR", "EEXIST", "ENOTEMPTY", "EINVAL", "ELOOP"),
    (BuildBroken, "something of it is gone, so run again or rebuild it"): ("ENOENT",),
}


@contextmanager
def translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0)
        for (kind, remedy), names in _REMEDIES.items():
            if name in names:
                raise kind(f"{folder} cannot be used ({error}): {remedy}") from error
        raise
