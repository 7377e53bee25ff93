"""What the system says, with what to do about it."""

import errno
import os

import pytest

from chunksink.exits import Exit, Refusal, explained


@pytest.mark.parametrize(
    ("number", "said", "code", "told"),
    [
        (errno.EROFS, None, Exit.USAGE, "Read-only file system: a/b; make that disk writable, or name another folder"),
        (errno.ENOSPC, None, Exit.ENGINE, "No space left on device: a/b; make room on that disk, then run it again"),
        (errno.EIO, "cannot be written, make room", Exit.ENGINE, "cannot be written, make room: a/b"),
        (errno.EROFS, "correct its permissions", Exit.USAGE, "correct its permissions: a/b"),
        (errno.EBUSY, "wait for that", Exit.LOCKED, "wait for that: a/b"),
    ],
)
def test_a_remedy_stands_where_none_was_named(number: int, said: str | None, code: Exit, told: str) -> None:
    with pytest.raises(Refusal) as refused, explained():
        raise OSError(number, said or os.strerror(number), "a/b")
    assert (refused.value.code, refused.value.message) == (code, told)
