"""Gets every sound row out of a damaged cache file, and puts a sound file in its place.

SQLite refuses a whole file for one bad page in the wrong place. Rows carry their own checksum, so they need no
tree above them to be believed: this reads the file page by page (the write-ahead log's copies too), takes the
rows that prove themselves, and leaves the rest to be computed again. The damaged file is kept beside the new one.

Page layout: https://www.sqlite.org/fileformat2.html, sections 1.6 (b-tree pages) and 2.1 (records).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from embeddings.rows import Row, flaw
from embeddings.schema import PAGE_SIZE

_LEAF = 0x0D
_COLUMNS = 8
_MAX_LOCAL = PAGE_SIZE - 35
_MIN_LOCAL = (PAGE_SIZE - 12) * 32 // 255 - 23
_MAX_PAYLOAD = 1 << 20
_PROBED_PAGES = 5000
_WAL_HEADER = 32
_FRAME_HEADER = 24


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


def sound_rows(path: Path, pages: int | None = None) -> Iterator[Row]:
    """Every row in the file or its write-ahead log whose checksum matches; the same row may come twice."""
    for part, start, step in ((path, 0, 0), (Path(f"{path}-wal"), _WAL_HEADER, _FRAME_HEADER)):
        try:
            file = part.open("rb")
        except OSError:
            continue
        with file:
            yield from _rows_of(file, start, step, pages)


def _rows_of(file: BinaryIO, start: int, frame_header: int, pages: int | None) -> Iterator[Row]:
    offset = start
    for _ in itertools.count() if pages is None else range(pages):
        file.seek(offset + frame_header)
        page = file.read(PAGE_SIZE)
        if len(page) < 12:
            return
        # Overflow pages are found by number, which only the main file has.
        yield from _rows_of_page(page, None if frame_header else file)
        offset += frame_header + PAGE_SIZE


def _rows_of_page(page: bytes, file: BinaryIO | None) -> Iterator[Row]:
    if page[0] != _LEAF:
        return
    for cell in range(int.from_bytes(page[3:5], "big")):
        pointer = 8 + 2 * cell
        if pointer + 2 > len(page):
            return
        record = _payload(page, int.from_bytes(page[pointer : pointer + 2], "big"), file)
        values = _values(record) if record else None
        if values is None:
            continue
        _, fingerprint, text_hash, precision, tokens, _, digest, vector = values
        candidate = (fingerprint, text_hash, precision, tokens, digest, vector)
        if flaw(candidate) is None:
            yield Row(*candidate)  # type: ignore[arg-type]  # flaw() has checked the types


def _payload(page: bytes, at: int, file: BinaryIO | None) -> bytes | None:
    size, at = _varint(page, at)
    _, at = _varint(page, at)
    if not 0 < size <= _MAX_PAYLOAD:
        return None
    if size <= _MAX_LOCAL:
        return page[at : at + size]
    local = _MIN_LOCAL + (size - _MIN_LOCAL) % (PAGE_SIZE - 4)
    if local > _MAX_LOCAL:
        local = _MIN_LOCAL
    parts = [page[at : at + local]]
    missing = size - local
    follow = int.from_bytes(page[at + local : at + local + 4], "big")
    while missing > 0:
        if not follow or file is None or follow * PAGE_SIZE > os.fstat(file.fileno()).st_size:
            return None
        file.seek((follow - 1) * PAGE_SIZE)
        overflow = file.read(PAGE_SIZE)
        if len(overflow) < 5:
            return None
        parts.append(overflow[4 : 4 + missing])
        missing -= len(parts[-1])
        follow = int.from_bytes(overflow[:4], "big")
    return b"".join(parts)


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
