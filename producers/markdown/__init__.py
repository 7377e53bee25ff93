"""Markdown as the chunking specification v1 cuts it. `MarkdownChunker` is the way in; each file is one step of it.

normalise -> parser -> structure -> sentences, pieces -> passages -> records -> checklist
"""

from producers.markdown.checklist import find_problems
from producers.markdown.chunker import MarkdownChunker
from producers.markdown.passages import Passage, cut
from producers.markdown.policy import Policy
from producers.markdown.records import SourceVersion
from producers.markdown.structure import normalise, parse
from producers.markdown.tokens import Tokenizer, WordTokenizer

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
