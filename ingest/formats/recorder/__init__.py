"""Recorder logs and asciinema recordings, cut by the chunking policy `ft.recorder.chunking.v1`.

In: events of terminal panes. Out: documents of up to 64 chunks of one pane. `events` and `cast` read events, `chunker`
cuts them into chunks, `documents` adds identity and metadata. `replay` restores a chunk's text from the log.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from chunksink.chunkbus.chunk import Record
from chunksink.ingest import codes
from chunksink.ingest.formats.recorder import cast, chunker
from chunksink.ingest.formats.recorder.documents import PARSER, Pane
from chunksink.ingest.formats.recorder.events import KINDS, Event, read_events, read_lines
from chunksink.ingest.formats.registry import Format, Match
from chunksink.ingest.model import Item, Notice, Source


class RecorderFormat(Format):
    """Reads `*.cast` as asciinema recordings, other files as recorder events, one JSON object per line."""

    name = "recorder"
    suffixes = (".jsonl", ".ndjson", ".cast")
    may_grow = True
    parser = PARSER
    canonicalizer = chunker.CANONICALIZER

    def match(self, record: Record, *, is_alone: bool = False) -> Match:
        if str(record.get("schema_version")).startswith("ft.recorder.event."):
            return Match.DECLARED
        return Match.LIKELY if record.get("event_type") in KINDS else Match.NO

    def read(self, source: Source) -> Iterator[Item]:
        """Yields each document when it is complete, and at the end of the file the unfinished ones of all panes."""
        panes: dict[tuple[str | None, str], Pane] = {}
        has_text = False
        with source.path.open("rb") as file:
            header, events = _open(file, source.path, 0, source.size)
            for event in events:
                if isinstance(event, Notice):
                    yield event
                    continue
                key = (event.session, event.pane)
                if key not in panes:
                    panes[key] = Pane(event.pane, event.session, source, header)
                yield from panes[key].take(event)
                has_text = has_text or bool(event.contribution)
        for pane in panes.values():
            yield from pane.finish()
        if not has_text:
            yield Notice(codes.SOURCE_EMPTY, "no event has text", is_failure=False)


def replay(path: Path, chunk: Record) -> str:
    """Restores a chunk's text from the bytes of the log in its span; the hash of the text is `content_hash`."""
    byte_range, contributed, metadata = chunk["span"]["byte_range"], chunk["span"]["contributed"], chunk["metadata"]
    pane = (metadata["session_id"], metadata["pane_id"])
    with path.open("rb") as file:
        _, events = _open(file, path, byte_range["byte_start"], byte_range["byte_end"])
        of_pane = [event for event in events if isinstance(event, Event) and (event.session, event.pane) == pane]
    contributions = "\n".join(event.contribution for event in of_pane if event.contribution)
    return contributions[contributed["char_start"] : contributed["char_end"]]


def _open(file: BinaryIO, path: Path, start: int, end: int) -> tuple[cast.Header | None, Iterator[Event | Notice]]:
    """The header, if the file is a recording, and the events in the bytes `[start, end)`."""
    lines = read_lines(file, start, end)
    if path.suffix.lower() != ".cast":
        return None, read_events(lines)
    header = cast.read_header(file)
    return header, cast.read_events(header, lines)
