"""The fixed tokenizer that the size policy counts with.

The policy needs one count for one text on every machine, for ever: chunk boundaries follow from it. A model's
tokenizer would tie them to a download and to whichever model is configured, so this one is a written rule over
code points that are listed here, not taken from Python's Unicode tables, which grow with each Python. Pieces of
at most seven letters come within 5 % of the counts of BERT's WordPiece on English and Chinese technical prose.
A change of the rule is a new version.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
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


_LATIN_SPACE = "\\t-\\r\\x1c- \\x85\\xa0"
_OTHER_SPACE = "\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_DIGIT = "0-9"
# Each of these is a token: punctuation, symbols, the scripts that write no spaces, emoji.
_SINGLE = (
    "!-/:-@\\[-`{-~\\xa1-\\xbf"
    "\u2010-\u2027\u2030-\u205e\u2060-\u2bff\u2e80-\u2fff\u3001-\u9fff\ua000-\ua4cf\uac00-\ud7ff"
    "\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe6f\uff00-\uffef\U0001f000-\U0001faff\U00020000-\U0003ffff"
)
_LETTER = f"^{_LATIN_SPACE}{_OTHER_SPACE}{_DIGIT}{_SINGLE}"
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


# Most texts have no mark, and then a token need not be found to be counted: one byte for each character says whether a
# token ends with it, and `bytes` counts them in any part of the text many times faster than the pattern finds tokens.


def _class_of(characters: str) -> frozenset[int]:
    inside = re.compile(f"[{characters}]")
    return frozenset(code for code in range(256) if inside.match(chr(code)))


_SINGLES, _DIGITS, _LETTERS = map(_class_of, (_SINGLE, _DIGIT, _LETTER))
# For `bytes.translate`: letters are 1; in the other single characters are 1 and digits 2.
_ONLY_LETTERS = bytes(code in _LETTERS for code in range(256))
_NO_LETTERS = bytes(1 if code in _SINGLES else 2 if code in _DIGITS else 0 for code in range(256))
_ASCII = bytes(range(128))
_MARKS = re.compile(f"[{MARK}]")
_NOT_SINGLE_BEYOND_LATIN = re.compile(f"[^{_SINGLE}\\0-\\xff]")
_SPACES_BEYOND_LATIN = re.compile(f"[{_OTHER_SPACE}]")
_LETTERS_BEYOND_LATIN = re.compile(f"[{_LETTER}\\0-\\xff]+")


def _counter_without_marks(text: str) -> Callable[[int, int], int] | None:
    """What the pattern counts in parts of a text that has no mark; None where it has one."""
    if not text.isascii():
        beyond = text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")
        if _MARKS.search(beyond):
            return None
        if _NOT_SINGLE_BEYOND_LATIN.search(beyond):
            text = _SPACES_BEYOND_LATIN.sub(" ", text)
            text = _LETTERS_BEYOND_LATIN.sub(lambda letters: "x" * len(letters[0]), text)
    data = text.encode("latin-1", "replace")  # what is still beyond it is single, and so is the question mark
    # Each seventh letter of a run is taken out: that token ends at its sixth, and what follows is a run of its own.
    letters = data.translate(_ONLY_LETTERS).replace(b"\1" * 7, b"\1" * 6 + b"\0")
    others = data.translate(_NO_LETTERS).replace(b"\2\2\2", b"\0\0\1").replace(b"\2\2", b"\0\1").replace(b"\2", b"\1")
    runs = int.from_bytes(letters, "little")  # as one number, where each letter can be compared with the next at once
    ends = runs & ~(runs >> 8) | int.from_bytes(others, "little")
    return partial(ends.to_bytes(len(data), "little").count, 1)
