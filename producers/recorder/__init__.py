"""Recorder events as the chunking policy `ft.recorder.chunking.v1` cuts them. `RecorderReader` is the way in.

lines -> log or cast -> terminal -> cutter -> glue -> records; `replay` goes back from a chunk to its text.
"""

from chunksink.producers.recorder.cuts import Boundary, Cut
from chunksink.producers.recorder.cutter import PaneCutter
from chunksink.producers.recorder.events import Direction, Event
from chunksink.producers.recorder.policy import Policy
from chunksink.producers.recorder.reader import RecorderReader
from chunksink.producers.recorder.replay import replay

__all__ = ["Boundary", "Cut", "Direction", "Event", "PaneCutter", "Policy", "RecorderReader", "replay"]
