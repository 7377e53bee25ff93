"""Structural units cut to what a chunk can hold: the unit, else its sentences, else their lines, else
windows of tokens."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from chunksink.producers.markdown.document import Block, Kind
from chunksink.producers.markdown.policy import Policy
from chunksink.producers.markdown.sentences import sentence_spans
from chunksink.producers.markdown.tokens import Tokenizer


class Piece(NamedTuple):
    """A stretch of text that goes into one chunk whole. There are as many as blocks: a tuple, as those are."""

    start: int
    end: int
    tokens: int
    block: Block


@dataclass(frozen=True, slots=True)
class BlockCutter:
    """Cuts the blocks of one text. `count` is the tokenizer's counter for it."""

    text: str
    policy: Policy
    tokenizer: Tokenizer
    count: Callable[[int, int], int]

    def cut(self, block: Block) -> Iterable[Piece]:
        """The block in pieces of at most `hard_max` tokens; one piece where it fits, or may not be cut."""
        if block.is_whole:
            return (Piece(block.start, block.end, self.count(block.start, block.end), block),)
        size = self._count_up_to_limit(block.start, block.end)
        if size > self.policy.hard_max:
            return self._sentences(block)
        return (Piece(block.start, block.end, size, block),) if size else ()

    def _sentences(self, block: Block) -> Iterator[Piece]:
        for start, end in sentence_spans(self.text, block.start, block.end, block.kind):
            size = self._count_up_to_limit(start, end)
            if size > self.policy.hard_max:
                yield from self._lines(start, end, block)
            elif size:
                yield Piece(start, end, size, block)

    def _lines(self, start: int, end: int, block: Block) -> Iterator[Piece]:
        """A sentence without end, as a log is: by its lines, and by windows what is too long even so."""
        for begin, until in sentence_spans(self.text, start, end, Kind.CODE):
            size = self._count_up_to_limit(begin, until)
            if size > self.policy.hard_max:
                yield from self._windows(begin, until, block)
            elif size:
                yield Piece(begin, until, size, block)

    def _count_up_to_limit(self, start: int, end: int) -> int:
        """The number of tokens, or anything over `hard_max`: a huge unit is not counted to its end."""
        if end - start <= 64 * self.policy.hard_max:
            return self.count(start, end)
        count = 0
        for count, _ in enumerate(self.tokenizer.spans(self.text, start, end), 1):
            if count > self.policy.hard_max:
                break
        return count

    def _windows(self, start: int, end: int, block: Block) -> Iterator[Piece]:
        """Windows of `policy.window` tokens, shortened by up to a fifth where that keeps a word whole."""
        edges: list[int] = []  # where the tokens of the open window begin
        begin = start
        for edge, _ in self.tokenizer.spans(self.text, start, end):
            if len(edges) == self.policy.window:
                keep = _last_word_edge(self.text, edges, edge)
                cut = edges[keep] if keep < len(edges) else edge
                yield Piece(begin, cut, keep, block)
                begin = cut
                edges = edges[keep:]
            edges.append(edge)
        if edges:
            yield Piece(begin, end, len(edges), block)


def _last_word_edge(text: str, edges: list[int], following: int) -> int:
    """How many of the window's tokens to keep so that it ends before white space, or all of them."""
    if text[following - 1].isspace():
        return len(edges)
    for keep in range(len(edges) - 1, len(edges) - len(edges) // 5 - 1, -1):
        if text[edges[keep] - 1].isspace():
            return keep
    return len(edges)
