"""Rows of integers that do not fit in memory: gathered by their first column, so that equal values meet again.

Rows live in an unnamed temporary file and go with it.
"""

import os
import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

_BUCKET_BITS = 6
_VALUE_BYTES = 8
_ROWS_IN_MEMORY = 2**13

Rows = npt.NDArray[np.int64]


class SpilledRows:
    """Add rows of `columns` 64-bit integers, then read them back, sorted by column 0 part by part."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._memory: list[Rows] = []
        self._rows_in_memory = 0
        self._file: IO[Any] | None = None
        self._written = 0
        self._bounds: list[Rows] = []
        """Of each spill, where in the file its buckets begin, and where the last one ends."""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, rows: Rows) -> None:
        self._memory.append(rows)
        self._rows_in_memory += len(rows)
        if self._rows_in_memory >= _ROWS_IN_MEMORY:
            self._spill()

    def sorted_buckets(self) -> Iterator[Rows]:
        """All rows in parts sorted by column 0, in order of addition where equal; equal values share a part."""
        for rows in self._read_buckets():
            if len(rows):
                yield rows[np.argsort(rows[:, 0], kind="stable")]

    def _read_buckets(self) -> Iterator[Rows]:
        if self._file is None:
            self._memory = [self._take_memory()]
            yield self._memory[0]
            return
        self._spill()
        number = self._file.fileno()
        for bucket in range(2**_BUCKET_BITS):
            places = [(int(bounds[bucket]), int(bounds[bucket + 1])) for bounds in self._bounds]
            data = b"".join(os.pread(number, end - start, start) for start, end in places)
            yield np.frombuffer(data, dtype=np.int64).reshape(-1, self._columns)

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (see close)
        rows = self._take_memory()
        bucket_of = rows[:, 0].view(np.uint64) >> np.uint64(64 - _BUCKET_BITS)
        order = np.argsort(bucket_of, kind="stable")
        bounds = np.searchsorted(bucket_of[order], np.arange(2**_BUCKET_BITS + 1, dtype=np.uint64))
        self._bounds.append(self._written + bounds * (self._columns * _VALUE_BYTES))
        data = memoryview(rows[order].tobytes())
        self._written += len(data)
        while data:  # a disk may take it in parts
            data = data[self._file.write(data) :]

    def _take_memory(self) -> Rows:
        rows = np.concatenate(self._memory) if self._memory else np.empty((0, self._columns), dtype=np.int64)
        self._memory, self._rows_in_memory = [], 0
        return rows
