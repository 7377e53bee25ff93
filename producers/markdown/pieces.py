"""Structural units cut to what a chunk can hold: the unit, else its sentences, else windows of tokens."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from producers.markdown.document import Block
from producers.markdown.policy import Policy
from producers.markdown.sentences import sentence_spans
from producers.markdown.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text that goes into one chunk whole."""

    start: int
    end: int
    tokens: int
    block: Block


def cut_block(text: str, block: Block, policy: Policy, tokenizer: Tokenizer) -> Iterable[Piece]:
    """The block in pieces of at most `hard_max` tokens; one piece where it fits, or may not be cut."""
    if block.is_whole:
        return (Piece(block.start, block.end, tokenizer.count(text[block.start : block.end]), block),)
    size = _count_up_to(text, block.start, block.end, policy.hard_max, tokenizer)
    if size > policy.hard_max:
        return _cut_sentences(text, block, policy, tokenizer)
    return (Piece(block.start, block.end, size, block),) if size else ()


def _cut_sentences(text: str, block: Block, policy: Policy, tokenizer: Tokenizer) -> Iterator[Piece]:
    for start, end in sentence_spans(text, block.start, block.end, block.kind):
        size = _count_up_to(text, start, end, policy.hard_max, tokenizer)
        if size > policy.hard_max:
            yield from _cut_windows(text, start, end, block, policy, tokenizer)
        elif size:
            yield Piece(start, end, size, block)


def _count_up_to(text: str, start: int, end: int, limit: int, tokenizer: Tokenizer) -> int:
    """The number of tokens, or anything over the limit: a huge unit is not counted to its end."""
    if end - start <= 64 * limit:
        return tokenizer.count(text[start:end])
    count = 0
    for count, _ in enumerate(tokenizer.spans(text, start, end), 1):
        if count > limit:
            break
    return count


def _cut_windows(
    text: str, start: int, end: int, block: Block, policy: Policy, tokenizer: Tokenizer
) -> Iterator[Piece]:
    """Windows of `policy.window` tokens, shortened by up to a fifth where that keeps a word whole."""
    edges: list[int] = []  # where the tokens of the open window begin
    begin = start
    for edge, _ in tokenizer.spans(text, start, end):
        if len(edges) == policy.window:
            keep = _last_word_edge(text, edges, edge)
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
