"""Cuts one pane's events into chunks by the policy `ft.recorder.chunking.v1` (docs/formats/recorder.md)."""

from dataclasses import dataclass, replace
from typing import Literal

from chunksink.ingest.formats.recorder.events import Boundary, Direction, Event

POLICY_VERSION = "ft.recorder.chunking.v1"
RULES_VERSION = "3"
"""Increase it with any change that moves a boundary or changes a text."""

MAX_CHUNK_CHARS = 1800
MAX_CHUNK_EVENTS = 48
MAX_WINDOW_MS = 120_000
HARD_GAP_MS = 30_000
MIN_CHUNK_CHARS = 80
MERGE_WINDOW_MS = 8_000
OVERLAP_CHARS = 120
CHUNKS_PER_PART = 64
"""The most chunks of one document (not part of the policy). A growing log changes only a pane's last document."""

_LIMITS = (
    MAX_CHUNK_CHARS,
    MAX_CHUNK_EVENTS,
    MAX_WINDOW_MS,
    HARD_GAP_MS,
    MIN_CHUNK_CHARS,
    MERGE_WINDOW_MS,
    OVERLAP_CHARS,
)
CANONICALIZER = (
    "chunksink-recorder",
    f"{POLICY_VERSION}+{RULES_VERSION}:{'/'.join(map(str, _LIMITS))}:part-{CHUNKS_PER_PART}",
)
"""Name and version of this chunking, with all its parameters."""

Contributions = tuple[tuple[int, Event], ...]
"""Events, each with the offset where its contribution begins in a text. The first offset is negative if the text
begins within a contribution."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A chunk before it has an identity. `text` is cut from the contributions of the events in `marks`, joined by \\n.

    Its first `overlap_chars` repeat the end of the previous chunk and `gap`, the white space between the two.
    """

    text: str
    direction: Direction | Literal["mixed_glued"]
    opened_by: Boundary
    section: str
    marks: Contributions
    overlap_chars: int
    gap: str

    @property
    def own(self) -> str:
        """The text without the overlap."""
        return self.text[self.overlap_chars :]

    @property
    def own_marks(self) -> Contributions:
        """The marks of the events that contribute to the own text, counted from its beginning."""
        return _marks_from(self.marks, self.overlap_chars)

    @property
    def window(self) -> tuple[int, int]:
        """First and last time of the own events, in milliseconds."""
        events = [event for _, event in self.own_marks]
        return min(event.started_ms for event in events), max(event.ended_ms for event in events)


class PaneChunker:
    """Takes the events of one pane of one session, and returns their chunks, both in order."""

    def __init__(self) -> None:
        self._open: Cut | None = None
        self._closed: list[Cut] = []  # the next chunk may still be glued to the last one
        self._boundary: Boundary = "start"  # before the next chunk
        self._last: Event | None = None
        self._section = ""

    def take(self, event: Event) -> list[Cut]:
        """The chunks that are finished now."""
        boundary = self._boundary_before(event)
        if boundary is not None:
            self._break(boundary)
        if event.direction is None:
            self._section = event.text or self._section
        else:
            self._last = event
            if event.text:
                self._add(event, event.direction)
        finished, self._closed = self._closed[:-1], self._closed[-1:]
        return finished

    def finish(self) -> list[Cut]:
        self._break("start")
        return self._closed

    def _boundary_before(self, event: Event) -> Boundary | None:
        if event.boundary is not None or self._last is None:
            return event.boundary
        if abs(event.started_ms - self._last.ended_ms) > HARD_GAP_MS:
            return "time"
        return "direction" if event.direction != self._last.direction else None

    def _break(self, boundary: Boundary) -> None:
        # Chunks may be joined across `limit` and `direction`, but not across other boundaries. If there are several
        # boundaries before the next chunk, the first that prevents joining counts.
        if self._boundary in ("limit", "direction"):
            self._boundary = boundary
        if self._open is not None:
            self._close(self._open, is_last=True)
            self._open = None

    def _add(self, event: Event, direction: Direction) -> None:
        whole, start, gap = event.contribution, 0, "\n"
        previous = self._open
        if previous is not None:
            marks = (*previous.marks, (len(previous.text) + 1, event))
            self._open = replace(previous, text=f"{previous.text}\n{whole}", marks=marks)
            if _is_within_limits(self._open):
                return
            self._close(previous, is_last=False)
        while True:
            cut = self._begin(event, direction, start, gap, previous)
            room = MAX_CHUNK_CHARS - len(cut.text)
            if len(whole) - start <= room:
                self._open = replace(cut, text=cut.text + whole[start:])
                return
            line_end = whole.rfind("\n", start + room // 2, start + room + 1)
            part = whole[start : line_end if line_end > start else start + room].rstrip()
            previous = replace(cut, text=cut.text + part)
            self._close(previous, is_last=False)
            end = start = start + len(part)
            while whole[start].isspace():
                start += 1
            gap = whole[end:start]

    def _begin(self, event: Event, direction: Direction, start: int, gap: str, previous: Cut | None) -> Cut:
        """A chunk with only its overlap so far; its own text begins at `start` of the event's contribution."""
        text, marks = _repeated(previous, gap, len(event.contribution) - start)
        if start == 0 or not text:
            marks = (*marks, (len(text) - start, event))
        opened_by, self._boundary = self._boundary, "limit"
        return Cut(text, direction, opened_by, self._section, marks, len(text), gap)

    def _close(self, cut: Cut, *, is_last: bool) -> None:
        """`is_last`: a hard boundary or the end follows."""
        if self._closed and (glued := _glued(self._closed[-1], cut, is_last=is_last)):
            self._closed[-1] = glued
        else:
            self._closed.append(cut)


def _is_within_limits(cut: Cut) -> bool:
    started_ms, ended_ms = cut.window
    return (
        len(cut.text) <= MAX_CHUNK_CHARS
        and len(cut.own_marks) <= MAX_CHUNK_EVENTS
        and ended_ms - started_ms <= MAX_WINDOW_MS
    )


def _repeated(previous: Cut | None, gap: str, rest: int) -> tuple[str, Contributions]:
    """The overlap: end of the previous chunk and the gap, shortened to keep the event's `rest` in one chunk."""
    room = OVERLAP_CHARS
    if previous is None or len(gap) > room:
        return "", ()
    if rest <= MAX_CHUNK_CHARS:
        room = max(0, min(room, MAX_CHUNK_CHARS - len(gap) - rest))
    overlap = previous.text[max(0, len(previous.text) - room) :].lstrip()
    if not overlap:
        return "", ()
    return overlap + gap, _marks_from(previous.marks, len(previous.text) - len(overlap))


def _glued(before: Cut, cut: Cut, *, is_last: bool) -> Cut | None:
    """Joins a tiny last chunk to the one before it if only a limit separates them, or a tiny input to the output after
    it. None if that is not allowed."""
    if is_last and cut.opened_by == "limit" and len(cut.own) < MIN_CHUNK_CHARS:
        wait = cut.window[1] - before.window[1]
    elif (
        cut.opened_by == "direction"
        and (before.direction, cut.direction) == ("ingress", "egress")
        and len(before.own) < MIN_CHUNK_CHARS
    ):
        wait = abs(cut.window[0] - before.window[1])
        before = replace(before, text=before.own, direction="mixed_glued", marks=before.own_marks, overlap_chars=0)
    else:
        return None
    start = len(before.text) + len(cut.gap)
    added = ((start + place, event) for place, event in cut.own_marks if place >= 0)
    glued = replace(before, text=before.text + cut.gap + cut.own, marks=(*before.marks, *added))
    started_ms, ended_ms = glued.window
    is_narrow = ended_ms - started_ms <= MAX_WINDOW_MS + MERGE_WINDOW_MS
    is_allowed = is_narrow and wait <= MERGE_WINDOW_MS and len(glued.text) <= MAX_CHUNK_CHARS
    return glued if is_allowed else None


def _marks_from(marks: Contributions, start: int) -> Contributions:
    """The marks of the text from `start` on, counted from there."""
    first = max(index for index, (place, _) in enumerate(marks) if place <= start)
    return tuple((place - start, event) for place, event in marks[first:])
