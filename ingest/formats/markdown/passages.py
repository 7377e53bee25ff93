"""Cuts a document into passages, from which `records` makes chunks: boundaries, sizes and overlap.

A passage is one contiguous slice of the normalised text. It may begin with an overlap, which is the end of the previous
passage; the rest is its own text. The own texts in order are the document, except white space between them. If a table
is cut, later passages repeat its header, because a search rarely finds rows without it. A long header is not repeated.

Overlap stays within a section. If a passage ends with a colon, it introduces the next one, whose overlap may then be
longer.

A run is a sequence of blocks that a passage may combine. It consists of units, which usually stay whole.

- With `joins_blocks`, a run is the blocks of a section. Front matter is a run of its own, and so is a block that is
  never cut: it divides its section. A unit is a list, a quote, or a block outside of both.
- Without it, a run is one or more paragraphs, a list, a table or a code block. Every block is a unit. Prose without any
  word, such as a rule below a table, is added to the block above.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from chunksink.ingest.formats.markdown import tokens
from chunksink.ingest.formats.markdown.document import Block, Kind, Structure
from chunksink.ingest.formats.markdown.pieces import BlockCutter, Slice, sentence_spans
from chunksink.ingest.formats.markdown.policy import Policy

_CHARACTERS = 24  # per token: how far to look for an overlap or a header
_ITEM = re.compile(r"\A(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)+")
_AFTER_COLON = " \t\n*_"  # as in `**Run this:**`
# A tag with href, src or alt counts as a word.
_WORD_OR_TAG = re.compile(r"[^\W_]|</?[a-z][a-z0-9-]*(?=[\s/>])(?![^<>]*\b(?:href|src|alt)\b)[^<>]*>", re.IGNORECASE)


class Passage(NamedTuple):
    """A chunk before it has an identity: `text[start:end]`, of which `text[start:own_start]` is overlap."""

    start: int
    own_start: int
    end: int
    tokens: int
    kind: Kind
    section: int
    element: str
    detail: str
    part: int
    """0 if the passage begins a run (with `joins_blocks`, a unit), else one more than in the passage before."""
    header: str = ""
    """In later parts of a table: the repeated header, with a line break."""


class _Header(NamedTuple):
    """The header to repeat above later parts of a table; `rows` is where the rows begin."""

    text: str = ""
    tokens: int = 0
    rows: int = 0


def cut(document: Structure, policy: Policy) -> Iterator[Passage]:
    """The document's passages in order."""
    cutter = _Cutter(document.text, policy)
    for run in _sections(document) if policy.joins_blocks else _runs(document):
        yield from cutter.pack(run)


def _sections(document: Structure) -> Iterator[list[Block]]:
    """The blocks of each section. Front matter is a run by itself, and so is a block that is never cut."""
    for _, run in groupby(
        document.blocks,
        lambda block: (block.section, block.kind is Kind.FRONT_MATTER, block.start if block.is_whole else -1),
    ):
        yield list(run)


def _runs(document: Structure) -> list[list[Block]]:
    """The blocks between two boundaries. Blocks without words join the run above them."""
    runs: list[list[Block]] = []
    for block in document.blocks:
        if runs and not _is_boundary(runs[-1][-1], block):
            runs[-1].append(block)
        else:
            runs.append([block])
    joined: list[list[Block]] = []
    for run in runs:
        above = joined[-1] if joined else []
        if above and above[-1].section == run[0].section and _is_only_marks(document.text, run):
            above[-1] = above[-1]._replace(end=run[-1].end)
        else:
            joined.append(run)
    return joined


def _kind_of(blocks: Sequence[Block]) -> Kind:
    return blocks[0].kind if all(block.kind is blocks[0].kind for block in blocks) else Kind.PROSE


def _is_boundary(before: Block, after: Block) -> bool:
    if after.is_heading and after.section != before.section:
        return True
    if before.kind is after.kind is Kind.CODE and before.element == after.element:
        return False  # paragraphs of a file of code
    if not (before.kind is after.kind is Kind.PROSE):
        return True
    return before.list_number is not None and before.list_number != after.list_number


def _is_only_marks(text: str, run: list[Block]) -> bool:
    start, end = run[0].start, run[-1].end
    if run[0].kind is not Kind.PROSE or text[start : start + 1].isalnum():
        return False
    while (found := _WORD_OR_TAG.search(text, start, end)) and found[0][0] == "<":
        start = found.end()
    return found is None


class _Cutter:
    def __init__(self, text: str, policy: Policy) -> None:
        self._text = text
        self._policy = policy
        self._count = tokens.counter(text)
        self._pieces = BlockCutter(text, policy, self._count)
        self._last: Passage | None = None
        self._last_own: list[Slice] = []

    def pack(self, run: list[Block]) -> Iterator[Passage]:
        """The passages of a run. Each grows to the target, or up to `soft_max` if that completes the run.

        To reach the minimum a passage grows further, and pieces that do not fit are cut.
        """
        pieces = deque(self._pieces_of(run))
        remaining = sum(piece.tokens for piece in pieces)
        target, soft_max, hard_max = self._policy.target, self._policy.soft_max, self._policy.hard_max
        minimum = self._policy.minimum
        own: list[Slice] = []
        part = 0
        while pieces:
            previous, own = own, [pieces.popleft()]
            continues = previous and (not self._policy.joins_blocks or previous[-1].block.unit == own[0].block.unit)
            part = part + 1 if continues else 0
            header = self._header(own[0])
            if header.tokens + own[0].tokens > hard_max:
                header = header._replace(text="", tokens=0)
            start, overlap = self._overlap(own[0], part > 0, header)
            size = own[0].tokens
            remaining -= size
            repeated = overlap + header.tokens
            while pieces:
                total, following = repeated + size, repeated + size + pieces[0].tokens
                if total + remaining > soft_max and (total >= target or following > soft_max):
                    if size < minimum:
                        if following > hard_max:
                            self._split_first(pieces, hard_max - total)
                    elif remaining >= minimum:
                        break
                    elif total + remaining > hard_max:
                        pieces.appendleft(too_large := own.pop())
                        self._split_first(pieces, hard_max - total - remaining + too_large.tokens)
                        size -= too_large.tokens
                        remaining += too_large.tokens
                own.append(pieces.popleft())
                size += own[-1].tokens
                remaining -= own[-1].tokens
            yield self._passage(start, own, repeated + size, part, header.text)

    def _pieces_of(self, run: list[Block]) -> Iterator[Slice]:
        """The pieces of the blocks. With `joins_blocks`, a unit that fits is one piece."""
        units = [[block] for block in run]
        if self._policy.joins_blocks:
            units = [list(unit) for _, unit in groupby(run, attrgetter("unit"))]
        for unit in units:
            whole = [*self._pieces.cut(unit[0]._replace(end=unit[-1].end, kind=_kind_of(unit)))] if unit[1:] else ()
            yield from whole if len(whole) == 1 else (piece for block in unit for piece in self._pieces.cut(block))

    def _split_first(self, pieces: deque[Slice], limit: int) -> None:
        """Replaces the first piece by pieces of at most `limit` tokens."""
        first = pieces.popleft()
        finer = self._pieces.cut_to(first.start, first.end, first.block, limit, (first.block.kind, Kind.CODE))
        pieces.extendleft(reversed([*finer]))

    def _passage(self, start: int, own: list[Slice], tokens: int, part: int, header: str) -> Passage:
        blocks = [piece.block for piece in own]
        self._last_own = own
        element = next((block.element for block in blocks if block.element), "")
        shown = [block for block in blocks if not block.is_heading] or blocks
        place = (start, own[0].start, own[-1].end)
        self._last = Passage(*place, tokens, _kind_of(shown), blocks[0].section, element, shown[0].detail, part, header)
        return self._last

    def _header(self, piece: Slice) -> _Header:
        """The header of the table in which the piece begins; empty if it is in the piece, or takes too much room."""
        block = piece.block
        if piece.start == block.start:
            return _Header()
        most = min(block.end, block.start + _CHARACTERS * self._policy.target)
        names_end = self._text.find("\n", block.start, most) if block.kind is Kind.TABLE else -1
        end = self._text.find("\n", names_end + 1, most) if names_end >= 0 else -1
        if end < 0 or not _WORD_OR_TAG.search(self._text, block.start, names_end):
            return _Header()
        names, rule = self._text[block.start : names_end].strip(), self._text[names_end + 1 : end].strip()
        names = names if block.list_number is None else _ITEM.sub("", names)
        text = f"{names}\n{rule}\n"
        size = tokens.count(text)
        return _Header(text, size, end + 1) if size <= self._policy.target // 2 else _Header()

    def _overlap(self, first: Slice, is_later_part: bool, header: _Header) -> tuple[int, int]:
        """Where the overlap before `first` begins (at `first` if there is none), and its number of tokens."""
        last = self._last
        nothing = (first.start, 0)
        if last is None or last.section != first.block.section:
            return nothing
        if not is_later_part and last.kind is not Kind.PROSE:
            return nothing
        blocks = [piece.block for piece in self._last_own]
        room = self._policy.hard_max - first.tokens - header.tokens
        usual = self._policy.overlap_of(self._policy.target)
        if all(block.is_heading for block in blocks) and last.tokens <= min(room, usual):
            return last.start, last.tokens
        share = self._policy.overlap_of(last.tokens)
        introduces = self._text[last.own_start : last.end].rstrip(_AFTER_COLON).endswith((":", "："))
        longest = 2 * share if is_later_part else max(share, usual) if introduces else share
        limit_of_one, limit_of_several = min(room, longest), min(room, share)
        own_start = last.own_start
        if self._policy.joins_blocks and is_later_part:
            own_start = next(piece.start for piece in self._last_own if piece.block.unit == first.block.unit)
        elif self._policy.joins_blocks:  # only the words that introduce this passage
            limit_of_several = 0
            limit_of_one = limit_of_one if introduces and blocks[-1].kind is Kind.PROSE else 0
        if limit_of_one <= 0 or last.end <= header.rows:
            return nothing
        own_start = max(own_start, header.rows)
        start = max(own_start, last.end - max(2 * share, longest) * _CHARACTERS)
        kinds = (first.block.kind, Kind.CODE) if is_later_part else (last.kind,)
        for kind in kinds:
            if found := self._last_sentences(start, last.end, start > own_start, kind, limit_of_one, limit_of_several):
                return found
        return (is_later_part and self._last_tokens(start, last.end, limit_of_several)) or nothing

    def _last_sentences(
        self, start: int, end: int, is_within: bool, kind: Kind, limit_of_one: int, limit_of_several: int
    ) -> tuple[int, int] | None:
        """Where the last sentences (or lines) before `end` begin, and their tokens: the overlap of the next passage.

        As many as have at most `limit_of_several` tokens together. The last one alone may have `limit_of_one`; None if
        it has more. `is_within`: `start` may be inside a sentence, so none that begins there is used.
        """
        found: tuple[int, int] | None = None
        for begin, _ in reversed([*sentence_spans(self._text, start, end, kind, self._policy.keeps_code_spans)]):
            size = self._count(begin, end)
            if size > (limit_of_several if found else limit_of_one) or (is_within and begin == start):
                break
            if size:
                found = (begin, size)
        return found

    def _last_tokens(self, start: int, end: int, budget: int) -> tuple[int, int] | None:
        """The last `budget` tokens, beginning with a whole word if possible."""
        edges = [edge for edge, _ in tokens.spans(self._text, start, end)][-budget:]
        for number, edge in enumerate(edges[: max(1, len(edges) // 2)]):
            if edge > start and self._text[edge - 1].isspace():
                return edge, len(edges) - number
        return (edges[0], len(edges)) if edges else None
