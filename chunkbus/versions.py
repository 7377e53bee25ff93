"""Sources of which one partition holds several versions: only the last one counts, whatever the others hold."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from chunksink.chunkbus.examine import MAX_LINE_BYTES, examine_line
from chunksink.chunkbus.spill import Rows, SpilledRows

_FAMILY, _CHECKSUM, _LINE, _OFFSET, _CHUNKS = range(5)


@dataclass(frozen=True)
class Outdated:
    """Chunks of a source that a later line's source_checksum retires; `line` is the first of them."""

    line: int
    source: str
    chunks: int
    versions: int


class SeenVersions:
    """Given the stretches of a file in order, as families, source checksums and places; `outdated` then judges them."""

    def __init__(self) -> None:
        self._rows = SpilledRows(columns=5)

    def close(self) -> None:
        self._rows.close()

    def add(self, rows: Rows, first_line: int) -> None:
        """The stretches of one block, whose lines count from 0, of a file where it begins at `first_line`."""
        rows[:, _LINE] += first_line
        self._rows.add(rows)

    def outdated(self, file: BinaryIO) -> Iterator[Outdated]:
        for rows in self._rows.sorted_buckets():
            ends = np.flatnonzero(np.diff(rows[:, _FAMILY], append=~rows[-1:, _FAMILY])) + 1
            starts = np.concatenate(([0], ends[:-1]))
            is_old = rows[:, _CHECKSUM] != np.repeat(rows[ends - 1, _CHECKSUM], ends - starts)
            for index in np.flatnonzero(np.logical_or.reduceat(is_old, starts)):
                family = slice(starts[index], ends[index])
                old = rows[family][is_old[family]]
                name = _source_at(file, int(old[0, _OFFSET]))
                if name is not None:
                    versions = len(np.unique(old[:, _CHECKSUM]))
                    yield Outdated(int(old[0, _LINE]), name, int(old[:, _CHUNKS].sum()), versions)


def _source_at(file: BinaryIO, offset: int) -> str | None:
    """None where the file has changed meanwhile."""
    file.seek(offset)
    chunk, _ = examine_line(file.readline(MAX_LINE_BYTES + 2).removesuffix(b"\n"))
    return None if chunk is None else chunk.provenance.source()
