"""Examining the lines of a chunks file block by block, in this process or in several, with the same result.

`scan_block` is a pure function of bytes, so that blocks can be examined anywhere and their reports joined in order.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chunkbus.examine import examine_line
from chunkbus.families import StretchCounter
from chunkbus.findings import Problem
from chunkbus.reader import Block
from chunkbus.spill import Rows
from chunkbus.twins import hash_id


@dataclass(frozen=True)
class Scanned:
    """What a block holds. Lines count from 0 at its beginning, offsets from 0 at the file's."""

    lines: int
    problems: list[tuple[int, tuple[Problem, ...]]]
    id_hashes: npt.NDArray[np.int64]
    stretches: Rows


def scan_block(block: Block, require_source_checksum: bool) -> Scanned:
    problems = []
    id_hashes = []
    stretches = StretchCounter()
    offset = block.offset
    lines = block.data.split(b"\n")
    for line, data in enumerate(lines):
        chunk, found = examine_line(data, require_source_checksum)
        if found:
            problems.append((line, found))
        if chunk is not None:
            id_hashes.append(hash_id(chunk.chunk_id))
            stretches.add(chunk, line, offset)
        else:
            id_hashes.append(0)
        offset += len(data) + 1
    rows = np.array(stretches.rows, dtype=np.int64).reshape(-1, 5)
    return Scanned(len(lines), problems, np.array(id_hashes, dtype=np.int64), rows)


def scan_blocks(
    blocks: Iterator[Block], require_source_checksum: bool, workers: Executor | None, in_flight: int
) -> Iterator[Scanned]:
    """Reports in the order of the blocks; with workers, `in_flight` blocks are held in memory.

    Where reading fails, the blocks before are reported first, with workers as without.
    """
    if workers is None:
        for block in blocks:
            yield scan_block(block, require_source_checksum)
        return
    pending: deque[Future[Scanned]] = deque()
    failure: Exception | None = None
    try:
        for block in blocks:
            if len(pending) >= in_flight:
                yield pending.popleft().result()
            pending.append(workers.submit(scan_block, block, require_source_checksum))
    except Exception as error:  # of any kind: it is raised again, only later
        failure = error
    while pending:
        yield pending.popleft().result()
    if failure is not None:
        raise failure
