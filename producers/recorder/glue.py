"""The pass after the cutting: tiny neighbours become one chunk where the policy allows it.

Two rules. A tiny fragment at the end of a stretch is attached to the chunk before it, which only a limit parts from it.
A tiny input is joined with the output that follows it within `merge_window_ms`, when nothing but the change of
direction parts them. What a fragment repeated of its neighbour is not repeated again. No text ever passes the cap.
"""

from collections.abc import Iterator
from dataclasses import replace

from chunksink.producers.recorder.cuts import Boundary, Cut, marks_from
from chunksink.producers.recorder.events import Direction
from chunksink.producers.recorder.policy import Policy


class Glue:
    """Takes one pane's chunks in order, gives them back with one chunk of delay."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._held: Cut | None = None

    def add(self, cut: Cut, *, is_last: bool) -> Iterator[Cut]:
        """`is_last` says that a hard boundary, or the end of the log, follows the chunk."""
        held = self._held
        if held is None:
            self._held = cut
        elif is_last and self._may_attach(held, cut):
            self._held = _merge(held, cut, cut.gap, held.direction)
        elif self._may_join(held, cut):
            self._held = _merge(_without_overlap(held), cut, "\n", Direction.MIXED)
        else:
            self._held = cut
            yield held

    def finish(self) -> Iterator[Cut]:
        if self._held is not None:
            yield self._held
        self._held = None

    def _may_attach(self, held: Cut, cut: Cut) -> bool:
        return (
            cut.opened_by is Boundary.LIMIT
            and len(cut.own) < self._policy.min_chunk_chars
            and cut.ended_ms - held.ended_ms <= self._policy.merge_window_ms
            and self._fits(held, cut, len(held.text) + len(cut.gap) + len(cut.own))
        )

    def _may_join(self, held: Cut, cut: Cut) -> bool:
        return (
            (held.direction, cut.direction) == (Direction.INGRESS, Direction.EGRESS)
            and cut.opened_by is Boundary.DIRECTION
            and len(held.own) < self._policy.min_chunk_chars
            and abs(cut.started_ms - held.ended_ms) <= self._policy.merge_window_ms
            and self._fits(held, cut, len(held.own) + 1 + len(cut.text))
        )

    def _fits(self, held: Cut, cut: Cut, chars: int) -> bool:
        width = max(held.ended_ms, cut.ended_ms) - min(held.started_ms, cut.started_ms)
        window = self._policy.max_window_ms + self._policy.merge_window_ms
        return chars <= self._policy.max_chunk_chars and width <= window


def _without_overlap(cut: Cut) -> Cut:
    return replace(cut, text=cut.own, overlap_chars=0, gap="", marks=marks_from(cut.marks, cut.overlap_chars))


def _merge(first: Cut, second: Cut, between: str, direction: Direction) -> Cut:
    text = first.text + between
    known = {id(event) for _, event in first.marks}
    added = ((place, event) for place, event in second.marks if id(event) not in known)
    shift = len(text) - second.overlap_chars
    events = first.events + tuple(event for event in second.events if event is not first.events[-1])
    return replace(
        first,
        text=text + second.own,
        direction=direction,
        events=events,
        marks=first.marks + tuple((place + shift, event) for place, event in added),
        started_ms=min(first.started_ms, second.started_ms),
        ended_ms=max(first.ended_ms, second.ended_ms),
    )
