"""Reads asciinema recordings, versions 2 and 3, as events of pane 0: input, output, markers, end of session.

A recording has a frame for every write to the terminal, often one per key, so consecutive frames are joined.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, BinaryIO, Literal

import msgspec

from chunksink.ingest import codes
from chunksink.ingest.errors import RecordRefused, SourceFailed
from chunksink.ingest.formats.recorder import chunker
from chunksink.ingest.formats.recorder.events import Boundary, Direction, Event, Fields, Line, Offset, Place, parse_line
from chunksink.ingest.model import Notice
from chunksink.ingest.terminal import is_unfinished, readable

_DIRECTIONS: dict[str, Direction] = {"i": "ingress", "o": "egress"}
_BOUNDARIES: dict[str, Boundary] = {"m": "control", "x": "lifecycle"}
_RESIZE = "r"
_CODES = (*_DIRECTIONS, *_BOUNDARIES, _RESIZE)
_LINE_ENDS = {"ingress": ("\r", "\n"), "egress": ("\n",)}
_MAX_HEADER_BYTES = 2**20

_Timed = tuple[int, Event]
"""A frame's time in microseconds, and its event. Joining compares times only with each other, never with the
beginning of the recording, so `replay` may begin anywhere."""


class Header(msgspec.Struct, frozen=True):
    """The first line; other fields are ignored."""

    version: Literal[2, 3]
    title: str | None = None
    timestamp: Annotated[int, msgspec.Meta(ge=0, le=10**10)] | None = None

    @property
    def began_ms(self) -> int:
        return (self.timestamp or 0) * 1000


class _Frame(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    seconds: Annotated[float, msgspec.Meta(ge=0, le=10**9)]
    code: str
    data: str


def read_header(file: BinaryIO) -> Header:
    """Raises SourceFailed."""
    file.seek(0)
    return _parse(1, file.readline(_MAX_HEADER_BYTES), Header)


def read_events(header: Header, lines: Iterator[tuple[Line, bytes | None]]) -> Iterator[Event | Notice]:
    """The events of a recording, and a notice about each frame with an unknown code. Raises SourceFailed."""
    run: list[_Timed] = []
    for at, frame in _frames(header, lines):
        if isinstance(frame, Notice):
            yield frame
        elif run and not _continues(run, at, frame):
            yield _joined(run)
            run = [(at, frame)]
        else:
            run.append((at, frame))
    if run:
        yield _joined(run)


def _frames(header: Header, lines: Iterator[tuple[Line, bytes | None]]) -> Iterator[tuple[int, Event | Notice]]:
    """Every frame but resizes, with its time: an event, or a notice about an unknown code."""
    at = ordinal = 0
    for line, data in lines:
        if line.start == 0 or (data or b"").startswith(b"#"):
            continue
        frame = _parse(line.number, data, _Frame)
        at = (at if header.version == 3 else 0) + round(frame.seconds * 1_000_000)
        if frame.code not in _CODES:
            reason = f"code {frame.code!r:.20} is not one of {', '.join(_CODES)}; its data is not read"
            yield at, Notice(codes.EVENT_KIND_UNKNOWN, reason, line.number, is_failure=False)
        elif frame.code != _RESIZE:
            place = Place(Offset(0, ordinal, line.start), line)
            time_ms = header.began_ms + at // 1000
            event = Event(
                event_id=f"0:{ordinal}",
                pane="0",
                session=None,
                direction=_DIRECTIONS.get(frame.code),
                boundary=_BOUNDARIES.get(frame.code),
                text="" if frame.code == "x" else frame.data,
                started_ms=time_ms,
                ended_ms=time_ms,
                first=place,
                last=place,
            )
            yield at, event
        ordinal += 1


def _continues(run: Sequence[_Timed], at: int, frame: Event) -> bool:
    (began, first), (before, last) = run[0], run[-1]
    return (
        first.direction is not None
        and first.direction == frame.direction
        and not last.text.endswith(_LINE_ENDS[first.direction])
        and abs(at - before) <= chunker.HARD_GAP_MS * 1000
        and abs(at - began) <= chunker.MAX_WINDOW_MS * 1000
        and (sum(len(sent.text) for _, sent in run) < chunker.MAX_CHUNK_CHARS or is_unfinished(last.text))
    )


def _joined(run: Sequence[_Timed]) -> Event:
    first, last = run[0][1], run[-1][1]
    text = readable("".join(frame.text for _, frame in run))
    return replace(first, text=text, ended_ms=last.ended_ms, last=last.last)


def _parse(number: int, data: bytes | None, fields: type[Fields]) -> Fields:
    try:
        return parse_line(data, fields)
    except RecordRefused as refusal:
        raise SourceFailed(codes.RECORDING_MALFORMED, f"line {number}: {refusal.reason}") from refusal
