"""Snippets as plain pieces with a mark, never as markup: whoever shows them escapes them."""

import re
import sqlite3
from collections.abc import Sequence

from chunksink.sinks.fts.schema import TEXT_COLUMN, TOKENIZER
from chunksink.sinks.reader import Piece

# Control characters as marks: canonical text has none. Where a text has them all the same, a piece is marked wrongly.
_OPEN, _CLOSE = "\x02", "\x03"
_WORDS = 40
_AROUND = 90  # characters before and after, where words cannot be counted
_SHORT = 400  # characters; such a text is shown whole: a part might leave out what a search by meaning has found
_LONG = 50_000
"""Characters; FTS5 compares every place of a word with all others, which takes seconds where there are thousands."""
_PART = re.compile(r".{1,2000}(?!\S)|.{2000}", re.DOTALL)  # of a long text, between words

CALL = (
    f"CASE WHEN length(text) <= {_SHORT} THEN highlight(documents_fts, {TEXT_COLUMN}, char(2), char(3)) "
    f"ELSE snippet(documents_fts, {TEXT_COLUMN}, char(2), char(3), '…', {_WORDS}) END"
)


def pieces(marked: str | None) -> tuple[Piece, ...]:
    """What FTS5's snippet() or highlight() gave, taken apart."""
    found = []
    for part in re.split(f"(?={_OPEN})|(?<={_CLOSE})", marked or ""):
        text = part.replace(_OPEN, "").replace(_CLOSE, "")
        if text:
            found.append(Piece(text, part.startswith(_OPEN)))
    return tuple(found)


def is_long(text: str) -> bool:
    """Too long for FTS5 to choose a part of."""
    return len(text) > _LONG


def of_long(text: str, expression: str) -> tuple[Piece, ...]:
    """The best of its parts as if each were a text of its own, in an index in memory; empty where none matches."""
    parts = _PART.findall(text)
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.execute(f"CREATE VIRTUAL TABLE parts USING fts5(text, tokenize='{TOKENIZER}')")
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO parts(rowid, text) VALUES (?, ?)", enumerate(parts))
        shown = f"snippet(parts, 0, char(2), char(3), '…', {_WORDS})"
        best = f"SELECT rowid, {shown} FROM parts WHERE parts MATCH ? ORDER BY rank, rowid LIMIT 1"
        number, marked = connection.execute(best, [expression]).fetchone() or (0, "")
    finally:
        connection.close()
    found = pieces(marked)
    if not found:
        return ()
    before = () if number == 0 or found[0].text.startswith("…") else (Piece("…"),)
    after = () if number == len(parts) - 1 or found[-1].text.endswith("…") else (Piece("…"),)
    return (*before, *found, *after)


def around(text: str, patterns: Sequence[str]) -> tuple[Piece, ...]:
    """The surroundings of the first of these patterns that the text has, all of them marked; else its beginning."""
    patterns = sorted(patterns, key=len, reverse=True)
    found = next((match for pattern in patterns if (match := re.search(pattern, text, re.IGNORECASE))), None)
    first = found.start() if found else 0
    start, end = max(0, first - _AROUND), min(len(text), first + _AROUND)
    window = text[start:end]
    parts = re.split(f"({'|'.join(patterns)})", window, flags=re.IGNORECASE) if patterns else [window]
    shown = [Piece(part, position % 2 == 1) for position, part in enumerate(parts) if part]
    if start:
        shown.insert(0, Piece("…"))
    if end < len(text):
        shown.append(Piece("…"))
    return tuple(shown)
