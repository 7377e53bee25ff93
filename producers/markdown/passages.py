"""Chunks as stretches of the text: boundaries, size policy, overlap. Identity comes later (`records`).

Every passage is one contiguous slice of the normalised text: its own part, and before it the end of its neighbour.
So own parts, in order, are the document; a passage can be replayed from its span; nothing is rewritten. Only the later
parts of a table have its header above them: rows without their columns' names are hardly found, and say little.

A passage begins at a heading, where code, a table or front matter begins or ends, where a list ends or another
begins, and where its predecessor is full. Marks without a word, as a rule below a table, begin none of their own:
where no prose follows them they go with what stands above. Overlap stays within a section. At a full predecessor it is
15 % of it in whole sentences (lines of code or a table), the last sentence up to twice that, else in lines, else its
last tokens; at another boundary only whole sentences of prose within the 15 %, since the end of a table or of code says
little alone. There a last sentence or item that ends with a colon may have 15 % of the target: it says what the next
passage is.
A heading that code or a table follows at once is a passage of its own and is repeated whole: without it neither could
be cited.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from chunksink.producers.markdown.document import Block, Document, Kind
from chunksink.producers.markdown.pieces import BlockCutter, Piece
from chunksink.producers.markdown.policy import Policy
from chunksink.producers.markdown.sentences import sentence_spans
from chunksink.producers.markdown.tokens import Tokenizer

_TAIL_CHARACTERS = 24  # for each token of the overlap, how far back its beginning is looked for
_NEAR_TAIL_CHARACTERS = 6  # where it nearly always is
_ITEM = re.compile(r"\A(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)+")
_BEGINS_WORD = re.compile(r"(?<=\s)(?=[^\W_])")
_SHORT = 16  # characters for each token that a passage can take: so long a run is looked at as a whole
_AFTER_WORDS = " \t\n*_"  # what may end a line after its last sign: `**Run this:**`
# A tag that shows and points to something is as good as a word.
_WORD_OR_TAG = re.compile(r"[^\W_]|</?[a-z][a-z0-9-]*(?=[\s/>])(?![^<>]*\b(?:href|src|alt)\b)[^<>]*>", re.IGNORECASE)


class Passage(NamedTuple):
    """A chunk before it has an identity: `text[start:end]`, new from `own_start` on."""

    start: int
    own_start: int
    end: int
    tokens: int
    kind: Kind
    section: int
    element: str
    detail: str
    part: int  # 0, or its number among the parts of one code block or table
    header: str = ""  # of the table that it is a later part of, with a line break


class _Header(NamedTuple):
    """What stands above the later parts of a table, and where its rows begin."""

    text: str
    tokens: int
    rows: int


_NO_HEADER = _Header("", 0, 0)


class _Tail(NamedTuple):
    """Of a passage's own part what may be repeated, and from where on at the most."""

    start: int
    end: int
    far: int


def cut(document: Document, policy: Policy, tokenizer: Tokenizer) -> Iterator[Passage]:
    """The document's passages in order."""
    return _Cutter(document, policy, tokenizer).passages()


def is_boundary(before: Block, after: Block) -> bool:
    """True where a new chunk must start whatever the sizes are."""
    if after.is_heading and after.section != before.section:
        return True
    if not (before.kind is after.kind is Kind.PROSE):
        return True
    return before.list_number is not None and before.list_number != after.list_number


class _Cutter:
    def __init__(self, document: Document, policy: Policy, tokenizer: Tokenizer) -> None:
        self._document = document
        self._text = document.text
        self._policy = policy
        self._tokenizer = tokenizer
        self._count = tokenizer.counter(document.text)
        self._blocks = BlockCutter(document.text, policy, tokenizer, self._count)
        self._last: Passage | None = None
        self._last_is_heading = False

    def passages(self) -> Iterator[Passage]:
        for run in self._runs():
            yield from self._pack(run)

    def _runs(self) -> Iterator[list[Block]]:
        """Blocks between two boundaries, with the marks below them."""
        run: list[Block] = []
        for following in self._bounded():
            if run and run[-1].section == following[0].section and self._is_only_marks(following):
                run[-1] = run[-1]._replace(end=following[-1].end)
                continue
            if run:
                yield run
            run = following
        if run:
            yield run

    def _bounded(self) -> Iterator[list[Block]]:
        run: list[Block] = []
        for block in self._document.blocks:
            if run and is_boundary(run[-1], block):
                yield run
                run = []
            run.append(block)
        if run:
            yield run

    def _is_only_marks(self, run: list[Block]) -> bool:
        if run[0].kind is not Kind.PROSE:
            return False
        start, end = run[0].start, run[-1].end
        if self._text[start : start + 1].isalnum():
            return False
        while (found := _WORD_OR_TAG.search(self._text, start, end)) and found[0][0] == "<":
            start = found.end()
        return found is None

    def _pack(self, run: list[Block]) -> Iterator[Passage]:
        if passage := self._whole(run):
            yield passage
            return
        pieces = _Ahead(chain.from_iterable(map(self._blocks.cut, run)), self._policy.soft_max)
        of_table = _NO_HEADER
        part = 0
        while (piece := pieces.take()) is not None:
            own = [piece.block]
            end = piece.end
            if part == 1:
                of_table = self._header(piece.block)
            fits = of_table.tokens + piece.tokens <= self._policy.hard_max
            header = of_table if fits else of_table._replace(text="", tokens=0)
            start, total = self._overlap(piece, within_run=part > 0, header=header)
            total += piece.tokens + header.tokens
            while (following := pieces.peek()) is not None:
                full = total >= self._policy.target or total + following.tokens > self._policy.soft_max
                if full and total + pieces.rest() > self._policy.soft_max:
                    break
                own.append(following.block)
                end = following.end
                total += following.tokens
                pieces.take()
            yield self._passage(start, piece.start, end, own, total, part, header.text)
            part += 1

    def _whole(self, run: list[Block]) -> Passage | None:
        """All of it in one, as nearly always; None where it is nothing or too much."""
        first, start, end = run[0], run[0].start, run[-1].end
        most = self._policy.soft_max
        if end - start > _SHORT * most:
            return None
        sizes = [self._count(block.start, block.end) for block in run]
        if sum(sizes) > most or 0 in sizes:  # what shows nothing is left out
            return None
        begin, repeated = self._overlap(Piece(start, first.end, sizes[0], first), within_run=False)
        total = sum(sizes) + repeated
        return self._passage(begin, start, end, run, total) if total <= most else None

    def _header(self, block: Block) -> _Header:
        """The first two lines of a table; nothing where they leave too little to the rows."""
        most = min(block.end, block.start + _TAIL_CHARACTERS * self._policy.target)
        names_end = self._text.find("\n", block.start, most) if block.kind is Kind.TABLE else -1
        end = self._text.find("\n", names_end + 1, most) if names_end >= 0 else -1
        if end < 0 or not _WORD_OR_TAG.search(self._text, block.start, names_end):
            return _NO_HEADER
        names, rule = self._text[block.start : names_end].strip(), self._text[names_end + 1 : end].strip()
        names = names if block.list_number is None else _ITEM.sub("", names)
        text = f"{names}\n{rule}\n"
        size = self._tokenizer.count(text)
        return _Header(text, size, end + 1) if size <= self._policy.target // 2 else _NO_HEADER

    def _passage(
        self, start: int, own_start: int, end: int, own: list[Block], tokens: int, part: int = 0, header: str = ""
    ) -> Passage:
        first = own[0]
        self._last_is_heading = own[-1].is_heading and all(block.is_heading for block in own)
        element = first.element or next((block.element for block in own if block.element), "")
        self._last = Passage(
            start, own_start, end, tokens, first.kind, first.section, element, first.detail, part, header
        )
        return self._last

    def _overlap(self, first: Piece, within_run: bool, header: _Header = _NO_HEADER) -> tuple[int, int]:
        """Where the passage that begins with `first` starts, below this header, and how many tokens it repeats."""
        last = self._last
        nothing = (first.start, 0)
        if last is None or last.section != first.block.section:
            return nothing
        if not within_run and last.kind is not Kind.PROSE:
            return nothing
        room = self._policy.hard_max - first.tokens - header.tokens
        short = self._policy.overlap_of(self._policy.target)
        if self._last_is_heading and last.tokens <= min(room, short):
            return last.start, last.tokens
        share = self._policy.overlap_of(last.tokens)
        longest = 2 * share if within_run else max(share, short) if self._introduces(last) else share
        if min(longest, room) <= 0 or last.end <= header.rows:
            return nothing
        own_start = max(last.own_start, header.rows)
        own = _Tail(own_start, last.end, max(own_start, last.end - max(2 * share, longest) * _TAIL_CHARACTERS))
        at_most = (min(room, longest), min(room, share))
        found = self._last_spans(own, last.kind, *at_most)
        if found is None and within_run:
            found = self._last_spans(own, Kind.CODE, *at_most)
            found = found or self._last_tokens(own.far, last.end, min(share, room))
        return found or nothing

    def _last_spans(self, own: _Tail, kind: Kind, one: int, several: int) -> tuple[int, int] | None:
        """As many of the last sentences or lines as there is room for, or one that takes more."""
        near = max(own.start, own.end - one * _NEAR_TAIL_CHARACTERS)
        if near > own.start:
            # No end of a sentence lies across the beginning of a word, so that those behind it are found from there.
            word = _BEGINS_WORD.search(self._text, near, own.end)
            near = word.start() if word else own.far
        found, is_all = self._fitting(near, own, kind, one, several)
        if not is_all and near > own.far:
            found, _ = self._fitting(own.far, own, kind, one, several)
        return found

    def _fitting(
        self, begin: int, own: _Tail, kind: Kind, one: int, several: int
    ) -> tuple[tuple[int, int] | None, bool]:
        """The same of those that end after `begin`, and whether more before it would change nothing."""
        found: tuple[int, int] | None = None
        for start, _ in reversed([*sentence_spans(self._text, begin, own.end, kind)]):
            size = self._count(start, own.end)
            if size > (several if found else one):
                return found, True
            if start == begin > own.start:
                return found, False  # it may have begun earlier
            if size:
                found = (start, size)
        return found, True

    def _introduces(self, passage: Passage) -> bool:
        return self._text[passage.own_start : passage.end].rstrip(_AFTER_WORDS).endswith((":", "："))

    def _last_tokens(self, begin: int, end: int, budget: int) -> tuple[int, int] | None:
        """The last `budget` tokens, less the broken word at their head where there is another."""
        edges = [edge for edge, _ in self._tokenizer.spans(self._text, begin, end)][-budget:]
        for number, edge in enumerate(edges[: max(1, len(edges) // 2)]):
            if edge > begin and self._text[edge - 1].isspace():
                return edge, len(edges) - number
        return (edges[0], len(edges)) if edges else None


class _Ahead:
    """Pieces with a view of what follows, as far as it decides anything: up to `horizon` tokens."""

    def __init__(self, pieces: Iterator[Piece], horizon: int) -> None:
        self._pieces = pieces
        self._horizon = horizon
        self._queue: list[Piece] = []
        self._tokens = 0
        self._fill()

    def _fill(self) -> None:
        while self._tokens <= self._horizon:
            piece = next(self._pieces, None)
            if piece is None:
                return
            self._queue.append(piece)
            self._tokens += piece.tokens

    def peek(self) -> Piece | None:
        return self._queue[0] if self._queue else None

    def take(self) -> Piece | None:
        if not self._queue:
            return None
        piece = self._queue.pop(0)
        self._tokens -= piece.tokens
        self._fill()
        return piece

    def rest(self) -> int:
        """Tokens of all that follows, or more than the horizon."""
        return self._tokens
