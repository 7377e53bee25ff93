"""Markdown as the chunking specification v1 cuts it. `MarkdownChunker` is the way in; each file is one step of it.

normalise -> parser -> structure -> sentences, pieces -> passages -> records -> checklist
"""

from chunksink.producers.markdown.checklist import find_problems
from chunksink.producers.markdown.chunker import MarkdownChunker
from chunksink.producers.markdown.passages import Passage, cut
from chunksink.producers.markdown.policy import Policy
from chunksink.producers.markdown.records import SourceVersion
from chunksink.producers.markdown.structure import normalise, parse
from chunksink.producers.markdown.tokens import Tokenizer, WordTokenizer

__all__ = [
    "MarkdownChunker",
    "Passage",
    "Policy",
    "SourceVersion",
    "Tokenizer",
    "WordTokenizer",
    "cut",
    "find_problems",
    "normalise",
    "parse",
]
