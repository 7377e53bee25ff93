"""The vector sink on Chroma: embedded (a folder a build) and server (a collection a build), behind the same code."""

from sinks.chroma.reader import ChromaReader
from sinks.chroma.sink import ChromaBuild, ChromaSink

__all__ = ["ChromaBuild", "ChromaReader", "ChromaSink"]
