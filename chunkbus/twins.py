"""Chunk ids that occur twice in one chunks file, found with flat memory and proven by reading the ids again."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import mmh3
import numpy as np
import numpy.typing as npt

from chunksink.chunkbus.examine import examine_line
from chunksink.chunkbus.reader import read_lines
from chunksink.chunkbus.spill import Rows, SpilledRows


@dataclass(frozen=True)
class Twin:
    """A line whose chunk_id an earlier line has too."""

    chunk_id: str
    line: int
    earlier_line: int


def hash_id(chunk_id: str) -> int:
    """64 bits that are the same in every process."""
    return mmh3.hash64(chunk_id)[0]


class SeenIds:
    """Given the id hashes of all lines in order; `twins` then tells the repeated ids."""

    def __init__(self) -> None:
        self._rows = SpilledRows(columns=2)
        self._lines = 0

    def close(self) -> None:
        self._rows.close()

    def add(self, hashes: npt.NDArray[np.int64]) -> None:
        """One hash a line; a line without an id has 0."""
        lines = np.arange(self._lines + 1, self._lines + len(hashes) + 1)
        self._lines += len(hashes)
        rows = np.column_stack((hashes, lines))
        self._rows.add(rows[hashes != 0])

    def twins(self, file: BinaryIO) -> Iterator[Twin]:
        """Equal hashes are only a suspicion: the suspects' lines are read again and their ids compared."""
        suspects = {line for rows in self._rows.sorted_buckets() for line in _repeated(rows)}
        if not suspects:
            return
        file.seek(0)
        first_line: dict[str, int] = {}
        for line, (_, data) in enumerate(read_lines(file), start=1):
            if line not in suspects:
                continue
            chunk, _ = examine_line(data)
            if chunk is None:
                continue
            earlier = first_line.setdefault(chunk.chunk_id, line)
            if earlier != line:
                yield Twin(chunk.chunk_id, line, earlier)


def _repeated(rows: Rows) -> list[int]:
    same = np.diff(rows[:, 0]) == 0
    repeated = np.concatenate(([False], same)) | np.concatenate((same, [False]))
    lines: list[int] = rows[repeated, 1].tolist()
    return lines
