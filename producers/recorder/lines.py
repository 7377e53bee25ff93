"""A log's lines with their places, in bounded memory however long a line is. Never writes."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

MAX_LINE_BYTES = 8 * 2**20
_BLOCK_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its number from 1, `[start, end)` with its line break, and its bytes; None where it is too long.

    `checksum` is the sha256 of all that was read up to `end`.
    """

    number: int
    start: int
    end: int
    data: bytes | None
    checksum: str


def read_lines(file: BinaryIO, start: int, end: int) -> Iterator[Line]:
    """The lines of `[start, end)`, so that what is appended meanwhile is left for the next run."""
    file.seek(start)
    hashed = hashlib.sha256()
    number = 0
    while start < end:
        data = file.readline(min(MAX_LINE_BYTES + 1, end - start))
        if not data:
            return
        hashed.update(data)
        number += 1
        stop = start + len(data)
        too_long = len(data) > MAX_LINE_BYTES
        while too_long and not data.endswith(b"\n") and stop < end:
            data = file.readline(min(_BLOCK_BYTES, end - stop))
            if not data:
                break
            hashed.update(data)
            stop += len(data)
        yield Line(number, start, stop, None if too_long else data, hashed.hexdigest())
        start = stop
