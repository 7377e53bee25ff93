"""Reading a partition: in order with constant memory, or one record by its place. Never writes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import orjson

from chunkbus.canonical import bare_hex, text_hash
from chunkbus.chunk import Record
from chunkbus.errors import InvalidManifest, PartitionChanged
from chunkbus.examine import MAX_LINE_BYTES
from chunkbus.layout import BusRoot
from chunkbus.manifest import Manifest, decode_manifest

BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class Place:
    """Where a record's line begins in its chunks file, and its length in bytes without the line break."""

    offset: int
    length: int


@dataclass(frozen=True)
class Block:
    """Whole lines of a chunks file without the last line break, and the byte where they begin."""

    offset: int
    data: bytes


def read_manifest(root: BusRoot, key: str) -> Manifest:
    return decode_manifest(root.manifest_file(key).read_bytes())


def open_partition(root: BusRoot, key: str) -> tuple[BinaryIO, bytes | None]:
    """The chunks file that the manifest names, and that manifest, even while a writer commits or after one was killed.

    A writer renames the manifest first and the chunks after it, so a manifest that is the same before and
    after opening belongs to the file that was opened. Without a readable manifest: the file under its own name.
    """
    while True:
        before = _manifest_bytes(root, key)
        file = _chunks_path(root, key, before).open("rb")
        if _manifest_bytes(root, key) == before:
            return file, before
        file.close()


def _manifest_bytes(root: BusRoot, key: str) -> bytes | None:
    try:
        return root.manifest_file(key).read_bytes()
    except FileNotFoundError:
        return None


def _chunks_path(root: BusRoot, key: str, manifest: bytes | None) -> Path:
    checksum = committed_checksum(manifest)
    if checksum is not None:
        waiting = root.waiting_file(key, checksum)
        if waiting.exists():
            return waiting
    return root.chunks_file(key)


def committed_checksum(manifest: bytes | None) -> str | None:
    """The bare hex checksum that a manifest names; None where it cannot be read."""
    if manifest is None:
        return None
    try:
        return bare_hex(decode_manifest(manifest).checksums.chunks_file)
    except InvalidManifest:
        return None


def read_blocks(file: BinaryIO, on_bytes: Callable[[bytes], object] | None = None) -> Iterator[Block]:
    """The whole file as blocks of whole lines; `on_bytes` sees every byte of it once, in order.

    A line over the limit comes cut to one byte more than the limit, alone in its block, so that its reader can
    tell; memory stays flat.
    """
    offset = 0
    carry = b""
    dropped = 0  # bytes of an overlong line after the head that was kept
    while data := file.read(BLOCK_BYTES):
        if on_bytes is not None:
            on_bytes(data)
        if dropped and (end := data.find(b"\n")) >= 0:
            yield Block(offset, carry)
            offset += len(carry) + dropped + end + 1
            carry, dropped, data = b"", 0, data[end + 1 :]
        whole, line_break, rest = data.rpartition(b"\n")
        if line_break:
            yield Block(offset, carry + whole)
            offset += len(carry) + len(whole) + 1
            carry = rest
        else:
            carry += rest
        if len(carry) > MAX_LINE_BYTES + 1:
            dropped += len(carry) - MAX_LINE_BYTES - 1
            carry = carry[: MAX_LINE_BYTES + 1]
    if carry:
        yield Block(offset, carry)


def read_lines(file: BinaryIO) -> Iterator[tuple[Place, bytes]]:
    """Each line's place and its bytes without the line break."""
    for block in read_blocks(file):
        offset = block.offset
        for line in block.data.split(b"\n"):
            yield Place(offset, len(line)), line
            offset += len(line) + 1


def read_partition(root: BusRoot, key: str) -> Iterator[tuple[Place, Record]]:
    """Every record of a partition that validation passed, with its place."""
    file, _ = open_partition(root, key)
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
        self._file, _ = open_partition(self._root, self.key)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def record(self, place: Place, expected_text_hash: str) -> Record:
        """The record at a place, checked against the hash of its text that was recorded with the place."""
        if self._file is None:
            raise RuntimeError("a PartitionReader reads inside its `with` block")
        self._file.seek(place.offset)
        try:
            record: Record = orjson.loads(self._file.read(place.length))
            actual = text_hash(record["text"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PartitionChanged(f"{self.key} at byte {place.offset}: no chunk stands there now") from error
        if actual != expected_text_hash:
            raise PartitionChanged(f"{self.key} at byte {place.offset}: another text stands there now")
        return record
