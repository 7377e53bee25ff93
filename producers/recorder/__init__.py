"""Recorder events as the chunking policy `ft.recorder.chunking.v1` cuts them. `RecorderReader` is the way in.

lines -> log or cast -> terminal -> cutter -> glue -> records; `replay` goes back from a chunk to its text.
"""

from producers.recorder.cuts import Boundary, Cut
from producers.recorder.cutter import PaneCutter
from producers.recorder.events import Direction, Event
from producers.recorder.policy import Policy
from producers.recorder.reader import RecorderReader
from producers.recorder.replay import replay

__all__ = ["Boundary", "Cut", "Direction", "Event", "PaneCutter", "Policy", "RecorderReader", "replay"]
