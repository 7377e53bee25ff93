"""Reads a partition in order with constant memory, or one record by its place. Never writes to the bus."""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson

from chunksink.chunkbus.canonical import text_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.errors import PartitionChanged
from chunksink.chunkbus.layout import BusRoot, manifest_name
from chunksink.chunkbus.manifest import Manifest, decode_manifest
from chunksink.chunkbus.record_checks import MAX_LINE_BYTES

BLOCK_BYTES = 2**18


class Place(NamedTuple):  # created for each line; a dataclass takes twice as long
    """Where a record's line begins in its chunks file, and its length in bytes without the line break."""

    offset: int
    length: int


@dataclass(frozen=True)
class LineBlock:
    """Whole lines of a chunks file without the last line break, and the byte where they begin."""

    offset: int
    data: bytes


def read_manifest(root: BusRoot, key: str) -> Manifest:
    """The decoded manifest of a partition. In a bucket it may be as old as the last listing."""
    data = root.known_manifest(key)
    if data is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{root.address}/{manifest_name(key)}")
    return decode_manifest(data)


def open_regular(path: str | Path) -> BinaryIO:
    """Opens a file for reading; refuses a pipe or a device, which could block or never end."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file


def read_blocks(
    file: BinaryIO, on_bytes: Callable[[bytes], object] | None = None, limit: int = MAX_LINE_BYTES
) -> Iterator[LineBlock]:
    """The whole file as blocks of whole lines; `on_bytes` gets every byte of it once, in order.

    A line that is much longer than the limit is cut to one byte more than the limit, so that the caller can recognise
    it and memory stays flat. It is alone in its block. A line that exceeds the limit by up to `BLOCK_BYTES` may be left
    whole.
    """
    offset = 0
    carry = b""
    dropped = 0  # bytes of an overlong line beyond the part that is kept
    while data := file.read(BLOCK_BYTES):
        if on_bytes is not None:
            on_bytes(data)
        if dropped and (end := data.find(b"\n")) >= 0:
            yield LineBlock(offset, carry)
            offset += len(carry) + dropped + end + 1
            carry, dropped, data = b"", 0, data[end + 1 :]
        whole, line_break, rest = data.rpartition(b"\n")
        if line_break:
            yield LineBlock(offset, carry + whole)
            offset += len(carry) + len(whole) + 1
            carry = rest
        elif dropped:
            dropped += len(rest)
        else:
            carry += rest
        if len(carry) > limit + 1:
            dropped += len(carry) - limit - 1
            carry = carry[: limit + 1]
    if carry:
        yield LineBlock(offset, carry)


def blocks_at(file: BinaryIO, places: Iterable[tuple[int, int]]) -> Iterator[LineBlock]:
    """The lines at these places, as blocks; neighbouring lines share a block. The places must be in order."""
    start, end = 0, -1
    for offset, length in chain(places, [(-1, 0)]):  # the additional place ends the last block
        if offset != end + 1 or offset - start > BLOCK_BYTES:
            if end >= 0:
                file.seek(start)
                yield LineBlock(start, file.read(end - start))
            start = offset
        end = offset + length


def read_lines(file: BinaryIO, limit: int = MAX_LINE_BYTES) -> Iterator[tuple[Place, bytes]]:
    """Each line's place and its bytes without the line break."""
    return lines_of(read_blocks(file, limit=limit))


def lines_of(blocks: Iterable[LineBlock]) -> Iterator[tuple[Place, bytes]]:
    for block in blocks:
        offset = block.offset
        for line in block.data.split(b"\n"):
            yield Place(offset, len(line)), line
            offset += len(line) + 1


def read_partition(root: BusRoot, key: str) -> Iterator[tuple[Place, Record]]:
    """Every record, with its place, of a partition that has passed validation."""
    file, _ = root.open(key)
    with file:
        for place, line in read_lines(file):
            yield place, orjson.loads(line)


class PartitionReader:
    """One partition, open for reading records by their places."""

    def __init__(self, root: BusRoot, key: str) -> None:
        self.key = key
        self._root = root
        self._file: BinaryIO | None = None

    def __enter__(self) -> "PartitionReader":
        self._file = self._root.open_for_records(self.key)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def line(self, place: Place) -> bytes:
        """The bytes at a place, unchecked."""
        if self._file is None:
            raise RuntimeError("a PartitionReader can read only inside its `with` block")
        self._file.seek(place.offset)
        return self._file.read(place.length)

    def record(self, place: Place, expected_text_hash: str) -> Record:
        """The record at a place, checked against the hash of its text that was recorded with the place."""
        line = self.line(place)
        try:
            record: Record = orjson.loads(line)
            actual = text_hash(record["text"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PartitionChanged(f"{self.key} at byte {place.offset}: no chunk begins here any more") from error
        if actual != expected_text_hash:
            raise PartitionChanged(f"{self.key} at byte {place.offset}: the text has changed")
        return record
