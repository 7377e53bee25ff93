"""Plain text, and markup that is read as such. `TextChunker` is the way in."""

from chunksink.producers.text.chunker import TEXT, TextChunker, paragraphs

__all__ = ["TEXT", "TextChunker", "paragraphs"]
