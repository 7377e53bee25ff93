"""One pane's events become chunks: boundaries, the cap, overlap. What the policy leaves open is decided here.

The cap counts everything: marker, line breaks, overlap. It is asked before an event is added; an event that does not
fit begins a chunk after the end of the one before. There it may have fewer repeated characters than `overlap_chars`,
so that it need not be cut. An event that is longer than a whole chunk is cut: at a line end in the second half of
the room, else between two characters; each part repeats the end of the part before; the marker stands once, where the
event begins. Its last part goes on with the events that follow. Repeated text never begins inside a character
or with white space, so it can be a little shorter. Events without readable text part directions, add nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from chunksink.producers.recorder.cuts import Boundary, Cut, marks_from
from chunksink.producers.recorder.ends import contribution, find_end, find_start, skip_space
from chunksink.producers.recorder.events import Direction, Event
from chunksink.producers.recorder.glue import Glue
from chunksink.producers.recorder.policy import Policy


class PaneCutter:
    """Takes the events of one pane of one session in their order, gives its chunks in order."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._glue = Glue(policy)
        self._draft: _Draft | None = None
        self._opening: Boundary | None = Boundary.START
        self._before: Event | None = None
        self._section = ""
        self._heads_nothing: int | None = None
        self.empty_labels = 0
        """Markers of this pane below whose label nothing stands, so that no chunk has it."""
        self.first_empty_label = 0
        """The line of the first."""
        self.shown_label = 0
        """The line of the marker whose label heads the last chunk that was begun."""
        self._label = 0

    def take(self, event: Event) -> Iterator[Cut]:
        boundary = self._boundary(event)
        if boundary is not None:
            yield from self._break(boundary)
        if event.direction is None:
            if event.text:
                self._end_label()
                # Of a marker for all panes another one may show the label.
                self._heads_nothing = event.line if event.pane is not None else None
                self._section, self._label = event.text, event.line
            return
        self._before = event
        if event.text:
            yield from self._add(event, contribution(event.direction, event.text))

    def finish(self) -> Iterator[Cut]:
        yield from self._break(Boundary.START)
        yield from self._glue.finish()
        self._end_label()

    def _end_label(self) -> None:
        if self._heads_nothing is not None:
            self.empty_labels += 1
            self.first_empty_label = self.first_empty_label or self._heads_nothing
            self._heads_nothing = None

    def _boundary(self, event: Event) -> Boundary | None:
        """The hard boundary that lies before this event."""
        if event.marker is not None:
            return Boundary(event.marker.value)
        before = self._before
        if before is None:
            return None
        if abs(event.started_ms - before.ended_ms) > self._policy.hard_gap_ms:
            return Boundary.TIME
        return Boundary.DIRECTION if event.direction is not before.direction else None

    def _break(self, boundary: Boundary) -> Iterator[Cut]:
        # Where several boundaries follow each other, a change of direction must not hide what forbids glue.
        if self._opening in (None, Boundary.DIRECTION):
            self._opening = boundary
        if self._draft is not None:
            cut = self._draft.close()
            self._draft = None
            yield from self._glue.add(cut, is_last=True)

    def _add(self, event: Event, whole: str) -> Iterator[Cut]:
        draft = self._draft
        if draft is not None and self._fits(draft, event, whole):
            draft.add(event, "\n", whole)
            return
        previous: Cut | None = None
        if draft is not None:
            previous = draft.close()
            yield from self._glue.add(previous, is_last=False)
        at, gap = 0, "\n"
        while True:
            draft = self._begin(event, len(whole), at, gap, previous)
            room = self._policy.max_chunk_chars - len(draft.text)
            if len(whole) - at <= room:
                draft.text += whole[at:]
                self._draft = draft
                return
            part = whole[at : find_end(whole, at, at + room)].rstrip()
            draft.text += part
            previous = draft.close()
            yield from self._glue.add(previous, is_last=False)
            end = at + len(part)
            at = skip_space(whole, end)
            gap = whole[end:at]

    def _fits(self, draft: "_Draft", event: Event, whole: str) -> bool:
        started = min(draft.started_ms, event.started_ms)
        ended = max(draft.ended_ms, event.ended_ms)
        return (
            len(draft.text) + 1 + len(whole) <= self._policy.max_chunk_chars
            and len(draft.events) < self._policy.max_chunk_events
            and ended - started <= self._policy.max_window_ms
        )

    def _begin(self, event: Event, length: int, at: int, gap: str, previous: Cut | None) -> "_Draft":
        """A chunk that goes on at `at` of an event's contribution of this length, after the end of the one before."""
        draft = _Draft(event.direction or Direction.EGRESS, self._section)
        self._heads_nothing, self.shown_label = None, self._label
        if previous is None:
            draft.opened_by = self._opening or Boundary.START
            self._opening = None
        else:
            draft.gap = gap
            self._repeat(draft, previous, gap, length - at)
        if at == 0 or not draft.text:
            draft.marks.append((len(draft.text) - at, event))
        draft.take(event)
        return draft

    def _repeat(self, draft: "_Draft", previous: Cut, gap: str, rest: int) -> None:
        cap, wanted = self._policy.max_chunk_chars, self._policy.overlap_chars
        if len(gap) > wanted:
            return
        room = wanted if rest > cap else min(wanted, cap - len(gap) - rest)
        start = find_start(previous.text, max(0, len(previous.text) - room)) if room > 0 else len(previous.text)
        if start < len(previous.text):
            draft.text = previous.text[start:] + gap
            draft.overlap_chars = len(draft.text)
            draft.marks.extend(marks_from(previous.marks, start))


@dataclass(slots=True)
class _Draft:
    """A chunk that is being filled."""

    direction: Direction
    section: str
    text: str = ""
    overlap_chars: int = 0
    gap: str = ""
    opened_by: Boundary = Boundary.LIMIT
    events: list[Event] = field(default_factory=list)
    marks: list[tuple[int, Event]] = field(default_factory=list)
    started_ms: int = 0
    ended_ms: int = 0

    def add(self, event: Event, gap: str, whole: str) -> None:
        self.text += gap
        self.marks.append((len(self.text), event))
        self.text += whole
        self.take(event)

    def take(self, event: Event) -> None:
        self.started_ms = min(self.started_ms, event.started_ms) if self.events else event.started_ms
        self.ended_ms = max(self.ended_ms, event.ended_ms) if self.events else event.ended_ms
        self.events.append(event)

    def close(self) -> Cut:
        return Cut(
            self.text,
            self.overlap_chars,
            self.gap,
            self.direction,
            tuple(self.events),
            tuple(self.marks),
            self.started_ms,
            self.ended_ms,
            self.opened_by,
            self.section,
        )
