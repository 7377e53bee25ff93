"""A chunk before it has an identity: its text as one stretch of what its pane's events contribute."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from chunksink.producers.recorder.events import Direction, Event

Marks = tuple[tuple[int, Event], ...]
"""Where the contributions of events begin, counted from the beginning of a text; the first may lie before it."""


class Boundary(StrEnum):
    """Why a chunk begins where it does. All but a limit are hard: nothing is repeated or glued across them.

    A change of direction is hard too, but a tiny input may be glued to the output after it.
    """

    START = "start"
    DIRECTION = "direction"
    GAP = "gap"
    CONTROL = "control"
    LIFECYCLE = "lifecycle"
    TIME = "time"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class Cut:
    """`text` is what the events from the first mark on contribute, a line each, from the text's place in it on.

    Its first `overlap_chars` repeat the end of the chunk before and the space between the two (`gap`); `events` are
    those of the rest, in order.
    """

    text: str
    overlap_chars: int
    gap: str
    direction: Direction
    events: tuple[Event, ...]
    marks: Marks
    started_ms: int
    ended_ms: int
    opened_by: Boundary
    section: str

    @property
    def own(self) -> str:
        return self.text[self.overlap_chars :]

    @property
    def char_start(self) -> int:
        """Where the text begins in the contributions from the first mark on."""
        return -self.marks[0][0]

    @property
    def char_of_own(self) -> int:
        """How far into the contribution of its first own event the own part begins: not 0 where a long one was cut."""
        return self.overlap_chars - next(place for place, event in reversed(self.marks) if event is self.events[0])


def marks_from(marks: Sequence[tuple[int, Event]], at: int) -> Marks:
    """The marks of the text that begins at `at` of the one they were made for."""
    first = max(number for number, (place, _) in enumerate(marks) if place <= at)
    return tuple((place - at, event) for place, event in marks[first:])
