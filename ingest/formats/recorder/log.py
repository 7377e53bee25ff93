"""Recorder events from a log: one JSON object a line, in the order in which the recorder appended them."""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from chunksink.ingest import codes
from chunksink.ingest.errors import RecordRefused
from chunksink.ingest.formats.recorder.events import Boundary, Direction, Event, Line, Offset, Place, parse_line
from chunksink.ingest.model import Notice
from chunksink.ingest.terminal import readable

_DIRECTIONS: dict[str, Direction] = {"ingress_text": "ingress", "egress_output": "egress"}
_BOUNDARIES: dict[str, Boundary] = {"control_marker": "control", "lifecycle_marker": "lifecycle"}
KINDS = (*_DIRECTIONS, *_BOUNDARIES)

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
# Without control characters and surrogates.
_Name = Annotated[str, msgspec.Meta(pattern=r"\A[\x20-\ud7ff\ue000-\U0010ffff]{1,256}\Z")]


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
    """Every event of the log but resizes, in its order, and a notice of each line that is none."""
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
                reason = "segment {}, ordinal {} of pane {} comes after segment {}, ordinal {}"
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
