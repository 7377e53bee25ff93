"""Events of a terminal's panes in the order of their log, which `log` and `cast` read; and the lines of a log."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, NamedTuple, TypeVar

import msgspec

from chunksink.ingest import codes
from chunksink.ingest.errors import RecordRefused

MAX_LINE_BYTES = 8 * 2**20
_BLOCK_BYTES = 2**18
Fields = TypeVar("Fields", bound=msgspec.Struct)

Direction = Literal["ingress", "egress"]
Boundary = Literal["start", "direction", "gap", "control", "lifecycle", "time", "limit"]
"""Why a chunk begins where it does. All but a limit are hard: nothing is repeated across them."""


class Line(NamedTuple):
    """The place of a line: its number, its bytes `[start, end)`, and the hex sha256 of what was read up to `end`."""

    number: int
    start: int
    end: int
    checksum: str


class Offset(NamedTuple):
    """A place in the recorder's own log, with the names of the chunks' metadata."""

    segment_id: int
    ordinal: int
    byte_offset: int


class Place(NamedTuple):
    offset: Offset
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of one pane; `first` and `last` differ where frames of a recording were joined.

    `boundary`: the event forces a boundary before it. An event without a direction is nothing else; its text is the
    label of the section that it begins.
    """

    event_id: str
    pane: str
    session: str | None
    direction: Direction | None
    boundary: Boundary | None
    text: str
    started_ms: int
    ended_ms: int
    first: Place
    last: Place

    @property
    def contribution(self) -> str:
        """What the event adds to a chunk: the marker of its direction and its text, or nothing."""
        if self.direction is None or not self.text:
            return ""
        mark = "[IN]" if self.direction == "ingress" else "[OUT]"
        return mark + self.text if self.text.startswith("\n") else f"{mark} {self.text}"


def read_lines(file: BinaryIO, start: int, end: int) -> Iterator[tuple[Line, bytes | None]]:
    """The lines within the bytes `[start, end)` that are not empty; without data where a line is too long."""
    file.seek(start)
    digest = hashlib.sha256()
    number = 0
    while data := file.readline(min(MAX_LINE_BYTES + 1, end - start)):
        digest.update(data)
        number += 1
        line_end = start + len(data)
        too_long = len(data) > MAX_LINE_BYTES
        while too_long and not data.endswith(b"\n") and (data := file.readline(min(_BLOCK_BYTES, end - line_end))):
            digest.update(data)
            line_end += len(data)
        if too_long or data.strip():
            yield Line(number, start, line_end, digest.hexdigest()), None if too_long else data
        start = line_end


def parse_line(data: bytes | None, fields: type[Fields]) -> Fields:
    """The JSON value of a line as these fields; strings may have lone surrogates. Raises RecordRefused."""
    if data is None:
        raise RecordRefused(codes.EVENT_TOO_LONG, f"is longer than {MAX_LINE_BYTES // 2**20} MiB")
    try:
        return msgspec.convert(json.loads(data.decode("utf-8-sig")), fields)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise RecordRefused(codes.EVENT_MALFORMED, f"{error!s:.200}") from error
