"""Rows of integers that do not fit in memory: gathered by their first column, so that equal values meet again.

Rows live in unnamed temporary files and go with them.
"""

import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

_BUCKET_BITS = 6
_ROWS_IN_MEMORY = 2**13

Rows = npt.NDArray[np.int64]


class SpilledRows:
    """Add rows of `columns` 64-bit integers, then read them back, sorted by column 0 part by part."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._memory: list[Rows] = []
        self._rows_in_memory = 0
        self._buckets: list[IO[Any]] = []

    def close(self) -> None:
        for bucket in self._buckets:
            bucket.close()

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
        if not self._buckets:
            self._memory = [self._take_memory()]
            yield self._memory[0]
            return
        self._spill()
        for bucket in self._buckets:
            bucket.seek(0)
            yield np.frombuffer(bucket.read(), dtype=np.int64).reshape(-1, self._columns)

    def _spill(self) -> None:
        if not self._buckets:
            self._buckets = [tempfile.TemporaryFile() for _ in range(2**_BUCKET_BITS)]  # noqa: SIM115 (see close)
        rows = self._take_memory()
        bucket_of = rows[:, 0].view(np.uint64) >> np.uint64(64 - _BUCKET_BITS)
        order = np.argsort(bucket_of, kind="stable")
        rows, bucket_of = rows[order], bucket_of[order]
        bounds = np.searchsorted(bucket_of, np.arange(2**_BUCKET_BITS + 1, dtype=np.uint64))
        for number, bucket in enumerate(self._buckets):
            bucket.write(rows[bounds[number] : bounds[number + 1]].tobytes())

    def _take_memory(self) -> Rows:
        rows = np.concatenate(self._memory) if self._memory else np.empty((0, self._columns), dtype=np.int64)
        self._memory, self._rows_in_memory = [], 0
        return rows
