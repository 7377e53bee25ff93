"""From a file of events to documents of the bus: the `RecordReader` of recorder logs and asciinema recordings.

Memory holds, for each pane, one part of its chunks and the chunk that is being filled; never the log. What the file
had when it was opened is read; what is appended meanwhile is for the next run. A last line that is still being written
is told as broken until it is whole.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from chunksink.producers.errors import (
    EVENT_WITHOUT_TEXT,
    LABEL_WITHOUT_TEXT,
    RECORDING_MALFORMED,
    SOURCE_EMPTY,
    SOURCE_UNREADABLE,
)
from chunksink.producers.produced import LeftOut, Making, Produced
from chunksink.producers.recorder import cast, log
from chunksink.producers.recorder.cuts import Cut
from chunksink.producers.recorder.cutter import PaneCutter
from chunksink.producers.recorder.events import Event, Remark
from chunksink.producers.recorder.lines import read_lines
from chunksink.producers.recorder.policy import CANONICALIZER_NAME, PARSER, Policy
from chunksink.producers.recorder.records import Described, Part, Source, build, describe

CAST_SUFFIX = ".cast"


@dataclass(frozen=True)
class RecorderReader:
    """Reads `*.cast` as asciinema recordings, anything else as recorder events, one JSON object a line."""

    policy: Policy = field(default_factory=Policy)

    @property
    def parser(self) -> tuple[str, str]:
        return PARSER

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return (CANONICALIZER_NAME, self.policy.canonicalizer_version)

    def read(self, path: Path, uri: str, making: Making) -> Iterator[Produced | LeftOut]:
        """Each part when its last chunk is known; at the end the unfinished ones, in the order of their panes."""
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if path.name.lower().endswith(CAST_SUFFIX):
                    yield from self._read_cast(file, size, uri, making)
                else:
                    events = log.read_events(read_lines(file, 0, size))
                    yield from self._produce(events, Source(uri, "recorder"), making)
        except OSError as error:
            yield LeftOut(uri, None, SOURCE_UNREADABLE, error.strerror or str(error))

    def _read_cast(self, file: BinaryIO, size: int, uri: str, making: Making) -> Iterator[Produced | LeftOut]:
        # Read twice: that a recording is broken at its end must be known before its beginning is produced.
        try:
            lines = read_lines(file, 0, size)
            header = cast.read_header(next(lines, None))
            for _ in cast.read_frames(header, lines):
                pass
        except cast.Malformed as error:
            yield LeftOut(uri, error.line, RECORDING_MALFORMED, error.reason)
            return
        frames = cast.read_frames(header, islice(read_lines(file, 0, size), 1, None))
        source = Source(uri, "asciicast", header.title, is_recording=True, began_ms=header.began_ms)
        yield from self._produce(cast.read_events(header, frames, self.policy), source, making)

    def _produce(
        self, events: Iterator[Event | Remark], source: Source, making: Making
    ) -> Iterator[Produced | LeftOut]:
        panes: dict[tuple[str | None, str], _Pane] = {}
        labels = _LabelsOfAll()
        for event in events:
            if isinstance(event, Remark):
                yield LeftOut(source.uri, event.line, event.code, event.reason, event.is_failure)
                continue
            labels.take(event)
            for pane in self._concerned(panes, source, event):
                for part, described in pane.take(event):
                    yield build(source, part, described, self.policy, making)
                labels.show(pane.cutter.shown_label)
        has_text = False
        for pane in panes.values():
            for part, described in pane.finish():
                yield build(source, part, described, self.policy, making)
            has_text = has_text or pane.has_text
            if pane.blanks:
                reason = f"{pane.blanks} events of pane {pane.name} hold nothing to read; the first stands here"
                yield LeftOut(source.uri, pane.first_blank, EVENT_WITHOUT_TEXT, reason, is_failure=False)
            if count := pane.cutter.empty_labels:
                reason = f"labels of pane {pane.name} have no text below them: {count}, of which the first stands here"
                line = pane.cutter.first_empty_label
                yield LeftOut(source.uri, line, LABEL_WITHOUT_TEXT, reason, is_failure=False)
        if count := labels.count():
            reason = f"labels for all panes have no text below them: {count}, of which the first stands here"
            yield LeftOut(source.uri, labels.first, LABEL_WITHOUT_TEXT, reason, is_failure=False)
        if not has_text:
            yield LeftOut(source.uri, None, SOURCE_EMPTY, "no event holds text", is_failure=False)

    def _concerned(self, panes: "dict[tuple[str | None, str], _Pane]", source: Source, event: Event) -> "list[_Pane]":
        if event.pane is not None:
            key = (event.session, event.pane)
            if key not in panes:
                panes[key] = _Pane(source, event.session, event.pane, self.policy)
            return [panes[key]]
        return [pane for pane in panes.values() if event.session in (None, pane.session)]


class _LabelsOfAll:
    """Labels of markers that name no pane, as far as no pane shows them; the last one of each session may still."""

    def __init__(self) -> None:
        self._waiting: dict[int, str | None] = {}  # lines, and their sessions
        self._count = self.first = 0

    def take(self, event: Event) -> None:
        if event.pane is None and event.direction is None and event.text:
            self._end([line for line, session in self._waiting.items() if session == event.session])
            self._waiting[event.line] = event.session

    def show(self, line: int) -> None:
        self._waiting.pop(line, None)

    def count(self) -> int:
        """At the end, how many nobody shows; then `first` is the line of the first."""
        self._end(list(self._waiting))
        return self._count

    def _end(self, lines: list[int]) -> None:
        for line in lines:
            del self._waiting[line]
            self._count += 1
            self.first = min(self.first or line, line)


class _Pane:
    """One pane of one session: its cutter, and the chunks of the part that is being filled."""

    def __init__(self, source: Source, session: str | None, name: str, policy: Policy) -> None:
        self.session = session
        self.name = name
        self.has_text = False
        self.blanks = 0
        self.first_blank = 0
        self._source = source
        self._policy = policy
        self.cutter = PaneCutter(policy)
        self._described: list[Described] = []
        self._number = 0

    def take(self, event: Event) -> Iterator[tuple[Part, list[Described]]]:
        if event.direction is not None:
            if event.text:
                self.has_text = True
            elif event.marker is None:
                self.blanks += 1
                self.first_blank = self.first_blank or event.line
        yield from self._collect(self.cutter.take(event))

    def finish(self) -> Iterator[tuple[Part, list[Described]]]:
        yield from self._collect(self.cutter.finish())
        if self._described:
            yield self._end_part()

    def _collect(self, cuts: Iterator[Cut]) -> Iterator[tuple[Part, list[Described]]]:
        for cut in cuts:
            self._described.append(describe(self._source, self.session, self.name, cut))
            if len(self._described) == self._policy.chunks_per_part:
                yield self._end_part()

    def _end_part(self) -> tuple[Part, list[Described]]:
        part, described = Part(self.session, self.name, self._number), self._described
        self._described = []
        self._number += 1
        return part, described
