"""Examines the lines of a chunks file block by block, in one process or several, with the same result.

`scan_block` depends only on bytes (and on the clock, for a warning about times in the future), so blocks can be
examined in any process and their reports joined in order.
"""

import os
from array import array
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from chunksink.chunkbus.diagnosis import first_in_future, time_in_future
from chunksink.chunkbus.families import StretchCounter, hash_number
from chunksink.chunkbus.findings import Problem, has_error
from chunksink.chunkbus.reader import LineBlock
from chunksink.chunkbus.record_checks import Rules, examine_line

RANGE_BYTES = 2**21
_RANGES_IN_FLIGHT = 32
"""Enough for about ten workers. The reading process cannot supply more: it hashes ten times as fast as one
worker examines."""


@dataclass(frozen=True)
class BlockReport:
    """The result for a block. Lines count from 0 at its beginning, offsets from 0 at the beginning of the file."""

    lines: int
    problems: list[tuple[int, tuple[Problem, ...]]]
    ids: "array[int]"
    """The hash number of each line's chunk_id; 0 if it has none."""
    offsets: "array[int]"
    stretches: list[list[int]]
    has_refused: bool
    """Whether a line was refused."""


def scan_block(block: LineBlock, rules: Rules) -> BlockReport:
    problems = []
    ids, offsets = array("q"), array("q")
    stretches = StretchCounter()
    has_refused = False
    offset = block.offset
    lines = block.data.split(b"\n")
    first_with: dict[str, int] = {}  # the first line with each time
    for line, data in enumerate(lines):
        chunk, of_line = examine_line(data, rules)
        if of_line:
            problems.append((line, of_line))
        ids.append(0 if chunk is None else hash_number(chunk.chunk_id))
        offsets.append(offset)
        if chunk is None or (of_line and has_error(of_line)):
            has_refused = True
            stretches.skip()
        else:
            stretches.add(chunk, line)
        if chunk is not None and chunk.created_at:
            first_with.setdefault(chunk.created_at, line)
        offset += len(data) + 1
    if stamp := first_in_future(first_with):
        problems.append((first_with[stamp], (time_in_future("created_at", stamp),)))
    return BlockReport(len(lines), problems, ids, offsets, stretches.rows, has_refused)


@dataclass(frozen=True)
class FileRange:
    """A part of a file that a worker reads itself, because sending its bytes costs as much as examining them."""

    path: str
    device: int
    inode: int
    offset: int
    length: int


def scan_range(part: FileRange, rules: Rules) -> BlockReport | None:
    """None if the file was replaced or deleted meanwhile; the caller still has it open and scans the range itself."""
    try:
        with Path(part.path).open("rb") as file:
            status = os.fstat(file.fileno())
            if (status.st_dev, status.st_ino) != (part.device, part.inode):
                return None
            file.seek(part.offset)
            data = file.read(part.length)
    except OSError:
        return None
    return scan_block(LineBlock(part.offset, data), rules) if len(data) == part.length else None


def scan_file(
    file: BinaryIO, blocks: Iterator[LineBlock], rules: Rules, workers: Executor | None
) -> Iterator[BlockReport]:
    """Scans the blocks of a file, in this process or in workers, and reports them in order.

    If reading fails, the blocks before the failure are reported first.
    """
    if workers is None or not _has_descriptor(file):
        for block in blocks:
            yield scan_block(block, rules)
        return
    pending: deque[tuple[FileRange, Future[BlockReport | None]]] = deque()

    def next_report() -> BlockReport:
        part, future = pending.popleft()
        scanned = future.result()
        if scanned is None:
            data = os.pread(file.fileno(), part.length, part.offset)
            scanned = scan_block(LineBlock(part.offset, data), rules)
        return scanned

    failure: Exception | None = None
    try:
        for part in _ranges(file, blocks):
            if len(pending) >= _RANGES_IN_FLIGHT:
                yield next_report()
            pending.append((part, workers.submit(scan_range, part, rules)))
    except Exception as error:  # raised again below
        failure = error
    while pending:
        yield next_report()
    if failure is not None:
        raise failure


def _has_descriptor(file: BinaryIO) -> bool:
    """Whether other processes can read it. False for an object of a bucket that is read by ranges."""
    try:
        return file.fileno() >= 0
    except OSError:
        return False


def _ranges(file: BinaryIO, blocks: Iterator[LineBlock]) -> Iterator[FileRange]:
    """Joins neighbouring blocks into larger ranges for workers. A range omits the dropped end of an overlong line."""
    status = os.fstat(file.fileno())
    start, end = 0, -1  # the open range, without its last line break

    def collected() -> FileRange:
        return FileRange(str(file.name), status.st_dev, status.st_ino, start, end - start)

    try:
        for block in blocks:
            if end >= 0 and (block.offset != end + 1 or end - start >= RANGE_BYTES):
                yield collected()
                end = -1
            start = start if end >= 0 else block.offset
            end = block.offset + len(block.data)
    except Exception:
        if end >= 0:  # what was read before the failure is reported too
            yield collected()
        raise
    if end >= 0:
        yield collected()
