"""What both kinds of source give: events of panes, in the order of their log, and what could not become one."""

from dataclasses import dataclass
from enum import StrEnum


class Direction(StrEnum):
    """Which way a text went; a glued chunk holds a short input and the output that answers it."""

    INGRESS = "ingress"
    EGRESS = "egress"
    MIXED = "mixed_glued"


class Marker(StrEnum):
    """What parts chunks and holds no text of its own."""

    GAP = "gap"
    CONTROL = "control"
    LIFECYCLE = "lifecycle"


@dataclass(frozen=True, slots=True)
class Offset:
    """A place in an append log, as the chunks' metadata name it."""

    segment_id: int
    ordinal: int
    byte_offset: int


@dataclass(frozen=True, slots=True)
class Event:
    """One event of one pane, its text already readable (`terminal.readable`), `""` where it has none.

    An event without a direction is a marker only; one without a pane concerns every pane (of its session, if it names
    one). `first` and `last` differ where a recording's frames were joined. Times are 0 in markers;
    `checksum` is the sha256 of the log from its first byte to `byte_end`.
    """

    event_id: str
    pane: str | None
    session: str | None
    direction: Direction | None
    marker: Marker | None
    text: str
    started_ms: int
    ended_ms: int
    first: Offset
    last: Offset
    line: int
    byte_start: int
    byte_end: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A line that is no event, or one of which something is to be told: its number, a code and the reason in words."""

    line: int
    code: str
    reason: str
    is_failure: bool = True
