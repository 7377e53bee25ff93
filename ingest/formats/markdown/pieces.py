"""Cuts blocks to the size of a chunk: a block that is too large into sentences, these into lines, these into windows.

The sentence rule does not have to know every abbreviation, but it must never change and never lose text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from chunksink.ingest.formats.markdown import tokens
from chunksink.ingest.formats.markdown.document import Block, Kind
from chunksink.ingest.formats.markdown.policy import Policy
from chunksink.ingest.formats.markdown.tokens import MARK, CountTokens

# Ends of sentences with or without white space after them, and those that need it, because they also occur in
# abbreviations and numbers.
_END = "。！？｡।॥።፧။"
_END_BEFORE_SPACE = ".!?…؟۔։។៕"
# Repetitions are bounded, or a million full stops would take quadratic time. The pattern begins with a character
# class, because searching for one of a few characters is fast.
_SENTENCE_END = re.compile(
    rf"[{_END}{_END_BEFORE_SPACE}\n](?:"
    rf"(?<=[{_END}])[{_END}」』”’）】》\"')\]]*(?![{MARK}])[ \t\n]*"
    rf"|(?<=[{_END_BEFORE_SPACE}])(?<![{_END_BEFORE_SPACE}]{{2}})"
    rf"[{_END_BEFORE_SPACE}]{{0,7}}[\"'”’»)\]*_`]{{0,8}}[ \t\n]+(?=[^\sa-z])"
    r"|(?<=\n)[ \t>]*\n[ \t\n>]*"
    r"|(?<=\n)(?=[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t])"
    r")"
)
_LINE_END = re.compile(r"\n+")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘„«]*$")
# Before a capital: an initial (J. Smith), or a German ordinal (3. Mai).
_INITIAL = re.compile(r"[^\W\d_]|\d{1,2}")
_ENGLISH = "e.g i.e cf vs al approx ca dr mr mrs ms prof st jr sr no nr nos fig figs eq vol ed eds pp inc ltd co dept"
_GERMAN = "z.b d.h u.a u.u i.d.r s.o s.u bzw vgl evtl ggf inkl exkl abb bd hrsg str tel zzgl usf resp sog"
_ABBREVIATIONS = frozenset(f"{_ENGLISH} {_GERMAN}".split())
_LONGEST_ABBREVIATION = max(map(len, _ABBREVIATIONS)) + 2
_IN_CODE = r"[^`\n]|\n(?![ \t]*\n)"
_CODE_SPAN = re.compile(
    rf"(?<![`\\])(?:`(?!`)(?:{_IN_CODE}){{1,400}}`(?!`)|``(?!`)(?:{_IN_CODE}|`(?!`)){{1,400}}``(?!`))"
)
_COUNTED_WHOLE = 64
"""Texts of up to this many times `hard_max` characters are counted whole. In longer ones, counting stops above
`hard_max` tokens."""


class Slice(NamedTuple):
    """A stretch of text that usually stays whole. It is cut if it is too large for any passage, or if a passage needs a
    part of it to reach the minimum."""

    start: int
    end: int
    tokens: int
    block: Block


@dataclass(frozen=True, slots=True)
class BlockCutter:
    """Cuts the blocks of one text. `count` counts its tokens."""

    text: str
    policy: Policy
    count: CountTokens

    def cut(self, block: Block) -> Iterator[Slice]:
        """Pieces of at most `hard_max` tokens; the block itself if it fits or may not be cut."""
        if block.is_whole:
            yield Slice(block.start, block.end, self.count(block.start, block.end), block)
        else:
            yield from self.cut_to(block.start, block.end, block, self.policy.hard_max, (block.kind, Kind.CODE))

    def cut_to(self, start: int, end: int, block: Block, limit: int, kinds: tuple[Kind, ...]) -> Iterator[Slice]:
        """Pieces of at most `limit` tokens: the whole stretch, or its sentences or lines, or windows of tokens.

        `kinds`: how to cut it, tried one after the other until the pieces fit.
        """
        size = self._size(start, end)
        if size <= limit:
            if size:
                yield Slice(start, end, size, block)
        elif kinds:
            for begin, until in sentence_spans(self.text, start, end, kinds[0], self.policy.keeps_code_spans):
                yield from self.cut_to(begin, until, block, limit, kinds[1:])
        else:
            yield from self._windows(start, end, block, min(limit, self.policy.window))

    def _windows(self, start: int, end: int, block: Block, limit: int) -> Iterator[Slice]:
        """Windows of `limit` tokens, shortened by up to a fifth if that keeps a word whole."""
        edges: list[int] = []  # where the tokens of the open window begin
        begin = start
        for edge, _ in tokens.spans(self.text, start, end):
            if len(edges) == limit:
                keep = self._whole_words(edges, edge)
                cut = edges[keep] if keep < len(edges) else edge
                yield Slice(begin, cut, keep, block)
                begin = cut
                edges = edges[keep:]
            edges.append(edge)
        if edges:
            yield Slice(begin, end, len(edges), block)

    def _whole_words(self, edges: list[int], following: int) -> int:
        """How many of the window's tokens to keep so that it ends before white space, or all of them."""
        if self.text[following - 1].isspace():
            return len(edges)
        for keep in range(len(edges) - 1, len(edges) - len(edges) // 5 - 1, -1):
            if self.text[edges[keep] - 1].isspace():
                return keep
        return len(edges)

    def _size(self, start: int, end: int) -> int:
        """The number of tokens. In a very long text, counting stops above `hard_max`."""
        if end - start <= _COUNTED_WHOLE * self.policy.hard_max:
            return self.count(start, end)
        count = 0
        for count, _ in enumerate(tokens.spans(self.text, start, end), 1):
            if count > self.policy.hard_max:
                break
        return count


def sentence_spans(
    text: str, start: int, end: int, kind: Kind, keeps_code_spans: bool = False
) -> Iterator[tuple[int, int]]:
    """The sentences of `text[start:end]` (lines, if the kind is literal), each with the white space after it."""
    ends = _LINE_END if kind.is_literal else _SENTENCE_END
    begin = at = start
    code = _CODE_SPAN.search(text, start, end) if keeps_code_spans and not kind.is_literal else None
    while match := ends.search(text, at, end):
        while code and code.end() <= match.start():
            code = _CODE_SPAN.search(text, code.end(), end)
        if code and code.start() < match.start():
            at = code.end()
            continue
        at = cut = match.end()
        if cut >= end:
            break
        if text[match.start()] == "." and _is_abbreviation(text, begin, match.start()):
            at = match.start() + 1  # the white space after it may still end a paragraph or an item
            continue
        if cut > begin:
            yield begin, cut
            begin = cut
    if begin < end:
        yield begin, end


def _is_abbreviation(text: str, begin: int, dot: int) -> bool:
    found = _LAST_WORD.search(text, max(begin, dot - _LONGEST_ABBREVIATION), dot)
    word = found[0] if found else ""
    return word.lower() in _ABBREVIATIONS or _INITIAL.fullmatch(word) is not None
