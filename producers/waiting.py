"""Families that were read wait in files until their partition is written: their lines, and beside them what they are.

What is kept in memory of a source does not grow with the number of its families.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from chunksink.producers.produced import Emptied


@dataclass(frozen=True, slots=True)
class Lines:
    """Where lines wait."""

    file: Path
    start: int
    end: int

    def read(self) -> list[bytes]:
        with self.file.open("rb") as file:
            file.seek(self.start)
            return file.read(self.end - self.start).rstrip(b"\n").split(b"\n")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A family that was read."""

    key: str
    name: str
    document: str
    tenant: str | None
    version: tuple[str | None, ...]
    newest: str | None
    chunks: int
    source_type: str
    moment_ns: int
    is_partial: bool
    lines: Lines


@dataclass(frozen=True, slots=True)
class Beside:
    """What one source gave, a line for each family that was read or that its records say is empty."""

    lines: Path
    rows: Path
    start: int
    end: int

    def families(self) -> Iterator[Waiting]:
        return (_waiting(row, self.lines) for row in self._rows() if len(row) > 1)

    def emptied(self) -> Iterator[str]:
        return (row[0] for row in self._rows() if len(row) == 1)

    def _rows(self) -> Iterator[Sequence[Any]]:
        with self.rows.open("rb") as file:
            file.seek(self.start)
            left = self.end - self.start
            while left > 0:
                line = file.readline()
                left -= len(line)
                yield orjson.loads(line)


def row_of(item: Waiting | Emptied) -> bytes:
    """The line that stands for it."""
    if isinstance(item, Emptied):
        return orjson.dumps([item.family], option=orjson.OPT_APPEND_NEWLINE)
    about = (item.key, item.name, item.document, item.tenant, item.version, item.newest, item.chunks, item.source_type)
    moment_ns = str(item.moment_ns)  # some are more than JSON's integers hold
    row = [*about, moment_ns, item.is_partial, item.lines.start, item.lines.end]
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def _waiting(row: Sequence[Any], lines: Path) -> Waiting:
    key, name, document, tenant, version, newest, chunks, source_type, moment_ns, is_partial, start, end = row
    about = (key, name, document, tenant, tuple(version), newest, chunks, source_type, int(moment_ns), is_partial)
    return Waiting(*about, Lines(lines, start, end))
