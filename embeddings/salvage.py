"""Gets every sound row out of a damaged cache file, and puts a sound file in its place.

SQLite refuses a whole file for one bad page in the wrong place. Rows carry their own checksum, so they need no
tree above them to be believed: this reads the file page by page (the write-ahead log's copies too), takes the
rows that prove themselves, and leaves the rest to be computed again. The damaged file is kept beside the new one.

Layouts: https://www.sqlite.org/fileformat2.html, sections 1.6 (b-tree pages), 2.1 (records) and 4.1 (the log).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from chunksink.embeddings.rows import VectorRow, flaw
from chunksink.embeddings.schema import PAGE_SIZE

_LEAF = 0x0D
_COLUMNS = 8
_MAX_LOCAL = PAGE_SIZE - 35
_MIN_LOCAL = (PAGE_SIZE - 12) * 32 // 255 - 23
_MAX_PAYLOAD = 1 << 20
_PROBED_PAGES = 5000
_LOG_HEADER = 32
_FRAME_HEADER = 24
_COPIES = 4
_SPARE_READS = 64


@dataclass(frozen=True, slots=True)
class SalvageReport:
    """What became of a damaged cache."""

    rows: int
    """Sound rows that were carried over; all others will be computed again when they are needed."""
    kept: str
    """Where the damaged file lies now."""
    reason: str


def holds_rows(path: Path) -> bool:
    """Whether a sound row of ours can be read from the file, or from the first part of a large one."""
    return next(sound_rows(path, _PROBED_PAGES), None) is not None


def sound_rows(path: Path, pages: int | None = None) -> Iterator[VectorRow]:
    """Every row in the file or its write-ahead log whose checksum matches; the same row may come twice."""
    with ExitStack() as opened:
        file, log = (_opened(part, opened) for part in (path, Path(f"{path}-wal")))
        overflow = _Overflow(file, log)
        for part, start, frame_header in ((file, 0, 0), (log, _LOG_HEADER, _FRAME_HEADER)):
            if part is not None:
                yield from _rows_of(part, start, frame_header, overflow, pages)


def _opened(path: Path, stack: ExitStack) -> BinaryIO | None:
    try:
        return stack.enter_context(path.open("rb"))
    except OSError:
        return None


def _rows_of(
    file: BinaryIO, start: int, frame_header: int, overflow: _Overflow, pages: int | None
) -> Iterator[VectorRow]:
    offset = start
    for _ in itertools.count() if pages is None else range(pages):
        file.seek(offset + frame_header)
        page = file.read(PAGE_SIZE)
        if len(page) < 12:
            return
        yield from _rows_of_page(page, overflow)
        offset += frame_header + PAGE_SIZE


def _rows_of_page(page: bytes, overflow: _Overflow) -> Iterator[VectorRow]:
    if page[0] != _LEAF:
        return
    for cell in range(int.from_bytes(page[3:5], "big")):
        pointer = 8 + 2 * cell
        if pointer + 2 > len(page):
            return
        for record in _payloads(page, int.from_bytes(page[pointer : pointer + 2], "big"), overflow):
            row = _row(record)
            if row is not None:
                yield row
                break


def _row(record: bytes) -> VectorRow | None:
    values = _values(record)
    if values is None:
        return None
    _, fingerprint, text_hash, precision, tokens, _, digest, vector = values
    candidate = (fingerprint, text_hash, precision, tokens, digest, vector)
    return VectorRow(*candidate) if flaw(candidate) is None else None  # type: ignore[arg-type]  # flaw() checks types


class _Overflow:
    """The pages on which the rest of a large row stands: in the log, newest first, then in the file.

    Which copy belongs to a row is not asked: a row that is put together wrongly does not prove itself.
    """

    def __init__(self, file: BinaryIO | None, log: BinaryIO | None) -> None:
        self._file = file
        self._file_size = os.fstat(file.fileno()).st_size if file is not None else 0
        self._log = log
        self._frames: dict[int, list[tuple[bool, int]]] = {}
        self._reads_left = 0
        if log is not None:
            self._read_frame_headers(log)

    def _read_frame_headers(self, log: BinaryIO) -> None:
        log.seek(0)
        salts = log.read(_LOG_HEADER)[16:24]
        for offset in itertools.count(_LOG_HEADER, _FRAME_HEADER + PAGE_SIZE):
            log.seek(offset)
            header = log.read(_FRAME_HEADER)
            if len(header) < _FRAME_HEADER:
                return
            # A frame with other salts is left from before the log was begun anew: older, but still a copy.
            frame = (header[8:16] == salts, offset + _FRAME_HEADER)
            self._frames.setdefault(int.from_bytes(header[:4], "big"), []).append(frame)

    def contents(self, number: int, size: int) -> Iterator[bytes]:
        """What may stand in the chain of pages that begins with this one, each of the wanted size."""
        self._reads_left = 4 * (size // PAGE_SIZE + 1) + _SPARE_READS  # damaged chains must not branch for ever
        return self._chains(number, size)

    def _chains(self, number: int, size: int) -> Iterator[bytes]:
        for page in self._copies(number):
            part = page[4 : 4 + size]
            if len(part) == size:
                yield part
            elif len(page) == PAGE_SIZE:
                for rest in self._chains(int.from_bytes(page[:4], "big"), size - len(part)):
                    yield part + rest

    def _copies(self, number: int) -> Iterator[bytes]:
        places = [(self._log, offset) for _, offset in sorted(self._frames.get(number, ()), reverse=True)[:_COPIES]]
        if 0 <= (offset := (number - 1) * PAGE_SIZE) < self._file_size:
            places.append((self._file, offset))
        for file, offset in places:
            if file is None or not self._reads_left:
                return
            self._reads_left -= 1
            file.seek(offset)
            yield file.read(PAGE_SIZE)


def _payloads(page: bytes, at: int, overflow: _Overflow) -> Iterator[bytes]:
    """What the record of a cell may be; one that fits on its page can be one thing only."""
    size, at = _varint(page, at)
    _, at = _varint(page, at)
    if not 0 < size <= _MAX_PAYLOAD:
        return
    if size <= _MAX_LOCAL:
        yield page[at : at + size]
        return
    local = _MIN_LOCAL + (size - _MIN_LOCAL) % (PAGE_SIZE - 4)
    if local > _MAX_LOCAL:
        local = _MIN_LOCAL
    follow = int.from_bytes(page[at + local : at + local + 4], "big")
    for rest in overflow.contents(follow, size - local):
        yield page[at : at + local] + rest


def _values(record: bytes) -> list[object] | None:
    end, at = _varint(record, 0)
    position = end
    values: list[object] = []
    while at < end and len(values) < _COLUMNS + 1:
        kind, at = _varint(record, at)
        length = _length(kind)
        if length is None or position + length > len(record):
            return None
        raw = record[position : position + length]
        position += length
        if kind >= 12:
            values.append(raw if kind % 2 == 0 else raw.decode("utf-8", "replace"))
        else:
            values.append({0: None, 8: 0, 9: 1}.get(kind, int.from_bytes(raw, "big", signed=True)))
    return values if len(values) == _COLUMNS else None


def _length(kind: int) -> int | None:
    """Bytes of a value by its serial type."""
    if kind >= 12:
        return (kind - 12) // 2
    return {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}.get(kind)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(9):
        if at >= len(data):
            return 0, at
        byte = data[at]
        at += 1
        if count == 8:
            return value << 8 | byte, at
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value, at


def put_aside(path: Path, replacement: Path) -> Path:
    """Puts the replacement in the place of a damaged file, which is kept under a new name.

    The path is never empty meanwhile. The old log must go first: SQLite would replay it into the new file.
    """
    number = 1
    while (kept := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    os.link(path, kept)
    log = Path(f"{path}-wal")
    if log.exists():
        log.replace(f"{kept}-wal")
    Path(f"{path}-shm").unlink(missing_ok=True)
    replacement.replace(path)
    return kept
