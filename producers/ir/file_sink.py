"""IR records on disk, unchanged: what is read is written byte for byte, in one step: no half file has a name."""

import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import RecordRefused
from chunksink.producers.produced import LeftOut
from chunksink.producers.records.files import RecordFile, left_out, parse_record


@dataclass(frozen=True)
class IrLine:
    """A record as it stands in its file, and as it was read."""

    line: int
    data: bytes
    record: Record

    @classmethod
    def of(cls, record: Record) -> "IrLine":
        """A record that was made and not read."""
        return cls(0, orjson.dumps(record), record)


def read_ir(path: Path, uri: str | None = None) -> Iterator[IrLine | LeftOut]:
    """Every JSON object of a file, whatever its version: whether it is a sound record is for others to say.

    Raises SourceFailed.
    """
    with RecordFile(path) as file:
        for place, data in file.records():
            try:
                record = parse_record(data)
            except RecordRefused as refusal:
                yield left_out(uri or path.name, place, refusal.code, refusal.reason)
            else:
                yield IrLine(place.line, data, record)
        yield from file.unread(uri or path.name)


def write_ir(path: Path, lines: Iterable[IrLine]) -> int:
    """Writes JSONL of these records and returns how many they are. The old file stands until the new one is whole."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    count = 0
    try:
        with new.open("xb") as file:
            for line in lines:
                file.write(line.data.replace(b"\n", b" ") + b"\n")  # a record of a folder may be spread over lines
                count += 1
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
    finally:
        new.unlink(missing_ok=True)
    return count
