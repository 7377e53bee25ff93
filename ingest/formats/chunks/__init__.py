"""Chunks that other programs made become canonical chunks.

In: JSON records of `chunks.v1`, of the specifications 001, 003 and 004, and of LangChain, LlamaIndex, Haystack and
Unstructured. Out: families of chunks. Read `format` first: it recognises the form of each record.
"""

from chunksink.ingest.formats.chunks.format import ChunksFormat as ChunksFormat
