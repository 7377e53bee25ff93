"""Parsed documents to structure-aware chunks (003). `ParsedReader` is the way in.

document -> tables, render -> (the Markdown producer's cutter) -> records -> reader
"""

from chunksink.producers.parsed.reader import ParsedReader

__all__ = ["ParsedReader"]
