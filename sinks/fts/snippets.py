"""Snippets as plain text pieces with a match flag, not as markup. Escape them for display."""

import re
import sqlite3
from collections.abc import Callable, Sequence

from chunksink.chunkbus.patterns import SPACELESS
from chunksink.sinks.fts.letters import fold_whole
from chunksink.sinks.fts.schema import TEXT_COLUMN, TOKENIZER
from chunksink.sinks.reader import Piece, after_marks, marked

# Control characters as marks: texts that `ingest` writes have none. In other texts a piece may be marked wrongly.
_OPEN, _CLOSE = "\x02", "\x03"
_AROUND = 90  # characters before and after, if words cannot be counted
_LONG = 20_000  # characters; of a longer text only the best part is shown
_PART = re.compile(r".{1,2000}(?!\S)|.{2000}", re.DOTALL)  # of a long text, cut between words
_BORDER = re.compile(f"({_OPEN}[^{SPACELESS}{_CLOSE}]+)([{SPACELESS}][^{_CLOSE}]*){_CLOSE}")
"""In a match, the border to a script without spaces. For FTS5 such a script continues a word: 1150表示."""

CALL = f"highlight(documents_fts, {TEXT_COLUMN}, char(2), char(3))"
"""Shows the whole text: FTS5's snippet() prefers parts with many of the words, not with the rare ones."""


def pieces(marked: str | None) -> tuple[Piece, ...]:
    """The pieces of a result of FTS5's snippet() or highlight()."""
    parts = re.split(f"(?={_OPEN})|(?<={_CLOSE})", _BORDER.sub(rf"\1{_CLOSE}\2", marked or ""))
    texts = ((part.replace(_OPEN, "").replace(_CLOSE, ""), part.startswith(_OPEN)) for part in parts)
    return tuple(Piece(text, is_match) for text, is_match in texts if text)


def is_long(text: str) -> bool:
    """Whether the text is too long to be shown whole."""
    return len(text) > _LONG


def of_long(text: str, expression: str) -> tuple[Piece, ...]:
    """The best part of a long text, found with a temporary index of its parts. Empty without a match."""
    parts = _PART.findall(text)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.execute("CREATE TABLE originals (text)")
        connection.execute(f"CREATE VIRTUAL TABLE parts USING fts5(text, content=originals, tokenize='{TOKENIZER}')")
        connection.execute("BEGIN")
        for table, texts in (("originals", parts), ("parts", map(fold_whole, parts))):
            connection.executemany(f"INSERT INTO {table}(rowid, text) VALUES (?, ?)", enumerate(texts))
        shown = "highlight(parts, 0, char(2), char(3))"
        best = f"SELECT rowid, {shown} FROM parts WHERE parts MATCH ? ORDER BY rank, rowid LIMIT 1"
        number, marked = connection.execute(best, [expression]).fetchone() or (0, "")
    finally:
        connection.close()
    found = pieces(marked)
    if not found:
        return ()
    before = () if number == 0 else (Piece("…"),)
    after = () if number == len(parts) - 1 else (Piece("…"),)
    return (*before, *found, *after)


def around(text: str, patterns: Sequence[str], fold: Callable[[str], str] | None = None) -> tuple[Piece, ...]:
    """The text around the first match of the longest pattern that matches, else its beginning. All matches are marked.

    With `fold`, patterns are compared with the folded text. `fold` may change ASCII characters only in
    case, and others freely.
    """
    # Patterns that begin with a combining mark match only inside characters.
    patterns = sorted((one for one in patterns if after_marks(one, 0) == 0), key=len, reverse=True)
    plain, places = _folded(text, fold)
    found = next((match for pattern in patterns if (match := re.search(pattern, plain, re.IGNORECASE))), None)
    first = places[found.start()] if found else 0
    start, end = max(0, first - _AROUND), min(len(text), first + _AROUND)
    window = text[start:end]
    shown = _all_marked(window, patterns, fold) if found else (Piece(window),)
    before, after = (Piece("…"),) if start else (), (Piece("…"),) if end < len(text) else ()
    return (*before, *shown, *after)


def with_matches(found: Sequence[Piece], patterns: Sequence[str]) -> tuple[Piece, ...]:
    """Marks the matches of the patterns, too."""
    if not patterns:
        return tuple(found)
    return tuple(part for piece in found for part in ([piece] if piece.match else _all_marked(piece.text, patterns)))


def _all_marked(text: str, patterns: Sequence[str], fold: Callable[[str], str] | None = None) -> tuple[Piece, ...]:
    plain, places = _folded(text, fold)
    matches = re.finditer(f"(?=({'|'.join(patterns)}))", plain, re.IGNORECASE)  # overlapping ones, too
    return marked(text, ((places[match.start(1)], places[match.end(1)]) for match in matches))


def _folded(text: str, fold: Callable[[str], str] | None) -> tuple[str, Sequence[int]]:
    """The folded text, and the place in the original text of each of its characters and of its end."""
    if fold is None or text.isascii():
        return text, range(len(text) + 1)
    form_of = {char: fold(char) for char in set(text)}
    places = [place for place, char in enumerate(text) for _ in form_of[char]]
    return "".join(map(form_of.__getitem__, text)), [*places, len(text)]
