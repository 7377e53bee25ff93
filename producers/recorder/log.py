"""Recorder events from a log: one JSON object a line, in the order in which the recorder appended them.

Read plainly and tolerantly: unknown fields are passed over, ids may be numbers. The fields stand in `docs/seams.md`.
A line that is no event is told with its code, and the lines after it are read on. An event whose place is not after
the last one of its pane is left out too: an append log has no such thing, so nobody can say where its text belongs.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chunksink.producers.errors import (
    EVENT_BACK_IN_TIME,
    EVENT_KIND_UNKNOWN,
    EVENT_MALFORMED,
    EVENT_NOT_UTF8,
    EVENT_OUT_OF_ORDER,
    EVENT_TOO_LONG,
    EVENT_WITHOUT_TIME,
    RecordRefused,
)
from chunksink.producers.recorder.events import Direction, Event, Marker, Offset, Remark
from chunksink.producers.recorder.lines import MAX_LINE_BYTES, Line
from chunksink.producers.recorder.policy import EVENT_VERSION
from chunksink.producers.terminal import readable

EVENT_KINDS: dict[str, Direction | Marker] = {
    "ingress_text": Direction.INGRESS,
    "ingress": Direction.INGRESS,
    "egress_output": Direction.EGRESS,
    "egress": Direction.EGRESS,
    "control_marker": Marker.CONTROL,
    "control": Marker.CONTROL,
    "lifecycle_marker": Marker.LIFECYCLE,
    "lifecycle": Marker.LIFECYCLE,
    "gap": Marker.GAP,
}
_LARGEST = 2**53 - 1  # what every reader of JSON takes for the same number
_LONGEST_ID = 256


@dataclass(frozen=True, slots=True)
class _Decoded:
    """An event, or None where the line says nothing that matters here; and its place where it names one."""

    event: Event | None
    place: tuple[int, int] | None


def read_events(lines: Iterator[Line]) -> Iterator[Event | Remark]:
    """Every event of the log in its order, and a word on every line that is none, or is one whose clock went back."""
    last: dict[tuple[str | None, str], tuple[int, int]] = {}
    moments: dict[tuple[str | None, str], int] = {}
    for line in lines:
        if line.data is not None and not line.data.strip():
            continue
        try:
            decoded = _decode(line)
            _check_order(last, decoded)
        except RecordRefused as error:
            yield Remark(line.number, error.code, error.reason)
            if (boundary := _boundary_of(line)) is not None:
                yield boundary
        else:
            if (event := decoded.event) is None:
                continue
            yield event
            if event.pane is not None and event.direction is not None:
                before = moments.get((event.session, event.pane), 0)
                moments[event.session, event.pane] = event.started_ms
                if event.started_ms < before:
                    reason = f"is {before - event.started_ms} ms before the last event of pane {event.pane}"
                    yield Remark(line.number, EVENT_BACK_IN_TIME, reason, is_failure=False)


def _check_order(last: dict[tuple[str | None, str], tuple[int, int]], decoded: _Decoded) -> None:
    event, place = decoded.event, decoded.place
    if event is None or event.pane is None:
        return
    key = (event.session, event.pane)
    before = last.get(key)
    if place is None:
        if before is not None and event.direction is not None:
            raise RecordRefused(EVENT_MALFORMED, f"lacks ordinal, which events of pane {event.pane} before it have")
        return
    if before is not None and place <= before:
        raise RecordRefused(
            EVENT_OUT_OF_ORDER,
            f"segment {place[0]}, ordinal {place[1]} of pane {event.pane} comes after "
            f"segment {before[0]}, ordinal {before[1]}",
        )
    last[key] = place


def _decode(line: Line) -> _Decoded:
    said = _parse(line)
    version = said.get("schema_version")
    if version is not None and version != EVENT_VERSION:
        raise RecordRefused(EVENT_MALFORMED, f"schema_version is {version!r:.60}, not {EVENT_VERSION}")
    direction, marker = _kind(said)
    if _is_resize(said, marker):
        return _Decoded(None, None)  # parts nothing that a reader would part
    segment = _count(said, "segment_id") or 0
    ordinal = _count(said, "ordinal")
    if ordinal is None:
        ordinal = _count(said, "sequence")
    place = None if ordinal is None else (segment, ordinal)
    offset = _count(said, "byte_offset")
    where = Offset(
        segment,
        line.number - 1 if ordinal is None else ordinal,
        line.start if offset is None else offset,
    )
    pane = _name(said, "pane_id")
    if direction is not None and pane is None:
        raise RecordRefused(EVENT_MALFORMED, "lacks pane_id")
    event = _event(
        line,
        where,
        direction,
        marker,
        pane=pane,
        session=_name(said, "session_id"),
        name=_name(said, "event_id"),
        text=readable(_text(said, needed=direction is not None and marker is None)),
        moment=_moment(said) if direction is not None else 0,
    )
    return _Decoded(event, place)


def _is_resize(said: dict[str, Any], marker: Marker | None) -> bool:
    """Of the window, and nothing is missing there."""
    return marker is Marker.CONTROL and said.get("control_marker_type") == "resize" and said.get("is_gap") is not True


def _boundary_of(line: Line) -> Event | None:
    """What a line that was refused says all the same: that its pane is parted here, or all are if it names none that
    can be read. Its label is not read: what stands below goes on under the one before."""
    try:
        said = _parse(line)
    except RecordRefused:
        return None
    names = (said.get(field) for field in ("event_type", "direction"))
    kinds = (EVENT_KINDS.get(name) for name in names if isinstance(name, str))
    marker = next(
        (kind for kind in kinds if isinstance(kind, Marker)), Marker.GAP if said.get("is_gap") is True else None
    )
    if marker is None or _is_resize(said, marker):
        return None
    pane, session = (_name_or_none(said, field) for field in ("pane_id", "session_id"))
    if session is None and said.get("session_id") is not None:
        pane = None  # nobody knows which of several it is
    return _event(line, Offset(0, line.number - 1, line.start), None, marker, pane=pane, session=session)


def _event(
    line: Line,
    where: Offset,
    direction: Direction | None,
    marker: Marker | None,
    *,
    pane: str | None,
    session: str | None,
    name: str | None = None,
    text: str = "",
    moment: int = 0,
) -> Event:
    return Event(
        event_id=name or f"{where.segment_id}:{where.ordinal}",
        pane=pane,
        session=session,
        direction=direction,
        marker=marker,
        text=text,
        started_ms=moment,
        ended_ms=moment,
        first=where,
        last=where,
        line=line.number,
        byte_start=line.start,
        byte_end=line.end,
        checksum=line.checksum,
    )


def _parse(line: Line) -> dict[str, Any]:
    if line.data is None:
        raise RecordRefused(
            EVENT_TOO_LONG, f"is longer than {MAX_LINE_BYTES // 2**20} MiB: {line.end - line.start} bytes"
        )
    try:
        said = parse_json(line.data.decode())
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8: byte 0x{line.data[error.start]:02x} at offset {error.start} of the line"
        raise RecordRefused(EVENT_NOT_UTF8, reason) from error
    except (ValueError, RecursionError) as error:
        raise RecordRefused(EVENT_MALFORMED, f"is not JSON: {error}") from error
    if not isinstance(said, dict):
        raise RecordRefused(EVENT_MALFORMED, f"is not a JSON object but {_short(said)}")
    return said


def parse_json(text: str, **options: Any) -> Any:
    """A JSON value as RFC 8259 has it. Lone surrogates pass: terminals send them, and `readable` drops them."""
    return json.loads(text, parse_constant=_refuse_constant, **options)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _kind(said: dict[str, Any]) -> tuple[Direction | None, Marker | None]:
    """The way a text went, and what parts it from what was before."""
    names = [(field, said[field]) for field in ("event_type", "direction") if said.get(field) is not None]
    if not names:
        raise RecordRefused(EVENT_MALFORMED, "lacks event_type and direction")
    direction: Direction | None = None
    marker: Marker | None = None
    for field, name in names:
        kind = EVENT_KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise RecordRefused(EVENT_KIND_UNKNOWN, f"{field} is {_short(name)}; known are {', '.join(EVENT_KINDS)}")
        if isinstance(kind, Marker):
            marker = kind
        elif direction in (None, kind):
            direction = kind
        else:
            raise RecordRefused(EVENT_MALFORMED, "event_type and direction contradict each other")
    is_gap = said.get("is_gap")
    if is_gap is not None and not isinstance(is_gap, bool):
        raise RecordRefused(EVENT_MALFORMED, f"is_gap is {_short(is_gap)}, not true or false")
    if marker in (Marker.CONTROL, Marker.LIFECYCLE):
        return None, marker
    if marker is Marker.GAP and direction is None and said.get("text"):
        direction = Direction.EGRESS  # a gap is one of the output
    return direction, Marker.GAP if is_gap else marker


def _text(said: dict[str, Any], *, needed: bool) -> str:
    text = said.get("text")
    if text is None and not needed:
        return ""
    if not isinstance(text, str):
        raise RecordRefused(EVENT_MALFORMED, "lacks text" if text is None else f"text is {_short(text)}, not a string")
    return text


def _moment(said: dict[str, Any]) -> int:
    if said.get("occurred_at_ms") is None:
        raise RecordRefused(EVENT_WITHOUT_TIME, "lacks occurred_at_ms, so no window can hold it")
    return _count(said, "occurred_at_ms") or 0


def _count(said: dict[str, Any], field: str) -> int | None:
    value = said.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise RecordRefused(EVENT_MALFORMED, f"{field} is {_short(value)}, not a whole number from 0 to 2^53-1")
    return value


def _name(said: dict[str, Any], field: str) -> str | None:
    value = said.get(field)
    if value is None:
        return None
    name = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(name, str) or not name or len(name) > _LONGEST_ID or not name.isprintable():
        raise RecordRefused(
            EVENT_MALFORMED, f"{field} is {_short(value)}, not a number or 1 to {_LONGEST_ID} printable characters"
        )
    return name


def _name_or_none(said: dict[str, Any], field: str) -> str | None:
    try:
        return _name(said, field)
    except RecordRefused:
        return None


def _short(value: Any) -> str:
    """A value as messages show it."""
    return f"{value!r:.60}".encode("utf-8", "backslashreplace").decode()
