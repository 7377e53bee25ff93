"""DOCX becomes HTML and is read as such. `DocxChunker` is the way in.

body (numbers, imported, fields, formulas) -> chunker
"""

from chunksink.producers.docx.chunker import DocxChunker

__all__ = ["DocxChunker"]
