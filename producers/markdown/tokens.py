"""The fixed tokenizer that the size policy counts with.

The policy needs one count for one text on every machine, for ever: chunk boundaries follow from it. A model's
tokenizer would tie them to a download and to whichever model is configured, so this one is a written rule over
code points that are listed here, not taken from Python's Unicode tables, which grow with each Python. Pieces of
at most seven letters come within 5 % of the counts of BERT's WordPiece on English and Chinese technical prose.
A change of the rule is a new version.
"""

import re
from collections.abc import Callable, Iterator
from typing import Protocol


class Tokenizer(Protocol):
    """Counts tokens. Counts add up over pieces of a text that were cut at white space or between two tokens."""

    @property
    def version(self) -> str:
        """Name and version in one word; enters the chunking policy's id."""

    def count(self, text: str) -> int:
        """How many tokens the text has; 0 only for white space."""

    def counter(self, text: str) -> Callable[[int, int], int]:
        """Counts the tokens of `text[start:end]`, for a text of which many parts are wanted."""

    def spans(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Where the tokens of `text[start:end]` lie, in order, as offsets into `text`."""


_ASCII_SPACE = "\\t-\\r\\x1c- "
_OTHER_SPACE = "\\x85\\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_DIGIT = "0-9"
# Each of these is a token: punctuation, symbols, the scripts that write no spaces, emoji.
_ASCII_SINGLE = "!-/:-@\\[-`{-~"
_OTHER_SINGLE = (
    "\\xa1-\\xbf"
    "\u2010-\u2027\u2030-\u205e\u2060-\u2bff\u2e80-\u2fff\u3001-\u9fff\ua000-\ua4cf\uac00-\ud7ff"
    "\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe6f\uff00-\uffef\U0001f000-\U0001faff\U00020000-\U0003ffff"
)
_SINGLE = _ASCII_SINGLE + _OTHER_SINGLE
_LETTER = f"^{_ASCII_SPACE}{_OTHER_SPACE}{_DIGIT}{_SINGLE}"
# Accents, variation selectors and skin tones stay with what they modify, so that no cut falls between them.
MARK = (
    "\u0300-\u036f\u064b-\u065f\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u200d\u20d0-\u20ff\ufe00-\ufe0f\U0001f3fb-\U0001f3ff"
)
_FLAT_LIMIT = 2**20


class WordTokenizer:
    """`words-1`: up to seven letters, up to three digits, or one other character that is not white space."""

    version = "words-1"

    _pattern = re.compile(
        f"[{_LETTER}]{{1,7}}[{MARK}]{{0,8}}|[{_DIGIT}]{{1,3}}|[{_SINGLE}](?:[{MARK}]|(?<=\u200d)[{_SINGLE}]){{0,8}}"
    )

    def count(self, text: str) -> int:
        count = _counter_without_marks(text)
        if count is not None:
            return count(0, len(text))
        if len(text) > _FLAT_LIMIT:  # a list of all tokens would take fifty times the text's size
            return sum(1 for _ in self._pattern.finditer(text))
        return len(self._pattern.findall(text))

    def counter(self, text: str) -> Callable[[int, int], int]:
        count = _counter_without_marks(text) if len(text) <= _FLAT_LIMIT else None
        return count or (lambda start, end: self.count(text[start:end]))

    def spans(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        for match in self._pattern.finditer(text, start, end):
            yield match.span()


# Most texts have no mark, and then a token need not be found to be counted: two strings of the text's length show where
# tokens end, and `bytes` counts in any part of them several times faster than the pattern finds tokens.


def _class_of(characters: str) -> frozenset[int]:
    inside = re.compile(f"[{characters}]")
    return frozenset(code for code in range(128) if inside.match(chr(code)))


_SINGLES, _DIGITS, _LETTERS = _class_of(_ASCII_SINGLE), _class_of(_DIGIT), _class_of(_LETTER)
# For `bytes.translate`: `x` is a letter in the one, a digit in the other, where `.` is a single character.
_SHOW_LETTERS = bytes(ord("x" if code in _LETTERS else " ") for code in range(256))
_SHOW_OTHERS = bytes(ord("." if code in _SINGLES else "x" if code in _DIGITS else " ") for code in range(256))
_ASCII = bytes(range(128))
_MARKS = re.compile(f"[{MARK}]")
_SPACE_BEYOND_ASCII = re.compile(f"[{_OTHER_SPACE}]")
_LETTER_BEYOND_ASCII = re.compile(f"[{_LETTER}\\0-\\x7f]")


def _counter_without_marks(text: str) -> Callable[[int, int], int] | None:
    """What the pattern counts in parts of a text that has no mark; None where it has one."""
    if not text.isascii():
        beyond = text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")
        if _MARKS.search(beyond):
            return None
        if _SPACE_BEYOND_ASCII.search(beyond):
            text = _SPACE_BEYOND_ASCII.sub(" ", text)
        if _LETTER_BEYOND_ASCII.search(beyond):
            text = _LETTER_BEYOND_ASCII.sub("x", text)
    data = text.encode("ascii", "replace")  # what is still beyond ASCII is single, and so is its question mark
    # A space takes the place of each seventh letter: every token of letters ends in `x ` now, or with the text.
    letters = data.translate(_SHOW_LETTERS).replace(b"x" * 7, b"x" * 6 + b" ")
    others = data.translate(_SHOW_OTHERS).replace(b"xxx", b"  .").replace(b"xx", b" .").replace(b"x", b".")

    def count(start: int, end: int) -> int:
        return letters.count(b"x ", start, end) + letters.endswith(b"x", start, end) + others.count(b".", start, end)

    return count
