"""The type of a terminal event, and the reader of recorder logs (one JSON object per line)."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, BinaryIO, Literal, NamedTuple, TypeVar

import msgspec

from chunksink.ingest import codes
from chunksink.ingest.errors import RecordRefused
from chunksink.ingest.model import Notice
from chunksink.ingest.terminal import readable

MAX_LINE_BYTES = 8 * 2**20
_BLOCK_BYTES = 2**18
Fields = TypeVar("Fields", bound=msgspec.Struct)

Direction = Literal["ingress", "egress"]
Boundary = Literal["start", "direction", "gap", "control", "lifecycle", "time", "limit"]
"""Why a chunk begins. All boundaries except `limit` are hard: no overlap crosses them."""

_DIRECTIONS: dict[str, Direction] = {"ingress_text": "ingress", "egress_output": "egress"}
_BOUNDARIES: dict[str, Boundary] = {"control_marker": "control", "lifecycle_marker": "lifecycle"}
KINDS = (*_DIRECTIONS, *_BOUNDARIES)

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
# Without control characters and surrogates.
_Name = Annotated[str, msgspec.Meta(pattern=r"\A[\x20-\ud7ff\ue000-\U0010ffff]{1,256}\Z")]


class Line(NamedTuple):
    """The place of a line: its number, its bytes `[start, end)`, and the hex sha256 of the bytes read up to `end`."""

    number: int
    start: int
    end: int
    checksum: str


class Offset(NamedTuple):
    """A place in the recorder's log; the field names are those in the chunks' metadata."""

    segment_id: int
    ordinal: int
    byte_offset: int


class Place(NamedTuple):
    offset: Offset
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of one pane; `first` and `last` differ where frames of a recording were joined.

    `boundary`: the event forces a boundary before it. An event without a direction only marks a boundary; its text
    labels the section that begins there.
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
    """The lines in the bytes `[start, end)` that are not empty; the data of an overlong line is None."""
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


class _Fields(msgspec.Struct):
    """The fields of an event; others are ignored."""

    event_type: str
    pane_id: _Count | _Name
    occurred_at_ms: _Count
    schema_version: Literal["ft.recorder.event.v1"] = "ft.recorder.event.v1"
    session_id: _Name | None = None
    event_id: _Name | None = None
    text: str | None = None
    is_gap: bool = False
    segment_id: _Count = 0
    ordinal: _Count | None = None
    sequence: _Count | None = None
    byte_offset: _Count | None = None
    control_marker_type: str | None = None

    def __post_init__(self) -> None:
        if self.event_type in _DIRECTIONS and self.text is None:
            raise ValueError("text is missing")
        if self.ordinal is None:
            self.ordinal = self.sequence


def read_events(lines: Iterator[tuple[Line, bytes | None]]) -> Iterator[Event | Notice]:
    """Every event of the log except resizes, in order, and a notice about each invalid line."""
    last_places: dict[tuple[str | None, str], tuple[int, int]] = {}
    for line, data in lines:
        try:
            fields = parse_line(data, _Fields)
            event = _event(line, fields)
        except RecordRefused as refusal:
            yield Notice(refusal.code, refusal.reason, line.number)
            continue
        if fields.ordinal is not None:
            pane, place = (event.session, event.pane), event.first.offset[:2]
            last = last_places.get(pane, (0, -1))
            if place <= last:
                reason = "segment {}, ordinal {} of pane {} is not after segment {}, ordinal {}"
                yield Notice(codes.EVENT_OUT_OF_ORDER, reason.format(*place, event.pane, *last), line.number)
                continue
            last_places[pane] = place
        if event.direction is not None or event.boundary is not None:
            yield event


def _event(line: Line, fields: _Fields) -> Event:
    """The event of a line; a resize has neither a direction nor a boundary. Raises RecordRefused."""
    kind = fields.event_type
    if kind not in KINDS:
        raise RecordRefused(codes.EVENT_KIND_UNKNOWN, f"{kind!r:.60} is not one of {', '.join(KINDS)}")
    ordinal = line.number - 1 if fields.ordinal is None else fields.ordinal
    offset = Offset(fields.segment_id, ordinal, line.start if fields.byte_offset is None else fields.byte_offset)
    boundary = None if fields.control_marker_type == "resize" else _BOUNDARIES.get(kind)
    return Event(
        event_id=fields.event_id or f"{offset.segment_id}:{offset.ordinal}",
        pane=str(fields.pane_id),
        session=fields.session_id,
        direction=_DIRECTIONS.get(kind),
        boundary="gap" if fields.is_gap else boundary,
        text=readable(fields.text or ""),
        started_ms=fields.occurred_at_ms,
        ended_ms=fields.occurred_at_ms,
        first=Place(offset, line),
        last=Place(offset, line),
    )
