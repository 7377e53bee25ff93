"""Recordings of asciinema, versions 2 and 3, as recorder events: input, output, markers, the end of the session.

A recording has a frame for every write to the terminal, often one a key, so frames are no events: consecutive ones of
one code are joined up to a line end, a pause of `hard_gap_ms`, a width of `max_window_ms` or `max_chunk_chars`
characters; never inside an escape sequence. Version 2 counts time from the beginning, version 3 from the frame before;
both are added up exactly. A recording that breaks its format is refused whole: nobody knows what else is wrong in it.
A code that the format does not know is no such break; the format asks to pass over it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from chunksink.producers.errors import EVENT_BACK_IN_TIME, EVENT_KIND_UNKNOWN
from chunksink.producers.recorder.events import Direction, Event, Marker, Offset, Remark
from chunksink.producers.recorder.lines import MAX_LINE_BYTES, Line
from chunksink.producers.recorder.log import parse_json
from chunksink.producers.recorder.policy import Policy
from chunksink.producers.terminal import is_unfinished, readable

PANE = "0"  # a recording is of one terminal
_TEXTS = {"i": Direction.INGRESS, "o": Direction.EGRESS}
_LINE_ENDS = {"i": ("\r", "\n"), "o": ("\n",)}
_MARKERS = {"m": Marker.CONTROL, "x": Marker.LIFECYCLE}
_SIZE = re.compile("[1-9][0-9]{0,5}x[1-9][0-9]{0,5}")
_COLOUR = re.compile("#[0-9a-fA-F]{6}")
_LONGEST_SECONDS = 10**10


class Malformed(Exception):
    """A recording breaks its format."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line says: where the clock stood at the beginning, if it says so, and the title."""

    version: int
    began_ms: int | None
    title: str | None


@dataclass(frozen=True, slots=True)
class Frame:
    """One write to the terminal, or what else the recording notes; `at` in seconds from its beginning."""

    at: Decimal
    code: str
    data: str
    ordinal: int
    line: Line


def read_header(line: Line | None) -> Header:
    said = None if line is None else _value(line)
    if not isinstance(said, dict):
        raise Malformed(1, "the first line is not a header object")
    version = said.get("version")
    if version not in (2, 3) or isinstance(version, bool | Decimal):
        raise Malformed(1, f"version is {version!r:.20}; versions 2 and 3 can be read")
    terminal = said if version == 2 else said.get("term")
    if not isinstance(terminal, dict):
        raise Malformed(1, "the header lacks term")
    for size in ("width", "height") if version == 2 else ("cols", "rows"):
        value = terminal.get(size)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise Malformed(1, f"{size} of the terminal is {value!r:.20}, not a whole number above 0")
    _check_theme(terminal.get("theme"))
    title, began = said.get("title"), said.get("timestamp")
    if title is not None and not isinstance(title, str):
        raise Malformed(1, f"title is {title!r:.40}, not a string")
    return Header(version, None if began is None else _milliseconds(_seconds(began, 1, "timestamp")), title)


def _check_theme(theme: Any) -> None:
    if theme in (None, {}):
        return
    if not isinstance(theme, dict):
        raise Malformed(1, "theme is not an object")
    for name in ("fg", "bg"):
        if not _COLOUR.fullmatch(str(theme.get(name))):
            raise Malformed(1, f"{name} of the theme is {theme.get(name)!r:.20}, not a colour like #a0b1c2")
    palette = str(theme.get("palette")).split(":")
    if len(palette) not in (8, 16) or not all(_COLOUR.fullmatch(colour) for colour in palette):
        raise Malformed(1, "palette of the theme is not 8 or 16 colours like #a0b1c2, parted by colons")


def read_frames(header: Header, lines: Iterator[Line]) -> Iterator[Frame]:
    """Every frame after the header, of known codes and others. Raises Malformed."""
    at = Decimal(0)
    ordinal = 0
    for line in lines:
        if line.data is not None and not line.data.strip():
            continue
        if header.version == 3 and line.data is not None and line.data.startswith(b"#"):
            continue
        said = _value(line)
        if not isinstance(said, list) or len(said) != 3:
            raise Malformed(line.number, "is not a list of time, code and data")
        seconds = _seconds(said[0], line.number, "time")
        at = at + seconds if header.version == 3 else seconds
        code, data = said[1], said[2]
        if not isinstance(code, str) or not code:
            raise Malformed(line.number, f"the code is {code!r:.20}, not a string")
        if (code in _TEXTS or code in _MARKERS or code == "r") and not isinstance(data, str):
            raise Malformed(line.number, f"the data of code {code} is {data!r:.20}, not a string")
        if code == "r" and not _SIZE.fullmatch(data):
            raise Malformed(line.number, f"the size is {data!r:.20}, not like 80x24")
        yield Frame(at, code, data if isinstance(data, str) else "", ordinal, line)
        ordinal += 1


def _value(line: Line) -> Any:
    if line.data is None:
        raise Malformed(line.number, f"is longer than {MAX_LINE_BYTES // 2**20} MiB: {line.end - line.start} bytes")
    try:
        return parse_json(line.data.decode(), parse_float=Decimal)
    except UnicodeDecodeError as error:
        byte = line.data[error.start]
        raise Malformed(line.number, f"is not UTF-8: byte 0x{byte:02x} at offset {error.start} of the line") from error
    except (ValueError, RecursionError) as error:
        raise Malformed(line.number, f"is not JSON: {error}") from error


def _seconds(value: Any, line: int, what: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not 0 <= value <= _LONGEST_SECONDS:
        shown = str(value) if isinstance(value, Decimal) else repr(value)
        raise Malformed(line, f"the {what} is {shown:.40}, not a number of seconds from 0 on")
    return Decimal(value)


def _milliseconds(seconds: Decimal) -> int:
    return int(seconds * 1000)


def read_events(header: Header, frames: Iterator[Frame], policy: Policy) -> Iterator[Event | Remark]:
    """The recording's events in order, and a word on each code that is not known."""
    began = header.began_ms or 0
    joined: _Joined | None = None
    last = Decimal()
    for frame in frames:
        if frame.at < last:
            reason = f"is {last - frame.at:.3f} s before the frame above it"
            yield Remark(frame.line.number, EVENT_BACK_IN_TIME, reason, is_failure=False)
        last = frame.at
        if frame.code == "r":
            continue  # a resize parts nothing that a reader would part
        if frame.code in _TEXTS:
            if joined is not None and not joined.takes(frame, policy):
                yield joined.event(began)
                joined = None
            joined = joined or _Joined(frame)
            joined.add(frame)
            if joined.is_complete(policy):
                yield joined.event(began)
                joined = None
            continue
        if frame.code not in _MARKERS:
            reason = f"code {frame.code!r:.20} is not one of i, o, m, r, x; its data is not read"
            yield Remark(frame.line.number, EVENT_KIND_UNKNOWN, reason, is_failure=False)
            continue
        if joined is not None:
            yield joined.event(began)
            joined = None
        label = frame.data if frame.code == "m" else ""
        yield _event(frame, frame, began, None, _MARKERS[frame.code], readable(label))
    if joined is not None:
        yield joined.event(began)


@dataclass(slots=True)
class _Joined:
    """Consecutive frames of one code that become one event."""

    first: Frame
    frames: list[Frame] = field(default_factory=list)
    size: int = 0

    def takes(self, frame: Frame, policy: Policy) -> bool:
        return (
            frame.code == self.first.code
            and abs(frame.at - self.frames[-1].at) * 1000 <= policy.hard_gap_ms
            and abs(frame.at - self.first.at) * 1000 <= policy.max_window_ms
        )

    def add(self, frame: Frame) -> None:
        self.frames.append(frame)
        self.size += len(frame.data)

    def is_complete(self, policy: Policy) -> bool:
        last = self.frames[-1].data
        if last.endswith(_LINE_ENDS[self.first.code]):
            return True
        return self.size >= policy.max_chunk_chars and not is_unfinished(last)

    def event(self, began: int) -> Event:
        text = readable("".join(frame.data for frame in self.frames))
        return _event(self.first, self.frames[-1], began, _TEXTS[self.first.code], None, text)


def _event(
    first: Frame, last: Frame, began: int, direction: Direction | None, marker: Marker | None, text: str
) -> Event:
    times = (began + _milliseconds(first.at), began + _milliseconds(last.at)) if direction else (0, 0)
    return Event(
        event_id=f"0:{first.ordinal}",
        pane=PANE,
        session=None,
        direction=direction,
        marker=marker,
        text=text,
        started_ms=min(times),
        ended_ms=max(times),
        first=Offset(0, first.ordinal, first.line.start),
        last=Offset(0, last.ordinal, last.line.start),
        line=first.line.number,
        byte_start=first.line.start,
        byte_end=last.line.end,
        checksum=last.line.checksum,
    )
