"""From a chunk back to its text: the proof that its span says where it comes from. Reads the span's bytes only."""

from itertools import islice
from pathlib import Path

from chunksink.chunkbus.chunk import Record
from chunksink.producers.recorder import cast, log
from chunksink.producers.recorder.ends import contribution
from chunksink.producers.recorder.events import Remark
from chunksink.producers.recorder.lines import read_lines
from chunksink.producers.recorder.policy import Policy
from chunksink.producers.recorder.reader import CAST_SUFFIX


def replay(path: Path, chunk: Record, policy: Policy | None = None) -> str:
    """The chunk's text, made again from the log by its span, pane and session; its hash is `content_hash`.

    Recordings need the policy that they were read with, for it says how frames are joined.
    """
    span, metadata = chunk["span"], chunk["metadata"]
    start, end = span["byte_range"]["byte_start"], span["byte_range"]["byte_end"]
    with path.open("rb") as file:
        if path.name.lower().endswith(CAST_SUFFIX):
            header = cast.read_header(next(islice(read_lines(file, 0, start), 1), None))
            frames = cast.read_frames(header, read_lines(file, start, end))
            events = cast.read_events(header, frames, policy or Policy())
        else:
            events = log.read_events(read_lines(file, start, end))
        contributed = "\n".join(
            contribution(event.direction, event.text)
            for event in events
            if not isinstance(event, Remark)
            and event.direction is not None
            and event.text
            and (event.session, event.pane) == (metadata["session_id"], metadata["pane_id"])
        )
    return contributed[span["contributed"]["char_start"] : span["contributed"]["char_end"]]
