"""Translates errors of the file system into ours."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chunksink.chunkbus.shortage import shortage
from chunksink.sinks.errors import BuildBroken, OutOfResources, Refused, Transient

_REMEDIES = {
    (Transient, "free disk space, then run the command again"): ("ENOSPC", "EDQUOT", "EFBIG"),
    (Transient, "check the disk, then run the command again"): ("EIO", "EAGAIN", "EBUSY"),
    (Refused, "correct its permissions"): ("EACCES", "EPERM", "EROFS"),
    (Refused, "move the conflicting file away"): ("ENOTDIR", "EISDIR", "EEXIST", "ENOTEMPTY", "EINVAL", "ELOOP"),
    (BuildBroken, "a file is missing"): ("ENOENT",),
}


@contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0)
        for (kind, remedy), names in _REMEDIES.items():
            if name in names:
                raise kind(f"{folder} cannot be used ({error}): {remedy}") from error
        if (resources := shortage(error)) is not None:
            message = f"{folder} cannot be used ({error}): {resources}, then run the command again"
            raise OutOfResources(message) from error
        raise
